// What corner sums have to count: the definition, word for word, and worlds with many masks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "check.hpp"
#include "random_world.hpp"
#include "xcount/exact/corner_sums.hpp"

namespace xcount::test {

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr double kSoftmaxUnit = 0.25;

// Of a sure decision: a threshold other than 0 is one of a softmax.
template <class Value>
bool is_sure(const Change<Value>& change, const std::vector<Value>& own) {
  const Value largest = *std::max_element(own.begin(), own.end());
  if (change.threshold == Value(0)) return largest > change.sure_above;
  double sum = 0.0;
  for (const Value& value : own) {
    sum += std::exp(ValueTraits<Value>::to_number(largest - value) * -kSoftmaxUnit);
  }
  const double least = ValueTraits<Value>::to_number(change.threshold);
  return 1.0 / sum >= least / static_cast<double>(kProbabilityOne);
}

// The definition, word for word: every region with every neighbour.
template <class Value>
bool differs(const Change<Value>& change, const std::vector<Value>& own,
             const std::vector<Value>& other) {
  const bool up = change.direction != Direction::kDown;
  const bool down = change.direction != Direction::kUp;
  if (change.form == ChangeForm::kSureLargest && !is_sure(change, own)) return false;
  if (change.form == ChangeForm::kLargest || change.form == ChangeForm::kSureLargest) {
    return std::max_element(own.begin(), own.end()) - own.begin() !=
           std::max_element(other.begin(), other.end()) - other.begin();
  }
  const Value& v = own[0];
  const Value& w = other[0];
  const Value& t = change.threshold;
  if (change.form == ChangeForm::kFlip) {
    return (up && !(v > change.sure_below) && w > t) || (down && v > change.sure_above && !(w > t));
  }
  return (up && w - v > t) || (down && v - w > t);
}

struct Expected {
  std::vector<std::uint64_t> counts;
  std::vector<double> shares;
};

template <class Value>
Expected by_definition(const CornerQuestion<Value>& question) {
  const Forest<Value>& forest = *question.forests[0];
  const MaskSpace& masks = *question.masks;
  std::vector<Cell> region(forest.axes.size());
  std::vector<std::vector<MaskIndex>> near;
  for (MaskIndex m = 0; m < masks.size(); ++m) near.push_back(masks.neighbours(m));
  Expected result;
  result.counts.resize(question.changes.size() * at(masks.size()));
  result.shares.resize(result.counts.size());
  const auto sums = [&](MaskIndex mask) {
    masks.write_cells(mask, region);
    std::vector<Value> all;
    for (std::size_t k = 0; k < question.forests.size(); ++k) {
      all.push_back(question.bases[k] + question.forests[k]->sum(region));
    }
    return all;
  };
  const auto decide = [&](double weight) {
    std::vector<std::vector<Value>> all;
    for (MaskIndex m = 0; m < masks.size(); ++m) all.push_back(sums(m));
    for (std::size_t i = 0; i < question.changes.size(); ++i) {
      for (MaskIndex m = 0; m < masks.size(); ++m) {
        for (const MaskIndex n : near[at(m)]) {
          if (!differs(question.changes[i], all[at(m)], all[at(n)])) continue;
          ++result.counts[i * at(masks.size()) + at(m)];
          result.shares[i * at(masks.size()) + at(m)] += weight;
          break;
        }
      }
    }
  };
  const auto visit = [&](auto&& self, std::size_t f, double weight) -> void {
    if (f == region.size()) return decide(weight);
    if (masks.is_sensitive(static_cast<Feature>(f))) return self(self, f + 1, weight);
    for (Cell cell = 0; cell < forest.axes[f].n_cells; ++cell) {
      region[f] = cell;
      self(self, f + 1, question.weights.empty() ? 0.0 : weight * question.weights[f][at(cell)]);
    }
  };
  visit(visit, 0, 1.0);
  return result;
}

template <class Value>
std::unique_ptr<CornerSums> make_sums(const CornerQuestion<Value>& question) {
  Stop stop;
  return make_corner_sums(question, stop);
}

template <class Value>
CornerCounts count_all(const CornerSums& sums, unsigned n_threads) {
  Stop stop;
  return sums.count(0, sums.n_blocks(), n_threads, stop);
}

inline bool close(const CornerSums& sums, const std::vector<Int128>& a,
                  const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double share = static_cast<double>(a[i]) * sums.share_unit();
    if (std::abs(share - b[i]) > 1e-9 * (1.0 + std::abs(b[i]))) return false;
  }
  return true;
}

template <class Value>
void agrees(const CornerQuestion<Value>& question) {
  const std::unique_ptr<CornerSums> sums = make_sums(question);
  Expected expected = by_definition(question);
  if (question.weights.empty()) expected.shares.clear();
  const CornerCounts whole = count_all<Value>(*sums, 1);
  CHECK(whole.n_finished == sums->n_blocks());
  CHECK(whole.counts == expected.counts);
  CHECK(close(*sums, whole.shares, expected.shares));
  const CornerCounts threads = count_all<Value>(*sums, 3);
  CHECK(threads.counts == whole.counts);
  CHECK(threads.shares == whole.shares);
}

inline std::vector<std::vector<double>> random_weights(std::mt19937& random,
                                                       const Topology& forest) {
  std::vector<std::vector<double>> weights;
  for (const Axis& axis : forest.axes) {
    auto& list = weights.emplace_back();
    for (Cell c = 0; c < axis.n_cells; ++c) list.push_back(static_cast<double>(random() % 4) / 8);
  }
  return weights;
}

// unit: what the leaves -3 .. 3 are multiplied by, to reach every width of integers.
template <class Value>
Forest<Value> scaled(const World& world, const Value& unit) {
  Forest<Value> forest = world.build<Value>();
  for (Value& value : forest.values) {
    Value product(0);
    for (Value i(0); i < value; i += Value(1)) product += unit;
    for (Value i(0); i > value; i -= Value(1)) product -= unit;
    value = product;
  }
  return forest;
}

// A long chain of axes has outer levels, middle axes and many blocks.
inline World deep_world(std::mt19937& random, const std::vector<std::int32_t>& cells) {
  World world(cells);
  for (int tree = 0; tree < 12; ++tree) {
    const auto grow = [&](auto&& self, int levels) -> std::int32_t {
      if (levels == 0) return world.add(-1, 0, static_cast<std::int64_t>(random() % 9) - 4, false);
      const std::size_t f = random() % cells.size();
      const auto n = static_cast<unsigned>(cells[f] - 1);
      const std::int32_t node = world.add(static_cast<std::int32_t>(f),
                                          1 + static_cast<std::int32_t>(random() % n), 0, false);
      const std::int32_t low = self(self, levels - 1);
      world.set_children(node, low, self(self, levels - 1));
      return node;
    };
    const std::int32_t root = grow(grow, 5);
    world.roots.push_back(root);
  }
  return world;
}

}  // namespace xcount::test

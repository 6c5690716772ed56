// Evaluates a box of pairs (worst/pair_box.hpp): bounds of the change in it, the cells at its ends
// that can be cut off, and the two boxes to split it into.
//
// The score of a box adds up the largest value of each factor in the box; the same pass over the
// leaves gives the score for each cell of each variable, and for both sides of each cut. Every
// pair of the box whose change is more than the bar lies in one of the boxes it is split into:
// docs/largest-change.md, "How it is found".
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "xcount/support/assert.hpp"
#include "xcount/worst/objective.hpp"
#include "xcount/worst/pair_box.hpp"
#include "xcount/worst/pair_trees.hpp"
#include "xcount/worst/reached_leaves.hpp"

namespace xcount {

// What a change has to exceed: as a score, rounded down, and as a difference of sums.
template <class Value, class Objective>
struct Bar {
  typename Objective::Score score{};
  Value difference{};

  [[nodiscard]] bool may_beat(typename Objective::Score other) const {
    return other > score + Objective::kTolerance;
  }
};

enum class Fate : std::uint8_t {
  kBelow,     // no pair changes by more than the bar
  kConstant,  // all pairs change by the same, which is more
  kOpen,      // some pairs may change by more
};

template <class Value, class Objective>
struct SplitBox {
  struct Child {
    typename Objective::Score score;
    PairBox box;
  };
  Fate fate = Fate::kBelow;
  bool is_above = false;   // kOpen: whether surely all pairs change by more
  std::uint64_t work = 0;  // leaves, segments and cells looked at: the same on every machine
  std::vector<Child> children;
  std::unique_ptr<ReachedLeaves<Value, Objective::kSums>> leaves;  // kOpen: those of the box
};

constexpr std::uint64_t kLookingUp = 2;  // what a factor's bounds along a variable cost at least
constexpr double kLeastGain = 1e-3;      // of a side, in the product of the gains

inline std::uint64_t bits_between(std::size_t first, std::size_t last) {
  return (~std::uint64_t{0} >> (63 - last)) & (~std::uint64_t{0} << first);
}

// One box at a time, with tables of its own: one per thread.
template <class Value, class Objective>
class BoxSplitter {
 public:
  using Score = typename Objective::Score;
  using Sums = typename Objective::Sums;
  using Leaves = ReachedLeaves<Value, Objective::kSums>;
  using Split = SplitBox<Value, Objective>;

  BoxSplitter(const PairTrees<Value>& trees, const PairReach& reach, const Objective& objective)
      : trees_(trees), reach_(reach), objective_(objective) {
    const auto& variables = trees_.variables();
    for (const PairVariable& variable : variables) {
      offset_.push_back(n_cells_);
      n_cells_ += static_cast<std::size_t>(variable.n_cells) + 1;
    }
    for (auto* table : {&cell_, &below_, &from_}) table->resize(n_cells_ * kSums);
    own_.resize(variables.size() * kSums);
    best_cell_.resize(variables.size());
    std::size_t most = 1;
    for (const Factor<Value>& factor : trees_.factors()) {
      for (const Segments& segments : factor.segments) {
        most = std::max(most, 64 * segments.n_words());
      }
    }
    largest_.resize(most);
  }

  // around: the leaves of the box, or of one around it. most: a bound of the score that is known.
  Split split(const PairBox& box, Score most, const Leaves& around,
              const Bar<Value, Objective>& bar) {
    bar_ = bar;
    Split result;
    clear(box);
    auto found = std::make_unique<Leaves>();
    reach(box, around, *found);
    result.work = around.leaf.size() + n_looked_at_;
    if (found->factor.empty()) {
      if (is_better(*found)) result.fate = Fate::kConstant;
      return result;
    }
    if (!may_beat(objective_.score(total_)) || !exact_may_beat()) return result;
    PairBox inner = box;
    Score score = std::min(most, objective_.score(total_));
    if (!bound_cells(inner, score) || !may_beat(score)) return result;
    result.fate = Fate::kOpen;
    result.is_above = bar.difference < exact_least_;
    add_children(box, *found, inner, score, result);
    result.leaves = std::move(found);
    return result;
  }
  // The best cell of each variable of the last box, each by itself.
  [[nodiscard]] const std::vector<Cell>& best_cells() const { return best_cell_; }

 private:
  static constexpr std::size_t kSums = Objective::kSums;

  [[nodiscard]] bool may_beat(Score score) const { return bar_.may_beat(score); }
  [[nodiscard]] std::size_t at(std::size_t sum, std::size_t variable, Cell cell) const {
    return sum * n_cells_ + offset_[variable] + static_cast<std::size_t>(cell);
  }

  void clear(const PairBox& box) {
    for (std::size_t sum = 0; sum < kSums; ++sum) {
      for (std::size_t v = 0; v < box.size(); ++v) {
        const auto size = static_cast<std::ptrdiff_t>(box[v].size()) + 1;
        const auto first = static_cast<std::ptrdiff_t>(at(sum, v, 0));
        for (auto* table : {&cell_, &below_, &from_}) {
          std::fill_n(table->begin() + first, size, Bound{0});
        }
      }
    }
    std::fill(own_.begin(), own_.end(), Bound{0});
    n_looked_at_ = 0;
    for (const CellRun& run : box) n_looked_at_ += static_cast<std::uint64_t>(run.size());
    total_ = {};
    exact_total_ = {};
    exact_least_ = Value{};
  }

  // Finds the leaves of each factor in the box, and adds up bounds for all cells and cuts.
  void reach(const PairBox& box, const Leaves& around, Leaves& found) {
    found.box = box;
    found.constant = around.constant;
    found.exact = around.exact;
    found.leaf.reserve(around.leaf.size());
    total_ = around.constant;
    exact_total_ = around.exact;
    exact_least_ = around.exact[kDifferenceSum];
    for (std::size_t i = 0; i < around.factor.size(); ++i) {
      const Factor<Value>& factor = trees_.factors()[around.factor[i]];
      const std::size_t start = found.leaf.size();
      filter(factor, around, i, box, found.leaf);
      const std::uint16_t first = found.leaf[start], last = found.leaf.back();
      total_[factor.sum] += factor.values[first];
      add_exact(factor, first, exact_total_[factor.sum]);
      if (factor.sum == kDifferenceSum) add_exact(factor, last, exact_least_);
      if (is_constant(factor, first, last)) {
        found.constant[factor.sum] += factor.values[first];
        add_exact(factor, first, found.exact[factor.sum]);
        found.leaf.resize(start);
        continue;
      }
      found.factor.push_back(around.factor[i]);
      found.first.push_back(static_cast<std::uint32_t>(start));
      add_bounds(factor, box, found.leaf.data() + start, found.leaf.size() - start);
    }
    found.first.push_back(static_cast<std::uint32_t>(found.leaf.size()));
  }

  static bool is_constant(const Factor<Value>& factor, std::uint16_t first, std::uint16_t last) {
    if (factor.exact.empty()) return factor.values[first] == factor.values[last];
    return factor.exact[first] == factor.exact[last];
  }
  static void add_exact(const Factor<Value>& factor, std::uint16_t leaf, Value& sum) {
    sum += factor.exact.empty() ? Value(factor.values[leaf]) : factor.exact[leaf];
  }

  // Appends the leaves of a factor that the box reaches, of those that the box around it reaches.
  static void filter(const Factor<Value>& factor, const Leaves& around, std::size_t i,
                     const PairBox& box, std::vector<std::uint16_t>& out) {
    const std::size_t start = out.size();
    out.insert(out.end(), around.leaf.begin() + around.first[i],
               around.leaf.begin() + around.first[i + 1]);
    for (const Segments& segments : factor.segments) {
      const CellRun &run = box[segments.variable], &wider = around.box[segments.variable];
      const std::size_t low = segment(segments, run.low), high = segment(segments, run.high);
      if (low == segment(segments, wider.low) && high == segment(segments, wider.high)) continue;
      std::uint16_t* kept = out.data() + start;
      const std::uint16_t* const end = out.data() + out.size();
      const std::size_t word = low / 64;
      if (word == high / 64) {
        const std::uint64_t bits = bits_between(low % 64, high % 64);
        const std::uint64_t* column = factor.column(segments.first_column + word);
        for (const std::uint16_t* leaf = kept; leaf != end; ++leaf) {
          *kept = *leaf;
          kept += (column[*leaf] & bits) != 0 ? 1 : 0;
        }
      } else {
        for (const std::uint16_t* leaf = kept; leaf != end; ++leaf) {
          const bool holds = holds_any(factor, segments, *leaf, low, high);
          *kept = *leaf;
          kept += holds ? 1 : 0;
        }
      }
      out.resize(static_cast<std::size_t>(kept - out.data()));
    }
    XCOUNT_ASSERT(out.size() > start);
  }
  static std::size_t segment(const Segments& segments, Cell cell) {
    return segments.of_cell[static_cast<std::size_t>(cell)];
  }
  static bool holds_any(const Factor<Value>& factor, const Segments& segments, std::uint16_t leaf,
                        std::size_t low, std::size_t high) {
    for (std::size_t word = low / 64; word <= high / 64; ++word) {
      const std::size_t first = word == low / 64 ? low % 64 : 0;
      const std::size_t last = word == high / 64 ? high % 64 : 63;
      const std::uint64_t bits = bits_between(first, last);
      if ((factor.column(segments.first_column + word)[leaf] & bits) != 0) return true;
    }
    return false;
  }

  // Adds a factor's bounds for each cell, and below and from each cell, of each variable.
  void add_bounds(const Factor<Value>& factor, const PairBox& box, const std::uint16_t* leaves,
                  std::size_t n) {
    const Bound top = factor.values[leaves[0]];
    for (const Segments& segments : factor.segments) {
      const std::size_t v = segments.variable;
      const Cell base = box[v].low;
      const std::size_t low = segment(segments, base), high = segment(segments, box[v].high);
      if (low == high) continue;
      n_looked_at_ += kLookingUp + high - low;
      own_[factor.sum * box.size() + v] += top;
      for (std::size_t word = low / 64; word <= high / 64; ++word) {
        const std::size_t first = word == low / 64 ? low % 64 : 0;
        const std::size_t last = word == high / 64 ? high % 64 : 63;
        find_largest(factor, factor.column(segments.first_column + word), leaves, n,
                     bits_between(first, last), &largest_[64 * word]);
      }
      Bound* cell = &cell_[at(factor.sum, v, 0)];
      Bound* below = &below_[at(factor.sum, v, 0)];
      Bound* from = &from_[at(factor.sum, v, 0)];
      const auto place = [&](std::size_t s) {
        return static_cast<std::size_t>(std::max(segments.starts[s], base) - base);
      };
      Bound previous = largest_[low], highest = previous;
      cell[0] += previous;
      below[0] += previous;
      for (std::size_t s = low + 1; s <= high; ++s) {
        const std::size_t i = place(s);
        cell[i] += largest_[s] - previous;
        previous = largest_[s];
        if (previous > highest) {
          below[i] += previous - highest;
          highest = previous;
        }
      }
      highest = largest_[high];
      for (std::size_t s = high; s-- > low;) {
        if (largest_[s] <= highest) continue;
        from[place(s + 1)] += highest - largest_[s];
        highest = largest_[s];
      }
      from[0] += highest;
    }
  }

  // The largest value of the leaves that hold each of these segments.
  static void find_largest(const Factor<Value>& factor, const std::uint64_t* column,
                           const std::uint16_t* leaves, std::size_t n, std::uint64_t wanted,
                           Bound* largest) {
    for (std::size_t i = 0; i < n; ++i) {
      std::uint64_t held = column[leaves[i]] & wanted;
      if (held == 0) continue;
      wanted ^= held;
      const Bound value = factor.values[leaves[i]];
      do {
        largest[std::countr_zero(held)] = value;
        held &= held - 1;
      } while (held != 0);
      if (wanted == 0) return;
    }
    XCOUNT_ASSERT(wanted == 0);
  }

  [[nodiscard]] Sums sums_at(const std::vector<Bound>& table, std::size_t v, Cell cell) const {
    Sums sums;
    for (std::size_t sum = 0; sum < kSums; ++sum) sums[sum] = table[at(sum, v, cell)];
    return sums;
  }
  [[nodiscard]] Score cell_score(std::size_t v, Cell cell) const {
    return objective_.score(sums_at(cell_, v, cell));
  }

  // Turns differences into bounds, cuts off cells that cannot beat the best pair, and lowers the
  // score of the box to the best of a variable's cells. False if nothing is left.
  bool bound_cells(PairBox& box, Score& score) {
    const std::size_t n_variables = box.size();
    for (std::size_t v = 0; v < n_variables; ++v) {
      best_cell_[v] = box[v].low;
      const Cell n = box[v].size();
      if (n < 2) continue;
      for (std::size_t sum = 0; sum < kSums; ++sum) {
        const Bound others = total_[sum] - own_[sum * n_variables + v];
        for (auto* table : {&cell_, &below_, &from_}) {
          Bound running = others;
          Bound* entry = &(*table)[at(sum, v, 0)];
          for (Cell c = 0; c < n; ++c, ++entry) *entry = running += *entry;
        }
      }
      Cell first = n, last = -1, best = 0;
      Score most = cell_score(v, 0);
      for (Cell c = 0; c < n; ++c) {
        const Score own = cell_score(v, c);
        if (own > most) {
          most = own;
          best = c;
        }
        if (may_beat(own)) {
          first = std::min(first, c);
          last = c;
        }
      }
      if (last < 0) return false;
      best_cell_[v] = box[v].low + best;
      score = std::min(score, most);
      box[v] = {box[v].low + first, box[v].low + last};
    }
    return true;
  }

  struct Cut {
    std::size_t variable = 0;
    Cell cell = -1;  // the first cell of the upper side, counted from the box's first
    double gain = -1;
  };

  void add_children(const PairBox& whole, const Leaves& found, const PairBox& box, Score score,
                    Split& result) const {
    Cut cut = best_cut(whole, box);
    if (cut.cell < 0) cut = any_cut(found, whole, box);
    if (cut.cell < 0) {
      XCOUNT_ASSERT(box != whole);
      add_child(box, score, result);
      return;
    }
    const Cell base = whole[cut.variable].low;
    for (const bool is_upper : {false, true}) {
      PairBox child = box;
      CellRun& run = child[cut.variable];
      (is_upper ? run.low : run.high) = base + cut.cell - (is_upper ? 0 : 1);
      // Dead cells beside the cut go, too.
      const auto lives = [&](Cell c) { return may_beat(cell_score(cut.variable, c - base)); };
      while (run.low < run.high && !lives(run.low)) ++run.low;
      while (run.low < run.high && !lives(run.high)) --run.high;
      Score most = cell_score(cut.variable, run.low - base);
      for (Cell c = run.low; c <= run.high; ++c) {
        most = std::max(most, cell_score(cut.variable, c - base));
      }
      add_child(std::move(child), std::min(score, most), result);
    }
  }
  void add_child(PairBox child, Score score, Split& result) const {
    if (may_beat(score) && reach_.trim(child)) {
      result.children.push_back({score, std::move(child)});
    }
  }

  // The cut with the largest product of gains, among those at which a bound changes.
  [[nodiscard]] Cut best_cut(const PairBox& whole, const PairBox& box) const {
    const auto number = [](Score score) { return static_cast<double>(score); };
    const Score top = objective_.score(total_);
    const double most = number(top) - number(bar_.score);
    Cut best;
    for (std::size_t v = 0; v < box.size(); ++v) {
      const Cell low = box[v].low - whole[v].low, high = box[v].high - whole[v].low;
      for (Cell c = low + 1; c <= high; ++c) {
        if (sums_at(cell_, v, c) == sums_at(cell_, v, c - 1)) continue;
        const double lower = number(top) - number(objective_.score(sums_at(below_, v, c - 1)));
        const double upper = number(top) - number(objective_.score(sums_at(from_, v, c)));
        const double gain = (std::min(lower, most) + kLeastGain * most) *
                            (std::min(upper, most) + kLeastGain * most);
        if (gain > best.gain) best = {v, c, gain};
      }
    }
    return best;
  }
  // A cut at which some factor changes, for boxes in which no bound of a cell does.
  [[nodiscard]] Cut any_cut(const Leaves& found, const PairBox& whole, const PairBox& box) const {
    for (const std::uint32_t number : found.factor) {
      for (const Segments& segments : trees_.factors()[number].segments) {
        const CellRun& run = box[segments.variable];
        const std::size_t next = segment(segments, run.low) + 1;
        if (next < segments.size() && segments.starts[next] <= run.high) {
          return {segments.variable, segments.starts[next] - whole[segments.variable].low, 0};
        }
      }
    }
    return {};
  }

  // Whether the sum of largest values, not rounded, is more than the best difference.
  [[nodiscard]] bool exact_may_beat() const {
    if constexpr (std::is_same_v<Objective, MarginObjective>) {
      if (trees_.shift() > 0) return bar_.difference < exact_total_[kDifferenceSum];
    }
    return true;
  }
  // Whether a box in which all factors are constant is better than the best pair.
  [[nodiscard]] bool is_better(const Leaves& found) const {
    if constexpr (std::is_same_v<Objective, MarginObjective>) {
      return bar_.difference < found.exact[kDifferenceSum];
    } else {
      return may_beat(objective_.score(found.constant));
    }
  }
  const PairTrees<Value>& trees_;
  const PairReach& reach_;
  const Objective& objective_;
  Bar<Value, Objective> bar_;
  std::size_t n_cells_ = 0;
  std::vector<std::size_t> offset_;  // per variable, of its cells in the tables
  // Per sum, variable and cell, counted from the box's first: bounds of the sum in the cell, in
  // the cells up to it, and from it on. While they are added up, differences of neighbours.
  std::vector<Bound> cell_, below_, from_;
  std::vector<Bound> own_;      // per sum and variable: the part of the factors that test it
  std::vector<Bound> largest_;  // per segment
  std::vector<Cell> best_cell_;
  std::uint64_t n_looked_at_ = 0;
  Sums total_{};
  std::array<Value, kSums> exact_total_{};
  Value exact_least_{};  // of the difference, by the least values
};

}  // namespace xcount

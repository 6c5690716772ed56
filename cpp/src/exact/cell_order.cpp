#include "xcount/exact/cell_order.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>

#include "xcount/support/assert.hpp"

namespace xcount {

namespace {

// Beyond these numbers looking for a better order takes longer than the boundaries it saves.
constexpr Cell kMaxReordered = 1024;
constexpr std::size_t kMaxTests = 4096;

using Signature = std::vector<std::uint64_t>;  // a bit per test: whether the cell goes left

std::size_t n_differences(const Signature& a, const Signature& b) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < a.size(); ++i) n += static_cast<unsigned>(std::popcount(a[i] ^ b[i]));
  return n;
}

// The boundaries of all tests together are the differences of neighbouring cells: a chain of
// nearest neighbours keeps them few.
std::vector<Cell> chain(const std::vector<Signature>& signatures) {
  std::vector<Cell> order(signatures.size());
  std::iota(order.begin(), order.end(), 0);
  const auto signature = [&](Cell cell) -> const Signature& {
    return signatures[static_cast<std::size_t>(cell)];
  };
  for (std::size_t i = 1; i < order.size(); ++i) {
    std::size_t nearest = i;
    std::size_t fewest = ~std::size_t{0};
    for (std::size_t j = i; j < order.size(); ++j) {
      const std::size_t n = n_differences(signature(order[i - 1]), signature(order[j]));
      if (n < fewest) std::tie(nearest, fewest) = std::pair(j, n);
    }
    std::swap(order[i], order[nearest]);
  }
  return order;
}

std::vector<Cell> unordered_cells(std::span<const Topology* const> forests, Feature feature,
                                  Cell n_cells) {
  std::vector<Signature> signatures(static_cast<std::size_t>(n_cells));
  std::size_t n_tests = 0;
  for (const Topology* forest : forests) {
    for (const Test& test : forest->tests) {
      if (test.feature != feature || n_tests == kMaxTests) continue;
      for (Cell cell = 0; cell < n_cells; ++cell) {
        Signature& bits = signatures[static_cast<std::size_t>(cell)];
        if (n_tests % 64 == 0) bits.push_back(0);
        bits.back() |= std::uint64_t{forest->goes_left(test, cell)} << (n_tests % 64);
      }
      ++n_tests;
    }
  }
  return chain(signatures);
}

// With the missing cell last, a test that sends it left has two runs on its left side; with the
// missing cell first, a test that sends it right has two on its right side.
bool missing_is_better_first(std::span<const Topology* const> forests, Feature feature) {
  std::size_t n_left = 0;
  std::size_t n_right = 0;
  for (const Topology* forest : forests) {
    for (const Test& test : forest->tests) {
      if (test.feature != feature || test.cut < 0) continue;
      ++(test.missing_left ? n_left : n_right);
    }
  }
  return n_left > n_right;
}

CellOrder order_of(std::vector<Cell> cells) {
  CellOrder order{std::vector<Cell>(cells.size()), std::move(cells)};
  for (std::size_t p = 0; p < order.cell.size(); ++p) {
    order.position[static_cast<std::size_t>(order.cell[p])] = static_cast<Cell>(p);
  }
  return order;
}

CellOrder choose(std::span<const Topology* const> forests, Feature feature, bool keep_last) {
  const Axis& axis = forests.front()->axis(feature);
  if (!axis.ordered && axis.n_cells > 2 && axis.n_cells <= kMaxReordered) {
    return order_of(unordered_cells(forests, feature, axis.n_cells));
  }
  std::vector<Cell> cells(static_cast<std::size_t>(axis.n_cells));
  std::iota(cells.begin(), cells.end(), 0);
  if (!keep_last && axis.missing_cell > 0 && missing_is_better_first(forests, feature)) {
    std::rotate(cells.begin(), cells.end() - 1, cells.end());
  }
  return order_of(std::move(cells));
}

}  // namespace

CellSet intersection(const CellSet& a, const CellSet& b) {
  CellSet result;
  std::size_t i = 0;
  std::size_t j = 0;
  bool inside = false;
  while (i < a.size() || j < b.size()) {
    const Cell next = j == b.size() || (i < a.size() && a[i] < b[j]) ? a[i] : b[j];
    if (i < a.size() && a[i] == next) ++i;
    if (j < b.size() && b[j] == next) ++j;
    const bool now = i % 2 == 1 && j % 2 == 1;
    if (now != inside) result.push_back(next);
    inside = now;
  }
  XCOUNT_ASSERT(std::is_sorted(result.begin(), result.end()));
  return result;
}

CellSet complement(const CellSet& set) {
  if (!set.empty() && set.front() == 0) return {set.begin() + 1, set.end()};
  CellSet result{0};
  result.insert(result.end(), set.begin(), set.end());
  return result;
}

CellSet CellOrder::left_set(const Topology& forest, const Test& test) const {
  CellSet result;
  bool inside = false;
  const auto visit = [&](Cell p) {
    const bool now = forest.goes_left(test, cell[static_cast<std::size_t>(p)]);
    if (now != inside) result.push_back(p);
    inside = now;
  };
  const Axis& axis = forest.axis(test.feature);
  if (test.cut < 0 || !axis.ordered) {
    for (Cell p = 0; p < n_cells(); ++p) visit(p);
    return result;
  }
  // A cut changes sides only at the first cell, at the cut, and around the missing cell.
  std::vector<Cell> candidates{0, 1, test.cut, test.cut + 1, n_cells() - 1};
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  for (const Cell p : candidates) {
    if (p >= 0 && p < n_cells()) visit(p);
  }
  return result;
}

std::vector<CellOrder> choose_cell_orders(std::span<const Topology* const> forests,
                                          const std::vector<bool>& keep_last) {
  std::vector<CellOrder> orders;
  for (std::size_t f = 0; f < forests.front()->axes.size(); ++f) {
    orders.push_back(choose(forests, static_cast<Feature>(f), keep_last[f]));
    XCOUNT_ASSERT(orders.back().n_cells() == forests.front()->axes[f].n_cells);
  }
  return orders;
}

}  // namespace xcount

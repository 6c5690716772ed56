#include "xcount/trees/forest.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "xcount/support/assert.hpp"

namespace xcount {

namespace {

// Tables have an entry per cell. Axes with more cells than any model file has guards or categories
// (a file has at most 2^30 bytes) are refused before such tables are made.
constexpr Cell kMaxCells = Cell{1} << 26;
constexpr std::uint32_t kMaxDepth = 10000;

[[noreturn]] void fail(const std::string& what) { throw std::invalid_argument("forest: " + what); }

}  // namespace

Topology::Topology(const ForestArrays& arrays) {
  read_axes(arrays);
  read_nodes(arrays);
}

void Topology::read_axes(const ForestArrays& arrays) {
  const std::size_t n = arrays.n_cells.size();
  if (arrays.missing_cell.size() != n || arrays.ordered.size() != n) {
    fail("axis arrays differ in length");
  }
  axes.reserve(n);
  std::size_t start = 0;
  for (std::size_t i = 0; i < n; ++i) {
    Axis axis{arrays.n_cells[i], arrays.missing_cell[i], arrays.ordered[i] != 0};
    if (axis.n_cells < 1) fail("a feature needs at least one cell");
    if (axis.n_cells > kMaxCells) fail("a feature has more than 2^26 cells");
    if (axis.missing_cell != -1 && axis.missing_cell != axis.n_cells - 1) {
      fail("the missing cell must be the last one");
    }
    if (!arrays.positions.empty()) read_positions(arrays, start, axis);
    start += static_cast<std::size_t>(axis.n_cells);
    axes.push_back(std::move(axis));
  }
  if (!arrays.positions.empty() && start != arrays.positions.size()) {
    fail("there must be a position for each cell");
  }
}

void Topology::read_positions(const ForestArrays& arrays, std::size_t start, Axis& axis) {
  const auto n = static_cast<std::size_t>(axis.n_cells);
  if (start + n > arrays.positions.size()) fail("there must be a position for each cell");
  const auto own = arrays.positions.subspan(start, n);
  const auto ordered = own.first(static_cast<std::size_t>(axis.n_ordered()));
  if (!axis.ordered || ordered.empty()) return;
  if (ordered.front() < 0 || !std::is_sorted(ordered.begin(), ordered.end())) {
    fail("positions must be ascending");
  }
  if (ordered.back() - ordered.front() == axis.n_ordered() - 1 &&
      std::adjacent_find(ordered.begin(), ordered.end()) == ordered.end()) {
    return;  // regular except for where it begins
  }
  axis.positions.assign(own.begin(), own.end());
}

void Topology::join(Feature feature, std::vector<Axis> coordinates,
                    std::vector<std::vector<Cell>> cells) {
  if (feature < 0 || static_cast<std::size_t>(feature) >= axes.size()) fail("no such feature");
  Axis& axis = axes[static_cast<std::size_t>(feature)];
  if (axis.ordered || cells.size() != coordinates.size()) fail("a joint axis has no order");
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto outside = [&](Cell cell) { return cell < 0 || cell >= coordinates[i].n_cells; };
    if (cells[i].size() != static_cast<std::size_t>(axis.n_cells) ||
        std::any_of(cells[i].begin(), cells[i].end(), outside)) {
      fail("a joint axis has a cell of each coordinate in each of its cells");
    }
  }
  axis.coordinates = std::move(coordinates);
  axis.coordinate = std::move(cells);
}

std::int64_t Axis::distance(Cell a, Cell b) const {
  XCOUNT_ASSERT(a >= 0 && a < n_cells && b >= 0 && b < n_cells);
  if (a == b) return 0;
  if (!coordinates.empty()) {
    std::int64_t total = 0;
    for (std::size_t i = 0; i < coordinates.size(); ++i) {
      const std::vector<Cell>& cell = coordinate[i];
      total += coordinates[i].distance(cell[static_cast<std::size_t>(a)],
                                       cell[static_cast<std::size_t>(b)]);
    }
    return total;
  }
  if (!ordered || a == missing_cell || b == missing_cell) return 1;
  return std::abs(static_cast<std::int64_t>(position(a)) - position(b));
}

std::int64_t Axis::furthest() const {
  if (n_cells == 1) return 0;
  if (!coordinates.empty()) {
    std::int64_t total = 0;
    for (const Axis& each : coordinates) total += each.furthest();
    return total;
  }
  if (!ordered || n_ordered() == 0) return 1;
  return std::max<std::int64_t>(1, distance(0, n_ordered() - 1));
}

std::pair<Cell, Cell> Axis::near(Cell cell, std::int64_t reach) const {
  XCOUNT_ASSERT(ordered && cell >= 0 && cell < n_ordered() && reach >= 0);
  if (regular()) {
    const auto step = static_cast<Cell>(std::min<std::int64_t>(reach, n_cells));
    return {std::max(0, cell - step), std::min(n_ordered(), cell + step + 1)};
  }
  const auto begin = positions.begin();
  const auto end = begin + n_ordered();
  const std::int64_t here = position(cell);
  const auto first = std::lower_bound(begin, end, here - reach);
  const auto last = std::upper_bound(first, end, here + reach);
  XCOUNT_ASSERT(first - begin <= cell && cell < last - begin);
  return {static_cast<Cell>(first - begin), static_cast<Cell>(last - begin)};
}

void Topology::read_nodes(const ForestArrays& arrays) {
  const std::size_t n = arrays.feature.size();
  if (arrays.cut.size() != n || arrays.missing_left.size() != n || arrays.left.size() != n ||
      arrays.right.size() != n) {
    fail("node arrays differ in length");
  }
  roots.assign(arrays.roots.begin(), arrays.roots.end());
  left.assign(arrays.left.begin(), arrays.left.end());
  right.assign(arrays.right.begin(), arrays.right.end());
  membership.assign(arrays.membership.begin(), arrays.membership.end());
  tests.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    tests.push_back({arrays.feature[i], arrays.cut[i], arrays.missing_left[i] != 0});
  }
  for (std::size_t i = 0; i < n; ++i) {
    check_node(i);
    if (tests[i].feature != kLeaf && tests[i].cut < 0) {
      axes[static_cast<std::size_t>(tests[i].feature)].all_prefixes = false;
    }
  }
  for (const NodeIndex root : roots) {
    if (root < 0 || static_cast<std::size_t>(root) >= n) fail("a root is out of range");
  }
  check_depth();
}

// Walks over trees are recursive.
void Topology::check_depth() const {
  std::vector<std::uint32_t> depth(n_nodes());
  for (std::size_t i = 0; i < n_nodes(); ++i) {
    if (tests[i].feature == kLeaf) continue;
    if (depth[i] >= kMaxDepth)
      throw std::length_error(
          "a tree has more than 10,000 tests on one path; no library trains such trees");
    for (const NodeIndex child : {left[i], right[i]}) {
      auto& below = depth[static_cast<std::size_t>(child)];
      below = std::max(below, depth[i] + 1);
    }
  }
}

void Topology::check_node(std::size_t node) const {
  const Test& test = tests[node];
  if (test.feature == kLeaf) return;
  if (test.feature < 0 || static_cast<std::size_t>(test.feature) >= axes.size()) {
    fail("a feature is out of range");
  }
  for (const NodeIndex child : {left[node], right[node]}) {
    // Larger indices below: walks end, and there is no cycle.
    if (child <= static_cast<NodeIndex>(node) || static_cast<std::size_t>(child) >= n_nodes()) {
      fail("a child is out of range");
    }
  }
  const Axis& axis = axes[static_cast<std::size_t>(test.feature)];
  if (test.cut > axis.n_cells) fail("a cut is beyond the last cell");
  if (test.cut < 0) {
    const auto end = static_cast<std::size_t>(-1 - static_cast<std::int64_t>(test.cut)) +
                     static_cast<std::size_t>(axis.n_cells);
    if (end > membership.size()) fail("a set test reaches beyond the membership table");
  }
}

}  // namespace xcount

// The trees of one output of an ensemble, laid on the grid: every test asks for a cell.
//
// Holds for each feature its axis of cells, and the trees' nodes. What walks rely on is checked
// when it is made: left[i] > i and right[i] > i (walks end), features and cuts exist, the missing
// cell is the last, and no path has more than 10,000 tests. V(region) = sum over the trees of the
// leaf that the region's cells lead to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "xcount/support/assert.hpp"
#include "xcount/support/value.hpp"

namespace xcount {

using Feature = std::int32_t;
using Cell = std::int32_t;
using NodeIndex = std::int32_t;

inline constexpr Feature kLeaf = -1;

// The cells of one feature. A numeric axis is ordered but for its missing cell; a categorical axis
// has no order at all. The distance of two cells with an order is that of their positions:
//   position(0) <= position(1) <= ... ;   on a regular axis, position(c) = c.
//
// The cells of a joint axis stand for combinations of cells of other axes, its coordinates; their
// distances add up.
struct Axis {
  Cell n_cells = 1;
  Cell missing_cell = -1;  // index of the cell of missing values (the last one), or -1
  bool ordered = true;
  bool all_prefixes = true;          // no test on this axis is a set test
  std::vector<Cell> positions = {};  // of all cells; empty on a regular axis

  std::vector<Axis> coordinates = {};              // of a joint axis
  std::vector<std::vector<Cell>> coordinate = {};  // [i][c]: the cell of coordinate i in cell c

  [[nodiscard]] bool regular() const { return positions.empty() && coordinates.empty(); }
  [[nodiscard]] Cell n_ordered() const { return n_cells - (missing_cell >= 0 ? 1 : 0); }
  [[nodiscard]] Cell position(Cell cell) const {
    return positions.empty() ? cell : positions[static_cast<std::size_t>(cell)];
  }
  [[nodiscard]] std::int64_t distance(Cell a, Cell b) const;
  [[nodiscard]] std::int64_t furthest() const;  // no two cells are further apart
  // The cells [first, last) of those with an order that are within reach of one of them.
  [[nodiscard]] std::pair<Cell, Cell> near(Cell cell, std::int64_t reach) const;
};

// A test: cells [0, cut) go left when cut >= 0, and the missing cell as missing_left says;
// otherwise cell c goes left iff membership[-1 - cut + c] != 0.
struct Test {
  Feature feature = kLeaf;
  std::int32_t cut = 0;
  bool missing_left = false;

  friend bool operator==(const Test&, const Test&) = default;
};

// What the forest is made from: parallel arrays over the nodes of all trees.
struct ForestArrays {
  std::span<const std::int32_t> n_cells;
  std::span<const std::int32_t> missing_cell;
  std::span<const std::uint8_t> ordered;
  std::span<const std::int32_t> roots;
  std::span<const std::int32_t> feature;
  std::span<const std::int32_t> cut;
  std::span<const std::uint8_t> missing_left;
  std::span<const std::int32_t> left;
  std::span<const std::int32_t> right;
  std::span<const std::uint64_t> limbs;          // n_nodes x kLimbs
  std::span<const std::uint8_t> membership;      // cells of set tests, see Test
  std::span<const std::int32_t> positions = {};  // of the cells of all axes; empty if regular
};

// Topology shared by all value types. Children have larger indices than their parent.
class Topology {
 public:
  explicit Topology(const ForestArrays& arrays);

  // Makes an axis without order a joint one: cells[i][c] is its cell c's cell of coordinate i.
  void join(Feature feature, std::vector<Axis> coordinates, std::vector<std::vector<Cell>> cells);

  std::vector<Axis> axes;
  std::vector<NodeIndex> roots;
  std::vector<Test> tests;
  std::vector<NodeIndex> left, right;
  std::vector<std::uint8_t> membership;

  [[nodiscard]] std::size_t n_nodes() const { return tests.size(); }
  [[nodiscard]] bool is_leaf(NodeIndex node) const { return test(node).feature == kLeaf; }
  [[nodiscard]] const Test& test(NodeIndex node) const {
    XCOUNT_ASSERT(node >= 0 && static_cast<std::size_t>(node) < n_nodes());
    return tests[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] const Axis& axis(Feature feature) const {
    XCOUNT_ASSERT(feature >= 0 && static_cast<std::size_t>(feature) < axes.size());
    return axes[static_cast<std::size_t>(feature)];
  }
  [[nodiscard]] bool goes_left(const Test& test, Cell cell) const {
    XCOUNT_ASSERT(cell >= 0 && cell < axis(test.feature).n_cells);
    if (test.cut < 0) {
      return membership[static_cast<std::size_t>(-1 - test.cut) + static_cast<std::size_t>(cell)] !=
             0;
    }
    return cell < test.cut || (test.missing_left && cell == axis(test.feature).missing_cell);
  }
  [[nodiscard]] NodeIndex child(NodeIndex node, Cell cell) const {
    XCOUNT_ASSERT(!is_leaf(node));
    const auto i = static_cast<std::size_t>(node);
    return goes_left(tests[i], cell) ? left[i] : right[i];
  }
  // The leaf of a region, given as one cell per feature.
  [[nodiscard]] NodeIndex leaf(NodeIndex root, std::span<const Cell> region) const {
    NodeIndex node = root;
    while (!is_leaf(node)) node = child(node, region[static_cast<std::size_t>(test(node).feature)]);
    return node;
  }

 private:
  void read_axes(const ForestArrays& arrays);
  static void read_positions(const ForestArrays& arrays, std::size_t start, Axis& axis);
  void read_nodes(const ForestArrays& arrays);
  void check_node(std::size_t node) const;
  void check_depth() const;
};

template <class Value>
struct Forest : Topology {
  explicit Forest(const ForestArrays& arrays) : Topology(arrays) {
    constexpr std::size_t width = ValueTraits<Value>::kLimbs;
    if (arrays.limbs.size() != n_nodes() * width) {
      throw std::invalid_argument("forest: leaf values have the wrong width");
    }
    values.reserve(n_nodes());
    for (std::size_t i = 0; i < n_nodes(); ++i) {
      values.push_back(ValueTraits<Value>::from_limbs(arrays.limbs.subspan(i * width, width)));
    }
  }

  std::vector<Value> values;

  [[nodiscard]] const Value& value(NodeIndex node) const {
    XCOUNT_ASSERT(is_leaf(node));
    return values[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] Value sum(std::span<const Cell> region) const {
    XCOUNT_ASSERT(region.size() == axes.size());
    Value total{};
    for (const NodeIndex root : roots) total += value(leaf(root, region));
    return total;
  }
};

}  // namespace xcount

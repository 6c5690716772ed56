// The trees of a query, one or several sums of them, compiled for samples that are single regions:
// given the non-sensitive cells of a sample, a tree shrinks to its tests of sensitive cells, and of
// those only the ones that tell the cells of a small box from each other. For every mask m of the
// box, a sum's residue has
//   sum of the trees at (x, m) = offset + sum over the residue's roots of the leaf at m,
// and it lies between least and most. Where only differences of masks matter, what is the same for
// all masks counts as 0:
// docs/approximate.md, "What is sampled", "Single regions".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xcount/trees/forest.hpp"

namespace xcount {

// The cells low <= c < high of one sensitive axis.
struct CellRange {
  Cell low = 0;
  Cell high = 0;

  [[nodiscard]] bool contains(Cell cell) const { return low <= cell && cell < high; }
};
using MaskBox = std::vector<CellRange>;  // one range per sensitive axis

// A column of drawn cells: one non-sensitive feature, its missing cell read as -1 if missing_low.
struct DrawnColumn {
  Feature feature = 0;
  bool missing_low = false;
};

// A test of a sensitive cell, or a leaf: then min and max are its value.
template <class Value>
struct ResidueNode {
  std::int32_t axis = -1;  // -1 for a leaf
  std::int32_t cut = 0;    // see RegionTrees: a cut, or a set of cells
  std::uint32_t low = 0, high = 0;
  Value min{}, max{};
};

// What is left of the trees on a box: constants are folded into the offset.
template <class Value>
struct Residue {
  std::vector<ResidueNode<Value>> nodes;
  std::vector<std::uint32_t> roots;
  Value offset{};
  Value least{}, most{};  // bounds of the sum on the box

  void clear(const Value& base = Value{}) {
    nodes.clear();
    roots.clear();
    offset = least = most = base;
  }
  // Becomes the residue of a - b.
  void set_difference(const Residue& a, const Residue& b);
  [[nodiscard]] bool is_constant() const { return roots.empty(); }
};

template <class Value>
class RegionTrees {
 public:
  // forests: one for each sum. whole: sums of all trees; else what masks change of them.
  RegionTrees(std::span<const Forest<Value>* const> forests, const std::vector<Feature>& sensitive,
              bool whole);

  [[nodiscard]] std::size_t n_trees() const { return roots_.size(); }
  [[nodiscard]] std::size_t sum_of(std::size_t tree) const { return sum_of_[tree]; }
  // Whether some tree has a test of a sensitive feature.
  [[nodiscard]] bool tells_masks_apart() const { return tells_masks_apart_; }
  [[nodiscard]] const std::vector<DrawnColumn>& columns() const { return columns_; }

  // Adds what is left of a tree for these cells (one per column) on the box, which is changed on
  // the way but comes back as it was.
  void restrict(std::size_t tree, std::span<const Cell> cells, MaskBox& box,
                Residue<Value>& out) const;
  // The same residue on a smaller box.
  void narrow(const Residue<Value>& from, MaskBox& box, Residue<Value>& out) const;
  // The sum at one mask of the residue's box, one cell per sensitive axis.
  [[nodiscard]] Value value_at(const Residue<Value>& residue, std::span<const Cell> mask) const;

 private:
  // column >= 0: left iff the column's cell is below the cut, or for cut < 0 iff
  // sets_[-1 - cut + cell] is set. column = -1 - axis: left iff the axis' cell is below the cut, or
  // for cut < 0 iff it is in cell_sets_[-1 - cut].
  struct Node {
    std::int32_t column = 0;
    std::int32_t cut = 0;
    std::uint32_t low = 0, high = 0;  // of a leaf: low is its value's index
  };
  // Cells of a sensitive axis: those below a cut along with the missing one, or, where the cut is
  // negative, those that prefix counts tell, from counts_[first_count] on.
  struct CellSet {
    Cell cut = -1;
    Cell missing = -1;
    std::size_t first_count = 0;
  };
  static constexpr std::int32_t kLeafColumn = INT32_MIN;
  enum class Side { kLow, kHigh, kBoth };

  template <class>
  friend class RegionCompiler;

  [[nodiscard]] Side side(std::int32_t cut, const CellRange& range) const;
  std::uint32_t grow(std::uint32_t node, std::span<const Cell> cells, MaskBox& box,
                     Residue<Value>& out) const;
  std::uint32_t regrow(const Residue<Value>& from, std::uint32_t node, MaskBox& box,
                       Residue<Value>& out) const;
  template <class Low, class High>
  std::uint32_t branch(std::size_t axis, std::int32_t cut, MaskBox& box, Residue<Value>& out,
                       Low low, High high) const;
  static std::uint32_t leaf(const Value& value, Residue<Value>& out);
  static void add_root(std::uint32_t root, Residue<Value>& out);

  std::vector<DrawnColumn> columns_;
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<std::uint8_t> sets_;
  std::vector<CellSet> cell_sets_;
  std::vector<std::int32_t> counts_;
  std::vector<std::uint32_t> roots_;   // of the trees that take part
  std::vector<std::uint32_t> sum_of_;  // per tree
  bool tells_masks_apart_ = false;
};

}  // namespace xcount

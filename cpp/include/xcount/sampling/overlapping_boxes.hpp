// Boxes of cells that may overlap, to draw combinations of cells from where hits are frequent.
//
// A box has a run of cells on each axis and a number of masks. It is drawn with a probability
// proportional to (share of all combinations in the box) * (its masks), then each cell of its runs
// alike. With around(x) = the masks of all boxes that hold x, together,
//   P(x) = around(x) / (all combinations * total()),
// so that for any f with 0 <= f(x) <= around(x)
//   E[f(x) / around(x)] = mean of f over all combinations / total():
// docs/approximate.md, "What is sampled", "Boxes of pairs".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xcount/sampling/weighted_picker.hpp"
#include "xcount/support/random.hpp"
#include "xcount/trees/forest.hpp"

namespace xcount {

class OverlappingBoxes {
 public:
  struct Axis {
    Feature feature = 0;
    Cell n_cells = 1;
  };
  // The masks of all boxes together are fewer.
  static constexpr std::uint64_t kMaxMasks = std::uint64_t{1} << 31;

  // runs: the first and the last cell of each box on each axis, box by box.
  OverlappingBoxes(std::vector<Axis> axes, std::vector<Cell> runs,
                   std::vector<std::uint32_t> n_masks);

  [[nodiscard]] const std::vector<Axis>& axes() const { return axes_; }
  [[nodiscard]] std::size_t size() const { return n_masks_.size(); }
  // The sum over the boxes of the share of combinations times the masks.
  [[nodiscard]] Share total() const { return total_; }
  [[nodiscard]] std::size_t bytes() const;

  // Sets one cell per axis.
  void draw(Random& random, std::span<Cell> cells) const;
  // The masks of all boxes that hold these cells.
  [[nodiscard]] std::uint32_t around(std::span<const Cell> cells) const;

 private:
  [[nodiscard]] const Cell* runs_of(std::size_t box) const {
    return runs_.data() + 2 * box * axes_.size();
  }
  [[nodiscard]] Share weight(std::size_t box) const;
  void mark_holders();

  std::vector<Axis> axes_;
  std::vector<Cell> runs_;
  std::vector<std::uint32_t> n_masks_;
  WeightedPicker picker_;
  Share total_ = 0;
  // Per axis and cell, a bit for each box: whether it holds the cell.
  std::vector<std::uint64_t> holders_;
  std::vector<std::size_t> first_;  // per axis, its first word in `holders_`
  std::size_t n_words_ = 0;         // per cell
};

}  // namespace xcount

// The axes of a grid that are streamed or held in memory, and how positions become keys.
//
// The axes with more than one cell play four roles, from the slowest to the fastest:
//   outer      streamed: sums along them are merges of sorted lists of corners
//   middle     held densely: sums along them are additions of whole slabs
//   sensitive  held densely, innermost but for the row: a column has all masks
//   row        non-sensitive, contiguous: its cells are the lanes of vectors
// A block fixes the outer cells; a tile fixes the middle cells, too.
//
// A key is linear in the positions:  key = sum over features f of step[f] * position of f,  with
//   key = outer fields (a bit field per axis, the slowest highest) | row number | place in the row,
//   row number = middle index * n_masks + mask position  (mixed radix, row_bits above the place).
// Proved in docs/corner-sums.md, "Streaming", "Blocks and threads".
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "xcount/exact/cell_order.hpp"
#include "xcount/trees/masks.hpp"

namespace xcount {

// An axis of the outer cells: the bit field of the keys it has, and its feature.
struct OuterAxis {
  Feature feature = 0;
  Cell n_cells = 1;
  unsigned shift = 0;  // the field is what remains of a key above this bit
};

struct CornerLayout {
  // is_idle: features that no counted leaf depends on; as if they had one cell, they have no axis.
  // lane_bytes: width of one sum; block_bytes: of a block of all outputs, unless a single tile has
  // more; max_tile_cells: of a tile, unless its shortest row has more.
  CornerLayout(std::span<const CellOrder> orders, const MaskSpace& masks,
               const std::vector<bool>& is_idle, std::size_t n_outputs, std::size_t lane_bytes,
               std::size_t n_lanes, std::size_t block_bytes,
               std::size_t max_tile_cells = std::numeric_limits<std::size_t>::max());

  // The same blocks and keys for vectors of one lane.
  [[nodiscard]] CornerLayout with_one_lane() const;

  std::vector<OuterAxis> outer;
  std::vector<Feature> middle, sensitive, row;
  std::vector<std::size_t> middle_cells, sensitive_cells, row_cells;  // of the same axes
  std::vector<std::uint64_t> step;                                    // per feature

  std::uint64_t n_regions = 1;  // of all features
  std::uint64_t n_copies = 1;   // combinations of the idle features' cells: all have the same sums
  std::uint64_t n_blocks = 1;
  std::size_t n_masks = 1;
  std::size_t n_tiles = 1;    // of a block
  std::size_t row_size = 1;   // cells
  std::size_t n_columns = 1;  // vectors of n_lanes that hold a row
  std::size_t n_lanes = 1;
  unsigned row_bits = 0;
  unsigned key_bits = 0;

  [[nodiscard]] std::size_t n_axes() const {
    return outer.size() + middle.size() + sensitive.size() + row.size();
  }
  [[nodiscard]] std::size_t tile_vectors() const { return n_columns * n_masks; }
  bool is_large = false;  // a single tile is larger than a block should be

 private:
  using Axes = std::vector<std::pair<std::size_t, Feature>>;  // (cells, feature), ascending

  void choose_row(Axes& axes, std::size_t max_cells);
  void choose_middle(Axes& axes, std::size_t max_vectors);
  void set_steps(std::size_t n_features);
};

}  // namespace xcount

// Which masks' sums decide each mask: neighbours as rows of a small table of extremes.
// Proved in docs/corner-sums.md, "Neighbours by windows".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "xcount/exact/cell_order.hpp"
#include "xcount/trees/masks.hpp"

namespace xcount {

// Masks by position: mixed radix over the sensitive axes with more than one cell, the last fastest.
// Unless `any` (every mask is near every other), the extremes around the mask at position m, itself
// included, are those of table rows near[first[m]] .. near[first[m + 1] - 1], with
//   table[i] = extreme of the sums at positions i .. min(i + width, n_ordered) - 1
// for i < n_ordered, and the sum at i itself for the others (width is a power of two; 1: the table
// is the sums). One ordered axis has windows: few rows each, however large the distance.
struct MaskWindows {
  MaskWindows(const Topology& forest, const MaskSpace& masks, std::span<const CellOrder> orders);

  bool any = false;
  std::size_t width = 1;
  std::size_t n_ordered = 0;
  std::vector<std::uint32_t> first, near;
  std::vector<MaskIndex> mask_at;  // the number of the mask at each position

  [[nodiscard]] std::size_t n_masks() const { return mask_at.size(); }
  [[nodiscard]] std::size_t bytes() const;

 private:
  void number_masks(const MaskSpace& masks, std::span<const CellOrder> orders);
  void cover(std::size_t begin, std::size_t end);  // adds rows for the positions [begin, end)
  void make_windows(std::size_t distance, bool has_missing);
  void list_neighbours(const MaskSpace& masks);
};

// No two masks of these features are further apart.
[[nodiscard]] std::int64_t furthest_distance(const Topology& forest,
                                             std::span<const Feature> features);

}  // namespace xcount

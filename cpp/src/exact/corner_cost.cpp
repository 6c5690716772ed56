#include <algorithm>
#include <limits>
#include <stdexcept>

#include "xcount/exact/corner_plan.hpp"
#include "xcount/exact/corner_sums.hpp"

namespace xcount {

namespace {

constexpr double kMostCorners = 1e11;
constexpr double kMostMasks = 1 << 22;
constexpr std::size_t kTreesLookedAt = 200;

// A sample of many trees is enough for an estimate.
double corners_of(const Topology& forest, const CornerGround& ground, const LeafFlags& counted) {
  const std::size_t stride = 1 + forest.roots.size() / kTreesLookedAt;
  return count_corners(forest, ground.orders, counted, stride, kMostCorners);
}

// Lists are as long as there are corners, or places below them; each is written for every cell of
// its axis, and read once for each time that the axes above move on.
double listed_corners(const CornerLayout& layout, double n_corners) {
  double n_listed = 0;
  double n_times = 1;
  double n_places = static_cast<double>(layout.n_regions / layout.n_copies);
  for (const OuterAxis& axis : layout.outer) {
    n_listed += n_times * std::min(n_corners, n_places);
    n_times *= axis.n_cells;
    n_places /= axis.n_cells;
    if (&axis != &layout.outer.back()) n_listed += n_times * std::min(n_corners, n_places);
  }
  return n_listed;
}

}  // namespace

CornerCost estimate_corner_cost(std::span<const Topology* const> forests, const MaskSpace& masks,
                                bool gaps_only, std::size_t lane_bytes) {
  CornerCost cost;
  if (static_cast<double>(masks.size()) > kMostMasks) {
    cost.n_regions = std::numeric_limits<double>::infinity();
    return cost;
  }
  const CornerGround ground(forests, masks, gaps_only);
  for (std::size_t f = 0; f < ground.orders.size(); ++f) {
    const auto n = ground.orders[f].n_cells();
    if (n == 1 || (ground.is_idle[f] && !ground.is_sensitive[f])) continue;
    cost.n_regions *= n;
    ++cost.n_axes;
  }
  cost.n_rows = ground.windows.rows_per_mask();
  for (std::size_t k = 0; k < forests.size(); ++k) {
    cost.n_corners += corners_of(*forests[k], ground, ground.counted[k]);
  }
  try {
    const CornerLayout layout(ground.orders, masks, ground.is_idle, forests.size(), lane_bytes,
                              64 / lane_bytes, kBlockBytes);
    cost.n_listed = listed_corners(layout, cost.n_corners);
    const auto row_lanes = static_cast<double>(layout.n_columns * layout.n_lanes);
    cost.n_lanes = cost.n_regions * row_lanes / static_cast<double>(layout.row_size);
    const auto n_vectors = layout.n_masks * forests.size() + 2 * ground.windows.table_size();
    cost.column_bytes = 64.0 * static_cast<double>(n_vectors);
  } catch (const std::length_error&) {  // there is no layout for so much
    cost.n_listed = std::numeric_limits<double>::infinity();
  }
  return cost;
}

}  // namespace xcount

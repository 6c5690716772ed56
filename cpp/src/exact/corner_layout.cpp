#include "xcount/exact/corner_layout.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>
#include <utility>

#include "xcount/exact/mask_windows.hpp"
#include "xcount/support/assert.hpp"

namespace xcount {

namespace {

constexpr std::size_t kMaxTileBytes = std::size_t{1} << 30;
constexpr std::size_t kLongRow = 48;   // cells: shorter rows take another axis in
constexpr std::size_t kShortRow = 24;  // the same where the tile is large
constexpr std::size_t kLargeTile = std::size_t{1} << 14;  // vectors, beyond the cache of a core
constexpr std::size_t kTileVectors = 128;  // smaller tiles take another axis in, up to kMaxRow
constexpr std::size_t kMaxRow = 1024;

[[noreturn]] void too_large(const char* what) {
  throw std::length_error(std::string("corner sums: too many ") + what +
                          "; use --method auto or exact");
}

unsigned bits_for(std::uint64_t n) { return static_cast<unsigned>(std::bit_width(n - 1)); }

}  // namespace

CornerLayout::CornerLayout(std::span<const CellOrder> orders, const MaskSpace& masks,
                           const std::vector<bool>& is_idle, std::size_t n_outputs,
                           std::size_t lane_bytes, std::size_t lanes, std::size_t block_bytes,
                           std::size_t max_tile_cells)
    : n_lanes(lanes) {
  Axes axes;
  for (std::size_t f = 0; f < orders.size(); ++f) {
    const auto n = static_cast<std::uint64_t>(orders[f].n_cells());
    if (n_regions > (std::uint64_t{1} << 62) / n) too_large("regions");
    n_regions *= n;
    if (n == 1 || masks.is_sensitive(static_cast<Feature>(f))) continue;
    if (is_idle[f]) {
      n_copies *= n;
    } else {
      axes.emplace_back(n, static_cast<Feature>(f));
    }
  }
  for (const Feature f : features_by_position(masks)) {
    const auto n = static_cast<std::size_t>(orders[static_cast<std::size_t>(f)].n_cells());
    if (n == 1) continue;
    sensitive.push_back(f);
    sensitive_cells.push_back(n);
    n_masks *= n;
  }
  std::sort(axes.begin(), axes.end());
  const std::size_t vector_bytes = n_outputs * lane_bytes * n_lanes;
  const std::size_t most_cells = kMaxTileBytes / vector_bytes * n_lanes;
  choose_row(axes, std::min(max_tile_cells, most_cells) / n_masks);
  if (tile_vectors() > kMaxTileBytes / vector_bytes) too_large("masks");
  is_large = tile_vectors() > block_bytes / vector_bytes;
  choose_middle(axes, block_bytes / vector_bytes);
  for (const auto& [n, f] :
       axes) {  // the longest last: its lists are read most often, and shortest
    outer.push_back({f, static_cast<Cell>(n), 0});
    n_blocks *= n;
  }
  set_steps(orders.size());
  XCOUNT_ASSERT(n_blocks * n_tiles * n_masks * row_size * n_copies == n_regions);
  XCOUNT_ASSERT(row_size <= n_columns * n_lanes && n_columns * n_lanes < row_size + n_lanes);
}

CornerLayout CornerLayout::with_one_lane() const {
  CornerLayout result = *this;
  result.n_lanes = 1;
  result.n_columns = row_size;
  return result;
}

// The longest axis of at most max_cells, or else the shortest; short ones join it where vectors
// would be half empty, or tiles tiny.
void CornerLayout::choose_row(Axes& axes, std::size_t max_cells) {
  const auto take = [&](std::size_t i) {
    const auto& [n, f] = axes[i];
    row.insert(row.begin(), f);
    row_cells.insert(row_cells.begin(), n);
    row_size *= n;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
    n_columns = (row_size + n_lanes - 1) / n_lanes;
  };
  if (n_lanes == 1) return;
  if (!axes.empty()) {
    std::size_t longest = axes.size() - 1;
    while (longest > 0 && axes[longest].first > max_cells) --longest;
    take(longest);
  }
  const auto is_short = [&] {
    return row_size < (tile_vectors() > kLargeTile ? kShortRow : kLongRow);
  };
  while (!axes.empty() && (is_short() || tile_vectors() < kTileVectors) &&
         row_size * axes.front().first <= std::min(kMaxRow, max_cells)) {
    take(0);
  }
}

void CornerLayout::choose_middle(Axes& axes, std::size_t max_vectors) {
  while (!axes.empty() && n_tiles * axes.front().first <= max_vectors / tile_vectors()) {
    middle.push_back(axes.front().second);
    middle_cells.push_back(axes.front().first);
    n_tiles *= axes.front().first;
    axes.erase(axes.begin());
  }
}

void CornerLayout::set_steps(std::size_t n_features) {
  XCOUNT_ASSERT(middle.size() == middle_cells.size() && row.size() == row_cells.size());
  step.assign(n_features, 0);
  std::uint64_t stride = 1;
  const auto set = [&](const std::vector<Feature>& features,
                       const std::vector<std::size_t>& cells) {
    for (std::size_t i = features.size(); i-- > 0;) {
      step[static_cast<std::size_t>(features[i])] = stride;
      stride *= cells[i];
    }
  };
  set(row, row_cells);
  row_bits = bits_for(row_size);
  stride = std::uint64_t{1} << row_bits;
  set(sensitive, sensitive_cells);
  set(middle, middle_cells);
  unsigned shift = row_bits + bits_for(n_tiles * n_masks);
  for (std::size_t i = outer.size(); i-- > 0;) {
    outer[i].shift = shift;
    if (shift >= 64) too_large("axes");
    step[static_cast<std::size_t>(outer[i].feature)] = std::uint64_t{1} << shift;
    shift += bits_for(static_cast<std::uint64_t>(outer[i].n_cells));
  }
  if (shift > 64) too_large("axes");
  key_bits = shift;
  XCOUNT_ASSERT(outer.empty() || key_bits > outer.back().shift);
}

}  // namespace xcount

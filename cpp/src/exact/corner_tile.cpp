#include "xcount/exact/corner_tile.hpp"

#include "xcount/support/assert.hpp"

namespace xcount {

namespace {

Neighbours view_of(const MaskWindows& windows) {
  XCOUNT_ASSERT(windows.any || windows.growth.empty() ||
                windows.n_planes.size() + 1 == windows.growth.size());
  XCOUNT_ASSERT(windows.any || !windows.growth.empty() ||
                windows.first.size() == windows.line.n_cells + 1);
  Neighbours masks;
  masks.any = windows.any;
  masks.n_masks = windows.n_masks;
  masks.ball_axes = {windows.ball_axes.data(), windows.ball_axes.size()};
  masks.n_levels = windows.n_levels;
  masks.line = windows.line;
  masks.width = windows.width;
  masks.first = windows.first.data();
  masks.grown = {windows.grown.data(), windows.grown.size()};
  masks.growth = {windows.growth.data(), windows.growth.size()};
  masks.n_planes = windows.n_planes.data();
  return masks;
}

}  // namespace

template <class T>
std::vector<NearExtremes<T>> connect(const MaskWindows& windows, NearTables<T>& tables) {
  std::vector<NearExtremes<T>> near;
  near.reserve(windows.near.size());
  for (const NearRow& row : windows.near) {
    XCOUNT_ASSERT(row.level <= windows.n_levels && row.cell < windows.line.n_cells);
    const bool is_window =
        windows.width > 1 && row.level == windows.n_levels && row.cell < windows.line.n_ordered;
    const std::size_t table = row.level + (is_window ? 1 : 0);  // 0: what is compared itself
    const std::size_t begin = row.cell * windows.line.stride;
    const std::size_t place = (table - 1) * windows.n_masks + begin;
    XCOUNT_ASSERT(table == 0 || place < windows.table_size());
    if (table == 0) {
      near.push_back({tables.decided + begin, tables.decided + begin});
    } else {
      near.push_back({tables.highest + place, tables.lowest + place});
    }
  }
  tables.masks = view_of(windows);
  tables.near = near.data();
  return near;
}

template <class T>
TileKernels<T> choose_kernels(bool weighted, [[maybe_unused]] VectorUnit most) {
#if defined(__x86_64__)
  switch (vector_unit(most)) {
    case VectorUnit::kAvx512:
      return unit_kernels<T, 64>(weighted);
    case VectorUnit::kAvx2:
      return unit_kernels<T, 32>(weighted);
    case VectorUnit::kPlain:
      break;
  }
#endif
  return unit_kernels<T, 16>(weighted);
}

template std::vector<NearExtremes<std::uint16_t>> connect(const MaskWindows&,
                                                          NearTables<std::uint16_t>&);
template std::vector<NearExtremes<std::int32_t>> connect(const MaskWindows&,
                                                         NearTables<std::int32_t>&);
template std::vector<NearExtremes<std::int64_t>> connect(const MaskWindows&,
                                                         NearTables<std::int64_t>&);

template TileKernels<std::int32_t> choose_kernels<std::int32_t>(bool, VectorUnit);
template TileKernels<std::int64_t> choose_kernels<std::int64_t>(bool, VectorUnit);

}  // namespace xcount

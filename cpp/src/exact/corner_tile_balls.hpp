// The extremes around every mask of a column, within a distance: by tables of balls and windows, or
// by shifts (mask_windows.hpp). Included by corner_tile_decisions.hpp only;
// corner_tile_kernels.hpp says how all of it is compiled.
#pragma once

#include <cstddef>
#include <cstdint>

#include "corner_tile_registers.hpp"
#include "xcount/exact/corner_tile.hpp"

namespace xcount {

namespace {

template <class T>
struct Extremes {
  Signed<T> high, low;
};

template <class T>
XCOUNT_INLINE void widen(Extremes<T>& extremes, const Signed<T>& high, const Signed<T>& low) {
  extremes.high = high > extremes.high ? high : extremes.high;
  extremes.low = low < extremes.low ? low : extremes.low;
}

template <class T>
XCOUNT_INLINE Extremes<T> extremes_at(const Lanes<T>* high, const Lanes<T>* low, std::size_t i,
                                      std::size_t offset) {
  return {load<Signed<T>>(high[i], offset), load<Signed<T>>(low[i], offset)};
}

template <class T>
XCOUNT_INLINE void widen_by(Extremes<T>& extremes, const Lanes<T>* high, const Lanes<T>* low,
                            std::size_t i, std::size_t offset) {
  widen<T>(extremes, load<Signed<T>>(high[i], offset), load<Signed<T>>(low[i], offset));
}

// Writes the extremes at some masks to two tables. It holds copies, which no store changes.
template <class T>
struct Keep {
  Lanes<T>* high;
  Lanes<T>* low;
  std::size_t offset;

  XCOUNT_INLINE void operator()(std::size_t place, const Extremes<T>& extremes) const {
    store(high[place], offset, extremes.high);
    store(low[place], offset, extremes.low);
  }
};

// Tables of one level of the balls; level 0 is what is compared.
template <class T>
XCOUNT_INLINE NearExtremes<T> ball_level(const NearTables<T>& tables, std::size_t level) {
  if (level == 0) return {tables.decided, tables.decided};
  const std::size_t begin = (level - 1) * tables.masks.n_masks;
  return {tables.highest + begin, tables.lowest + begin};
}

// The extremes of the cells of a line from `begin` on.
template <class T>
XCOUNT_INLINE Extremes<T> line_extremes(const NearTables<T>& tables, const MaskAxis& axis,
                                        const NearExtremes<T>& level, std::size_t base,
                                        std::size_t begin) {
  const std::size_t last = base + (axis.n_cells - 1) * axis.stride;
  Extremes<T> result = extremes_at<T>(level.high, level.low, last, tables.offset);
  for (std::size_t c = begin; c + 1 < axis.n_cells; ++c) {
    widen_by<T>(result, level.high, level.low, base + c * axis.stride, tables.offset);
  }
  return result;
}

// Widens the balls along one axis, at the cells of the line that starts at `base`. With P the
// levels before this axis (level r stands for min(r, n_before)) and B those after it,
//   B[r](c) = extreme of P[r](c), B[r-1](c - 1), B[r-1](c + 1), P[r-1](loose cells)  for ordered c
//   B[r](c) = extreme of P[r](c), P[r-1](all cells)                                  for loose c.
template <class T>
XCOUNT_INLINE void widen_balls(const NearTables<T>& tables, const MaskAxis& axis,
                               std::size_t n_before, std::size_t base) {
  const std::size_t n_ordered = axis.n_ordered;
  const std::size_t offset = tables.offset;
  const bool has_loose = n_ordered < axis.n_cells;
  Extremes<T> loose{}, all{};
  for (std::size_t r = 1; r <= axis.n_levels; ++r) {
    const NearExtremes<T> below = ball_level(tables, r - 1);
    if (has_loose && r == 1) {
      loose = line_extremes<T>(tables, axis, below, base, n_ordered);
      all = line_extremes<T>(tables, axis, below, base, 0);
    }
    // Beyond n_before, B[r-1](c) holds P[r](c) and lies within B[r](c).
    const NearExtremes<T> own = r <= n_before ? ball_level(tables, r) : below;
    Extremes<T> next_loose = loose, next_all = all;
    if (has_loose && r <= n_before) {
      next_loose = line_extremes<T>(tables, axis, own, base, n_ordered);
      next_all = line_extremes<T>(tables, axis, own, base, 0);
    }
    const std::size_t table = (r - 1) * tables.masks.n_masks;
    const Keep<T> keep{tables.highest + table, tables.lowest + table, offset};
    for (std::size_t c = 0; c < axis.n_cells; ++c) {
      const std::size_t m = base + c * axis.stride;
      Extremes<T> extremes = extremes_at<T>(own.high, own.low, m, offset);
      if (c < n_ordered) {
        if (c > 0) widen_by<T>(extremes, below.high, below.low, m - axis.stride, offset);
        if (c + 1 < n_ordered) {
          widen_by<T>(extremes, below.high, below.low, m + axis.stride, offset);
        }
        if (has_loose) widen<T>(extremes, loose.high, loose.low);
      } else {
        widen<T>(extremes, all.high, all.low);
      }
      keep(m, extremes);
    }
    loose = next_loose;
    all = next_all;
  }
}

template <class T>
__attribute__((noinline)) void make_balls(NearTables<T> tables) {
  std::size_t n_before = 0;
  for (std::size_t i = 0; i < tables.masks.ball_axes.size; ++i) {
    const MaskAxis axis = tables.masks.ball_axes.data[i];
    const std::size_t period = axis.stride * axis.n_cells;
    for (std::size_t begin = 0; begin < tables.masks.n_masks; begin += period) {
      for (std::size_t base = begin; base < begin + axis.stride; ++base) {
        widen_balls<T>(tables, axis, n_before, base);
      }
    }
    n_before = axis.n_levels;
  }
}

// The table of windows at the ordered cells of a line: first those of one cell, then doubled.
template <class T>
__attribute__((noinline)) void make_windows(const NearTables<T>& tables, std::size_t base) {
  const auto [n_cells, n_ordered, stride, unused] = tables.masks.line;
  const std::size_t width = tables.masks.width;
  const std::size_t offset = tables.offset;
  NearExtremes<T> from = ball_level(tables, tables.masks.n_levels);
  const std::size_t table = tables.masks.n_levels * tables.masks.n_masks;
  const Keep<T> keep{tables.highest + table, tables.lowest + table, offset};
  for (std::size_t step = 1; step < width; step *= 2) {
    for (std::size_t c = 0; c < n_ordered; ++c) {
      const std::size_t m = base + c * stride;
      Extremes<T> extremes = extremes_at<T>(from.high, from.low, m, offset);
      if (c + step < n_ordered) {
        widen_by<T>(extremes, from.high, from.low, m + step * stride, offset);
      }
      keep(m, extremes);
    }
    from = {keep.high, keep.low};
  }
}

// On its own, as `grow` is.
template <class T, class Visit>
__attribute__((noinline)) void visit_line(const NearTables<T>& tables, std::size_t base,
                                          Visit visit) {
  const auto [n_cells, n_ordered, stride, unused] = tables.masks.line;
  const std::uint32_t* first = tables.masks.first;
  const NearExtremes<T>* near = tables.near;
  const Lanes<T>* decided = tables.decided;
  const std::size_t offset = tables.offset;
  for (std::size_t c = 0; c < n_cells; ++c) {
    const std::size_t m = base + c * stride;
    const auto own = load<Signed<T>>(decided[m], offset);
    Extremes<T> extremes{own, own};
    for (std::uint32_t i = first[c]; i < first[c + 1]; ++i) {
      widen_by<T>(extremes, near[i].high, near[i].low, base, offset);
    }
    visit(m, extremes);
  }
}

// A shift at work on one plane, that is a cell of the slowest axis: what it reads from the plane's
// first mask on, where the planes are that it reaches (or the ends of the axis), and what it makes.
template <class T>
struct Shift {
  std::size_t plane, reach;
  const Lanes<T>* high;
  const Lanes<T>* low;
  std::ptrdiff_t down, up;
  Lanes<T>* to_high;
  Lanes<T>* to_low;
  bool is_first, is_last;  // the first one has the mask itself, the last one is the result
};

// Calls visit(place in the plane, extremes) with the balls that a shift makes. On its own, and for
// a known number of axes, because registers are few. (kAxes = 0: any number.)
template <class T, bool kFirst, std::size_t kAxes, class Visit>
__attribute__((noinline)) void grow(const NearTables<T>& tables, const Shift<T>& own, Visit visit) {
  const Items<MaskAxis> axes = tables.masks.grown;
  const std::size_t n = axes.data[0].n_cells;
  const std::size_t size = axes.data[axes.size - 1].stride;
  const std::size_t n_others = kAxes > 0 ? kAxes - 1 : axes.size - 1;
  const std::size_t offset = tables.offset;
  const std::size_t reach = own.reach;
  std::ptrdiff_t down[kMaxGrownAxes] = {own.down};
  std::ptrdiff_t up[kMaxGrownAxes] = {own.up};
  for (std::size_t base = 0, row = 0; base < size; base += n, ++row) {
    for (std::size_t i = 1; i < n_others; ++i) {
      const MaskAxis& axis = axes.data[i];
      const std::size_t cell = kAxes == 3 ? row : base / axis.stride % axis.n_cells;
      const std::size_t left = axis.n_cells - 1 - cell;
      down[i] = -static_cast<std::ptrdiff_t>((cell < reach ? cell : reach) * axis.stride);
      up[i] = static_cast<std::ptrdiff_t>((left < reach ? left : reach) * axis.stride);
    }
    const Lanes<T>* high = own.high + base;
    const Lanes<T>* low = own.low + base;
    for (std::size_t cell = 0; cell < n; ++cell) {
      const std::size_t before = cell < reach ? 0 : cell - reach;
      const std::size_t after = cell + reach < n ? cell + reach : n - 1;
      Extremes<T> extremes = extremes_at<T>(high, low, before, offset);
      widen_by<T>(extremes, high, low, after, offset);
      for (std::size_t i = 0; i < n_others; ++i) {
        widen_by<T>(extremes, high + down[i], low + down[i], cell, offset);
        widen_by<T>(extremes, high + up[i], low + up[i], cell, offset);
      }
      if constexpr (kFirst) widen_by<T>(extremes, high, low, cell, offset);
      visit(base + cell, extremes);
    }
  }
}

template <class T, class Visit>
XCOUNT_INLINE void grow_plane(const NearTables<T>& tables, const Shift<T>& own, Visit visit) {
  const std::size_t n_axes = tables.masks.grown.size;
  if (own.is_first) {
    if (n_axes == 2) return grow<T, true, 2>(tables, own, visit);
    if (n_axes == 3) return grow<T, true, 3>(tables, own, visit);
    return grow<T, true, 0>(tables, own, visit);
  }
  if (n_axes == 2) return grow<T, false, 2>(tables, own, visit);
  if (n_axes == 3) return grow<T, false, 3>(tables, own, visit);
  grow<T, false, 0>(tables, own, visit);
}

// Calls visit(mask, extremes), given those by their place in a plane.
template <class Visit>
struct FromPlane {
  Visit visit;
  std::size_t begin;

  template <class E>
  XCOUNT_INLINE void operator()(std::size_t place, const E& extremes) const {
    visit(begin + place, extremes);
  }
};

// The shifts that have a plane to make, each as far behind the one before as it reaches: the first
// one is at `front` less its reach. Returns how many.
template <class T>
__attribute__((noinline)) std::size_t set_shifts(const NearTables<T>& tables, std::size_t front,
                                                 Shift<T>* shifts) {
  const Neighbours& masks = tables.masks;
  const MaskAxis& slowest = masks.grown.data[masks.grown.size - 1];
  const std::size_t size = slowest.stride;
  const Lanes<T>* high = tables.decided;
  const Lanes<T>* low = tables.decided;
  std::size_t n_planes = slowest.n_cells;  // of what is read: plane p is at place p % n_planes
  std::size_t n = 0, lag = 0, table = 0;
  for (std::size_t step = 0; step < masks.growth.size; ++step) {
    const std::size_t reach = masks.growth.data[step];
    lag += reach;
    if (front < lag) break;  // this shift has no plane yet, nor have the later ones
    const std::size_t plane = front - lag;
    const bool is_last = step + 1 == masks.growth.size;
    const std::size_t n_made = is_last ? 1 : masks.n_planes[step];
    if (plane < slowest.n_cells) {
      const std::size_t left = slowest.n_cells - 1 - plane;
      const auto place = [&](std::size_t p) XCOUNT_LAMBDA {
        return static_cast<std::ptrdiff_t>(p % n_planes * size);
      };
      const std::ptrdiff_t at = place(plane);
      const std::ptrdiff_t down = place(plane - (plane < reach ? plane : reach)) - at;
      const std::ptrdiff_t up = place(plane + (left < reach ? left : reach)) - at;
      const std::size_t made = table + plane % n_made * size;
      shifts[n++] = {plane,
                     reach,
                     high + at,
                     low + at,
                     down,
                     up,
                     tables.highest + made,
                     tables.lowest + made,
                     step == 0,
                     is_last};
    }
    high = tables.highest + table;
    low = tables.lowest + table;
    n_planes = n_made;
    table += n_made * size;
  }
  return n;
}

// One plane of each shift's balls; calls visit(mask, extremes) for the last one's.
template <class T, class Visit>
__attribute__((noinline)) void grow_front(const NearTables<T>& tables, std::size_t front,
                                          Visit visit) {
  Shift<T> shifts[kMaxShifts];
  const std::size_t n = set_shifts<T>(tables, front, shifts);
  for (std::size_t i = 0; i < n; ++i) {
    const Shift<T>& own = shifts[i];
    if (own.is_last) {
      const std::size_t begin =
          own.plane * tables.masks.grown.data[tables.masks.grown.size - 1].stride;
      grow_plane<T>(tables, own, FromPlane<Visit>{visit, begin});
    } else {
      grow_plane<T>(tables, own, Keep<T>{own.to_high, own.to_low, tables.offset});
    }
  }
}

// The number of fronts, the first of which have no plane of the last shift's balls yet.
template <class T>
XCOUNT_INLINE std::size_t end_of_fronts(const NearTables<T>& tables) {
  const Neighbours& masks = tables.masks;
  std::size_t end = masks.grown.data[masks.grown.size - 1].n_cells;
  for (std::size_t step = 0; step < masks.growth.size; ++step) end += masks.growth.data[step];
  return end;
}

// Calls visit(mask, extremes around it) for every mask.
template <class T, class Visit>
XCOUNT_INLINE void visit_near(const NearTables<T>& tables, Visit visit) {
  const Neighbours& masks = tables.masks;
  if (masks.growth.size > 0) {
    const std::size_t end = end_of_fronts<T>(tables);
    for (std::size_t front = masks.growth.data[0]; front < end; ++front) {
      grow_front<T>(tables, front, visit);
    }
    return;
  }
  make_balls<T>(tables);
  const std::size_t period = masks.line.stride * masks.line.n_cells;
  for (std::size_t begin = 0; begin < masks.n_masks; begin += period) {
    for (std::size_t base = begin; base < begin + masks.line.stride; ++base) {
      if (masks.width > 1) make_windows<T>(tables, base);
      visit_line<T>(tables, base, visit);
    }
  }
}

// Sets tables.high and tables.low at the lanes of one register.
template <class T>
__attribute__((noinline)) void find_extremes(const NearTables<T>& tables) {
  visit_near<T>(tables, Keep<T>{tables.high, tables.low, tables.offset});
}

}  // namespace

}  // namespace xcount

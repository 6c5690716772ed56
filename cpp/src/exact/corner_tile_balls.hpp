// The extremes of what is compared around every mask of a column, within a distance: by tables of
// balls and windows, or by shifts (mask_windows.hpp). Included by corner_tile_decisions.hpp alone;
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

// Tables of one level of the balls; level 0 is what is compared.
template <class T>
struct Level {
  const Lanes<T>* high;
  const Lanes<T>* low;
};

template <class T>
XCOUNT_INLINE Level<T> ball_level(const TileJob<T>& job, std::size_t level) {
  if (level == 0) return {job.decided, job.decided};
  return {job.highest + (level - 1) * job.n_masks, job.lowest + (level - 1) * job.n_masks};
}

// What the cells of a line have in common: the extremes of those from `begin` on.
template <class T>
XCOUNT_INLINE Extremes<T> line_extremes(const TileJob<T>& job, const MaskAxis& axis,
                                        const Level<T>& level, std::size_t base,
                                        std::size_t begin) {
  const std::size_t last = base + (axis.n_cells - 1) * axis.stride;
  Extremes<T> result = extremes_at<T>(level.high, level.low, last, job.offset);
  for (std::size_t c = begin; c + 1 < axis.n_cells; ++c) {
    widen_by<T>(result, level.high, level.low, base + c * axis.stride, job.offset);
  }
  return result;
}

// Widens the balls along one axis, at the cells of the line that starts at `base`. With P the
// levels before this axis (level r stands for min(r, n_before)) and B those after it,
//   B[r](c) = extreme of P[r](c), B[r-1](c - 1), B[r-1](c + 1), P[r-1](loose cells)  for ordered c
//   B[r](c) = extreme of P[r](c), P[r-1](all cells)                                  for loose c.
template <class T>
XCOUNT_INLINE void widen_balls(TileJob<T>& job, const MaskAxis& axis, std::size_t n_before,
                               std::size_t base) {
  const std::size_t n_ordered = axis.n_ordered;
  const bool has_loose = n_ordered < axis.n_cells;
  Extremes<T> loose{}, all{};
  for (std::size_t r = 1; r <= axis.n_levels; ++r) {
    const Level<T> below = ball_level(job, r - 1);
    if (has_loose && r == 1) {
      loose = line_extremes<T>(job, axis, below, base, n_ordered);
      all = line_extremes<T>(job, axis, below, base, 0);
    }
    // Beyond n_before, B[r-1](c) holds P[r](c) and lies within B[r](c).
    const Level<T> own = r <= n_before ? ball_level(job, r) : below;
    Extremes<T> next_loose = loose, next_all = all;
    if (has_loose && r <= n_before) {
      next_loose = line_extremes<T>(job, axis, own, base, n_ordered);
      next_all = line_extremes<T>(job, axis, own, base, 0);
    }
    for (std::size_t c = 0; c < axis.n_cells; ++c) {
      const std::size_t m = base + c * axis.stride;
      Extremes<T> extremes = extremes_at<T>(own.high, own.low, m, job.offset);
      if (c < n_ordered) {
        if (c > 0) widen_by<T>(extremes, below.high, below.low, m - axis.stride, job.offset);
        if (c + 1 < n_ordered) {
          widen_by<T>(extremes, below.high, below.low, m + axis.stride, job.offset);
        }
        if (has_loose) widen<T>(extremes, loose.high, loose.low);
      } else {
        widen<T>(extremes, all.high, all.low);
      }
      store(job.highest[(r - 1) * job.n_masks + m], job.offset, extremes.high);
      store(job.lowest[(r - 1) * job.n_masks + m], job.offset, extremes.low);
    }
    loose = next_loose;
    all = next_all;
  }
}

template <class T>
XCOUNT_INLINE void make_balls(TileJob<T>& job) {
  std::size_t n_before = 0;
  for (std::size_t i = 0; i < job.n_ball_axes; ++i) {
    const MaskAxis& axis = job.ball_axes[i];
    const std::size_t period = axis.stride * axis.n_cells;
    for (std::size_t begin = 0; begin < job.n_masks; begin += period) {
      for (std::size_t base = begin; base < begin + axis.stride; ++base) {
        widen_balls<T>(job, axis, n_before, base);
      }
    }
    n_before = axis.n_levels;
  }
}

// The table of windows at the ordered cells of a line: at first those of one cell, then doubled.
template <class T>
__attribute__((noinline)) void make_windows(TileJob<T> job, std::size_t base) {
  Level<T> from = ball_level(job, job.n_levels);
  Lanes<T>* high = job.highest + job.n_levels * job.n_masks;
  Lanes<T>* low = job.lowest + job.n_levels * job.n_masks;
  for (std::size_t step = 1; step < job.width; step *= 2) {
    for (std::size_t c = 0; c < job.line.n_ordered; ++c) {
      const std::size_t m = base + c * job.line.stride;
      Extremes<T> extremes = extremes_at<T>(from.high, from.low, m, job.offset);
      if (c + step < job.line.n_ordered) {
        widen_by<T>(extremes, from.high, from.low, m + step * job.line.stride, job.offset);
      }
      store(high[m], job.offset, extremes.high);
      store(low[m], job.offset, extremes.low);
    }
    from = {high, low};
  }
}

// On its own, as `grow` is.
template <class T, class Decide>
__attribute__((noinline)) void decide_line(const TileJob<T>& job, std::size_t base, Decide decide) {
  const std::size_t n_cells = job.line.n_cells;
  const std::size_t stride = job.line.stride;
  const std::size_t offset = job.offset;
  const std::uint32_t* first = job.first;
  const NearExtremes<T>* near = job.near;
  const Lanes<T>* decided = job.decided;
  for (std::size_t c = 0; c < n_cells; ++c) {
    const std::size_t m = base + c * stride;
    const auto own = load<Signed<T>>(decided[m], offset);
    Extremes<T> extremes{own, own};
    for (std::uint32_t i = first[c]; i < first[c + 1]; ++i) {
      widen_by<T>(extremes, near[i].high, near[i].low, base, offset);
    }
    decide(m, extremes);
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
  bool is_first, is_last;  // the first one has the mask itself, the last one decides
};

// Calls visit(place in the plane, extremes) with the balls that a shift makes. On its own, and for
// a known number of axes: registers are few. Visit holds copies, which no store changes. (kAxes =
// 0: any number.)
template <class T, bool kFirst, std::size_t kAxes, class Visit>
__attribute__((noinline)) void grow(const TileJob<T>& job, const Shift<T>& own, Visit visit) {
  const std::size_t n = job.grown[0].n_cells;
  const std::size_t size = job.grown[job.n_grown - 1].stride;
  const std::size_t n_others = kAxes > 0 ? kAxes - 1 : job.n_grown - 1;
  const std::size_t offset = job.offset;
  const std::size_t reach = own.reach;
  std::ptrdiff_t down[kMaxGrownAxes] = {own.down};
  std::ptrdiff_t up[kMaxGrownAxes] = {own.up};
  for (std::size_t base = 0, row = 0; base < size; base += n, ++row) {
    for (std::size_t i = 1; i < n_others; ++i) {
      const MaskAxis& axis = job.grown[i];
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

template <class T, bool kFirst, class Visit>
XCOUNT_INLINE void grow_plane(const TileJob<T>& job, const Shift<T>& own, Visit visit) {
  if (job.n_grown == 2) {
    grow<T, kFirst, 2>(job, own, visit);
  } else if (job.n_grown == 3) {
    grow<T, kFirst, 3>(job, own, visit);
  } else {
    grow<T, kFirst, 0>(job, own, visit);
  }
}

// One plane of a shift's balls, which the last shift decides.
template <class T, class Decide>
XCOUNT_INLINE void grow_or_decide(const TileJob<T>& job, const Shift<T>& own, Decide decide) {
  const auto keep = [high = own.to_high, low = own.to_low, offset = job.offset](
                        std::size_t place, const Extremes<T>& extremes) XCOUNT_LAMBDA {
    store(high[place], offset, extremes.high);
    store(low[place], offset, extremes.low);
  };
  const auto settle = [decide, begin = own.plane * job.grown[job.n_grown - 1].stride](
                          std::size_t place, const Extremes<T>& extremes)
                          XCOUNT_LAMBDA { decide(begin + place, extremes); };
  if (own.is_first && own.is_last) {
    grow_plane<T, true>(job, own, settle);
  } else if (own.is_first) {
    grow_plane<T, true>(job, own, keep);
  } else if (own.is_last) {
    grow_plane<T, false>(job, own, settle);
  } else {
    grow_plane<T, false>(job, own, keep);
  }
}

// The shifts that have a plane to make, each as far behind the one before as it reaches: the first
// one is at `front` less its reach. Returns how many.
template <class T>
XCOUNT_INLINE std::size_t set_shifts(const TileJob<T>& job, std::size_t front, Shift<T>* shifts) {
  const MaskAxis& slowest = job.grown[job.n_grown - 1];
  const std::size_t size = slowest.stride;
  const Lanes<T>* high = job.decided;
  const Lanes<T>* low = job.decided;
  std::size_t n_planes = slowest.n_cells;  // of what is read: plane p is at place p % n_planes
  std::size_t n = 0, lag = 0, table = 0;
  for (std::size_t step = 0; step < job.n_growth; ++step) {
    const std::size_t reach = job.growth[step];
    lag += reach;
    if (front < lag) break;  // this shift has no plane yet, nor have the later ones
    const std::size_t plane = front - lag;
    const bool is_last = step + 1 == job.n_growth;
    const std::size_t n_made = is_last ? 1 : job.n_planes[step];
    if (plane < slowest.n_cells) {
      const std::size_t left = slowest.n_cells - 1 - plane;
      const auto place = [&](std::size_t p) XCOUNT_LAMBDA {
        return static_cast<std::ptrdiff_t>(p % n_planes * size);
      };
      const std::ptrdiff_t at = place(plane);
      const std::ptrdiff_t down = place(plane - (plane < reach ? plane : reach)) - at;
      const std::ptrdiff_t up = place(plane + (left < reach ? left : reach)) - at;
      const std::size_t made = table + plane % n_made * size;
      shifts[n++] = {plane,     reach,  high + at,          low + at,
                     down,      up,     job.highest + made, job.lowest + made,
                     step == 0, is_last};
    }
    high = job.highest + table;
    low = job.lowest + table;
    n_planes = n_made;
    table += n_made * size;
  }
  return n;
}

// One plane of each shift's balls.
template <class T, class Decide>
XCOUNT_INLINE void grow_front(const TileJob<T>& job, std::size_t front, Decide decide) {
  Shift<T> shifts[kMaxShifts];
  const std::size_t n = set_shifts<T>(job, front, shifts);
  for (std::size_t i = 0; i < n; ++i) grow_or_decide<T>(job, shifts[i], decide);
}

// Fronts from the first one that has a plane to make on.
template <class T>
XCOUNT_INLINE std::size_t end_of_fronts(const TileJob<T>& job) {
  std::size_t end = job.grown[job.n_grown - 1].n_cells;
  for (std::size_t step = 0; step < job.n_growth; ++step) end += job.growth[step];
  return end;
}

template <class T, class Decide>
XCOUNT_INLINE void decide_grown(TileJob<T>& job, Decide decide) {
  const std::size_t end = end_of_fronts<T>(job);
  for (std::size_t front = job.growth[0]; front < end; ++front) grow_front<T>(job, front, decide);
}

// Calls decide(mask, extremes around it) for every mask.
template <class T, class Decide>
XCOUNT_INLINE void decide_near(TileJob<T>& job, Decide decide) {
  if (job.n_growth > 0) return decide_grown<T>(job, decide);
  make_balls<T>(job);
  const std::size_t period = job.line.stride * job.line.n_cells;
  for (std::size_t begin = 0; begin < job.n_masks; begin += period) {
    for (std::size_t base = begin; base < begin + job.line.stride; ++base) {
      if (job.width > 1) make_windows<T>(job, base);
      decide_line<T>(job, base, decide);
    }
  }
}

}  // namespace

}  // namespace xcount

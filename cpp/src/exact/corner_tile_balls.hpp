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

// Planes of a table: plane p is at place p % n_planes.
template <class T>
struct Planes {
  const Lanes<T>* high;
  const Lanes<T>* low;
  std::size_t n_planes;
};

// A row of masks along the first axis: its tables from its first place on, and where it finds its
// neighbours on the other axes.
template <class T>
struct GrownRow {
  const Lanes<T>* high;
  const Lanes<T>* low;
  std::ptrdiff_t down[kMaxGrownAxes], up[kMaxGrownAxes];
};

// The row that begins at `base` of a plane.
template <class T>
XCOUNT_INLINE void set_row(const TileJob<T>& job, const Planes<T>& from, std::size_t shift,
                           std::size_t plane, std::size_t base, GrownRow<T>& row) {
  const std::size_t last = job.n_grown - 1;
  const std::size_t size = job.grown[last].stride;
  for (std::size_t i = 1; i <= last; ++i) {
    const MaskAxis& axis = job.grown[i];
    const std::size_t cell = i == last ? plane : base / axis.stride % axis.n_cells;
    const std::size_t left = axis.n_cells - 1 - cell;
    const std::size_t low = cell - (cell < shift ? cell : shift);
    const std::size_t high = cell + (left < shift ? left : shift);
    const auto place = [&](std::size_t c) XCOUNT_LAMBDA {
      const std::size_t at = i == last ? c % from.n_planes * size : c * axis.stride;
      return static_cast<std::ptrdiff_t>(at);
    };
    row.down[i - 1] = place(low) - place(cell);
    row.up[i - 1] = place(high) - place(cell);
  }
  const std::size_t begin = plane % from.n_planes * size + base;
  row.high = from.high + begin;
  row.low = from.low + begin;
}

// Calls visit(place in the plane, extremes) with the balls of a plane that a shift makes. On its
// own, and for a known number of axes: registers are few. Visit holds copies, which no store
// changes. (kAxes = 0: any number.)
template <class T, bool kFirst, std::size_t kAxes, class Visit>
__attribute__((noinline)) void grow(const TileJob<T>& job, Planes<T> from, std::size_t shift,
                                    std::size_t plane, Visit visit) {
  const std::size_t n = job.grown[0].n_cells;
  const std::size_t size = job.grown[job.n_grown - 1].stride;
  const std::size_t n_others = kAxes > 0 ? kAxes - 1 : job.n_grown - 1;
  const std::size_t offset = job.offset;
  GrownRow<T> row;
  for (std::size_t base = 0; base < size; base += n) {
    set_row<T>(job, from, shift, plane, base, row);
    for (std::size_t cell = 0; cell < n; ++cell) {
      const std::size_t before = cell < shift ? 0 : cell - shift;
      const std::size_t after = cell + shift < n ? cell + shift : n - 1;
      Extremes<T> extremes = extremes_at<T>(row.high, row.low, before, offset);
      widen_by<T>(extremes, row.high, row.low, after, offset);
      for (std::size_t i = 0; i < n_others; ++i) {
        widen_by<T>(extremes, row.high + row.down[i], row.low + row.down[i], cell, offset);
        widen_by<T>(extremes, row.high + row.up[i], row.low + row.up[i], cell, offset);
      }
      if constexpr (kFirst) widen_by<T>(extremes, row.high, row.low, cell, offset);
      visit(base + cell, extremes);
    }
  }
}

template <class T, bool kFirst, class Visit>
XCOUNT_INLINE void grow_plane(const TileJob<T>& job, const Planes<T>& from, std::size_t shift,
                              std::size_t plane, Visit visit) {
  if (job.n_grown == 2) {
    grow<T, kFirst, 2>(job, from, shift, plane, visit);
  } else if (job.n_grown == 3) {
    grow<T, kFirst, 3>(job, from, shift, plane, visit);
  } else {
    grow<T, kFirst, 0>(job, from, shift, plane, visit);
  }
}

template <class T, class Visit>
XCOUNT_INLINE void grow_step(const TileJob<T>& job, const Planes<T>& from, std::size_t step,
                             std::size_t plane, Visit visit) {
  if (step == 0) {
    grow_plane<T, true>(job, from, job.growth[step], plane, visit);
  } else {
    grow_plane<T, false>(job, from, job.growth[step], plane, visit);
  }
}

// One plane of each shift's balls, each as far behind the one before as it reaches; the last ones
// decide. The first shift is at `front` less its reach.
template <class T, class Decide>
XCOUNT_INLINE void grow_front(TileJob<T>& job, std::size_t front, Decide decide) {
  const MaskAxis& slowest = job.grown[job.n_grown - 1];
  const std::size_t size = slowest.stride;
  Planes<T> from{job.decided, job.decided, slowest.n_cells};
  std::size_t lag = 0;
  std::size_t table = 0;
  for (std::size_t step = 0; step < job.n_growth; ++step) {
    lag += job.growth[step];
    if (front < lag) return;  // this shift has no plane yet, nor have the later ones
    const std::size_t plane = front - lag;
    const bool is_there = plane < slowest.n_cells;
    if (step + 1 == job.n_growth) {
      const auto settle =
          [decide, begin = plane * size](std::size_t place, const Extremes<T>& extremes)
              XCOUNT_LAMBDA { decide(begin + place, extremes); };
      if (is_there) grow_step<T>(job, from, step, plane, settle);
      return;
    }
    const std::size_t begin = table + plane % job.n_planes[step] * size;
    const auto keep = [high = job.highest + begin, low = job.lowest + begin, offset = job.offset](
                          std::size_t place, const Extremes<T>& extremes) XCOUNT_LAMBDA {
      store(high[place], offset, extremes.high);
      store(low[place], offset, extremes.low);
    };
    if (is_there) grow_step<T>(job, from, step, plane, keep);
    from = {job.highest + table, job.lowest + table, job.n_planes[step]};
    table += job.n_planes[step] * size;
  }
}

template <class T, class Decide>
XCOUNT_INLINE void decide_grown(TileJob<T>& job, Decide decide) {
  std::size_t end = job.grown[job.n_grown - 1].n_cells;
  for (std::size_t step = 0; step < job.n_growth; ++step) end += job.growth[step];
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

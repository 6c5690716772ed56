// The loops over a tile. Included by one source per kind of machine, which sets the target and
// XCOUNT_VECTOR_BYTES, the width of its registers (at most that of Lanes), before:
// all that is here is compiled for that machine, and has internal linkage for that reason.
// Nothing of the standard library is called, as other sources would share such functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "corner_tile_registers.hpp"
#include "xcount/exact/corner_tile.hpp"

namespace xcount {

namespace {

// Fewer masks are counted quicker than it takes to see whether they have to be.
inline constexpr std::size_t kFewMasks = 4;

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
struct Edges {
  Signed<T> a, b;  // V < a or V > b: the change happens
};

// A new form of change is one more case here: solve it for V, given the neighbours' extremes.
template <class T>
XCOUNT_INLINE void set_edges(const Change<T>& change, const T& span, const Extremes<T>& extremes,
                             Edges<T>& edges) {
  const Signed<T> threshold = broadcast<T>(change.threshold);
  const Signed<T> never_below = broadcast<T>(T(0));
  const Signed<T> never_above = broadcast<T>(span);
  edges = {never_below, never_above};
  if (change.form == ChangeForm::kFlip) {
    const Signed<T> above = broadcast<T>(T(change.threshold + change.band));
    if (change.direction != Direction::kDown) {
      const Signed<T> start = broadcast<T>(T(change.sure_below + T(1)));
      edges.a = extremes.high > above ? start : never_below;
    }
    if (change.direction != Direction::kUp) {
      edges.b = extremes.low <= threshold ? broadcast<T>(change.sure_above) : never_above;
    }
    return;
  }
  if (change.direction != Direction::kDown) edges.a = extremes.high - threshold;  // gaps
  if (change.direction != Direction::kUp) edges.b = extremes.low + threshold;
}

// V of one output and column, for all masks.
template <class T, bool kFresh>
XCOUNT_INLINE void sum_column(TileJob<T>& job, std::size_t output, std::size_t column) {
  const std::size_t n_masks = job.n_masks;
  const Lanes<T>* slab = job.slab[output] + column * n_masks;
  Lanes<T>* sums = job.sums[output] + column * n_masks;
  Lanes<T>* out = job.column + output * n_masks;
  const std::size_t* axes = job.sensitive_cells;
  const bool fused = job.n_sensitive <= 1;
  Unsigned<T> total{};
  for (std::size_t m = 0; m < n_masks; ++m) {
    Unsigned<T> sum = load<Unsigned<T>>(slab[m], job.offset);
    if constexpr (!kFresh) sum += load<Unsigned<T>>(sums[m], job.offset);
    store(sums[m], job.offset, sum);
    total = fused ? Unsigned<T>(total + sum) : sum;
    store(out[m], job.offset, total);
  }
  if (fused) return;
  std::size_t stride = 1;
  for (std::size_t i = job.n_sensitive; i-- > 0; stride *= axes[i]) {
    for (std::size_t m = 0; m < n_masks; ++m) {
      if (m / stride % axes[i] == 0) continue;
      store(out[m], job.offset,
            Unsigned<T>(load<Unsigned<T>>(out[m], job.offset) +
                        load<Unsigned<T>>(out[m - stride], job.offset)));
    }
  }
}

// Replaces the first output's column by the index of the largest output.
template <class T>
XCOUNT_INLINE void find_largest(TileJob<T>& job) {
  const std::size_t n_masks = job.n_masks;
  for (std::size_t m = 0; m < n_masks; ++m) {
    Signed<T> best = load<Signed<T>>(job.column[m], job.offset);
    Signed<T> index{};
    for (std::size_t k = 1; k < job.n_outputs; ++k) {
      const auto other = load<Signed<T>>(job.column[k * n_masks + m], job.offset);
      index = other > best ? broadcast<T>(T(static_cast<std::int32_t>(k))) : index;
      best = other > best ? other : best;
    }
    store(job.column[m], job.offset, index);
  }
}

// The number that a link makes a probability of.
template <class T>
XCOUNT_INLINE double argument(const TileJob<T>& job, const LaneResidue<T>& residue) {
  const T value = static_cast<T>(residue) - job.zero;
  if constexpr (requires { static_cast<double>(value); }) {
    return static_cast<double>(value) * job.unit;  // a kernel's unit holds the power of two
  } else {
    const bool negative = value < T(0);
    const double size = ValueTraits<T>::scaled(negative ? T(-value) : value, job.exponent);
    return (negative ? -size : size) * job.unit;
  }
}

template <class T>
XCOUNT_INLINE double probability(const TileJob<T>& job, std::size_t mask, std::size_t lane) {
  const std::size_t n_masks = job.n_masks;
  const double own = argument(job, job.column[job.output * n_masks + mask].lane[lane]);
  if (!job.softmax) return 1.0 / (1.0 + __builtin_exp(-own));
  double sum = 0.0;
  for (std::size_t k = 0; k < job.n_outputs; ++k) {
    const double other = argument(job, job.column[k * n_masks + mask].lane[lane]);
    sum += k == job.output ? 1.0 : __builtin_exp(other - own);
  }
  return 1.0 / sum;
}

// Sets what is decided to the probabilities, as integers.
template <class T>
XCOUNT_INLINE void find_probabilities(TileJob<T>& job) {
  constexpr auto kOne = static_cast<double>(kProbabilityOne);
  for (std::size_t m = 0; m < job.n_masks; ++m) {
    for (std::size_t i = 0; i < kRegisterLanes<T>; ++i) {
      const double scaled = probability(job, m, job.offset + i) * kOne + 0.5;
      const auto rounded = static_cast<std::int64_t>(scaled);
      job.decided[m].lane[job.offset + i] = static_cast<LaneResidue<T>>(T(rounded));
    }
  }
}

// Of the lanes that may change, those that do.
template <class T>
XCOUNT_INLINE Mask<T> judged(const TileJob<T>& job, std::size_t change, std::size_t mask,
                             const Mask<T>& may, const Mask<T>& must) {
  if (!any_of<T>(Mask<T>(may ^ must))) return must;
  if constexpr (kIsVector<T>) {
    T open[kRegisterLanes<T>];
    T hits[kRegisterLanes<T>];
    __builtin_memcpy(open, &may, sizeof open);
    __builtin_memcpy(hits, &must, sizeof hits);
    for (std::size_t i = 0; i < kRegisterLanes<T>; ++i) {
      if (open[i] == hits[i]) continue;
      hits[i] = job.judge->changes(job, change, mask, job.offset + i) ? T(-1) : T(0);
    }
    Mask<T> result;
    __builtin_memcpy(&result, hits, sizeof result);
    return result;
  } else {
    return job.judge->changes(job, change, mask, job.offset);
  }
}

template <class T, bool kWeighted>
XCOUNT_INLINE void count_mask_at(TileJob<T>& job, std::size_t change, std::size_t mask,
                                 std::size_t column, const Edges<T>& edges) {
  const auto value = load<Signed<T>>(job.decided[mask], job.offset);
  Mask<T> hit = (value < edges.a) | (value > edges.b);
  if (job.judge != nullptr) {
    // The edges are those of the smallest gap that may be exceeded.
    const Signed<T> band = broadcast<T>(T(2 * kProbabilityDoubt));
    const Mask<T> must = (value < edges.a - band) | (value > edges.b + band);
    hit = judged<T>(job, change, mask, hit, must);
  }
  const std::size_t i = change * job.n_masks + mask;
  count_mask<T>(job.tally[i], job.offset, hit);
  if constexpr (kWeighted) {
    add_weights<T>(job.shares + i * kShareLanes, job.offset, hit,
                   &job.row_weights[column * LaneTraits<T>::kLanes]);
  }
}

// Every mask is near every other: the extremes of all decide.
template <class T, bool kWeighted>
XCOUNT_INLINE void decide_any(TileJob<T>& job, std::size_t column) {
  const std::size_t n_masks = job.n_masks;
  Extremes<T> extremes{load<Signed<T>>(job.decided[0], job.offset),
                       load<Signed<T>>(job.decided[0], job.offset)};
  for (std::size_t m = 1; m < n_masks; ++m) {
    const auto value = load<Signed<T>>(job.decided[m], job.offset);
    widen<T>(extremes, value, value);
  }
  const bool takes_shortcuts = !kWeighted && n_masks > kFewMasks;
  for (std::size_t i = 0; i < job.n_changes; ++i) {
    Edges<T> edges;
    set_edges<T>(job.changes[i], job.span, extremes, edges);
    if (takes_shortcuts) {
      const Mask<T> some = (extremes.low < edges.a) | (extremes.high > edges.b);
      if (!any_of<T>(some)) continue;
      const Mask<T> all = edges.a > edges.b;  // every V is below a or above b
      if (job.judge == nullptr && !any_of<T>(Mask<T>(some ^ all))) {
        count_mask<T>(job.common_tally[i], job.offset, all);
        continue;
      }
    }
    for (std::size_t m = 0; m < n_masks; ++m) count_mask_at<T, kWeighted>(job, i, m, column, edges);
  }
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
XCOUNT_INLINE void make_windows(TileJob<T>& job, std::size_t base) {
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

template <class T, bool kWeighted>
XCOUNT_INLINE void decide_line(TileJob<T>& job, std::size_t column, std::size_t base) {
  if (job.width > 1) make_windows<T>(job, base);
  for (std::size_t c = 0; c < job.line.n_cells; ++c) {
    const std::size_t m = base + c * job.line.stride;
    const auto own = load<Signed<T>>(job.decided[m], job.offset);
    Extremes<T> extremes{own, own};
    for (std::uint32_t i = job.first[c]; i < job.first[c + 1]; ++i) {
      widen_by<T>(extremes, job.near[i].high, job.near[i].low, base, job.offset);
    }
    for (std::size_t i = 0; i < job.n_changes; ++i) {
      Edges<T> edges;
      set_edges<T>(job.changes[i], job.span, extremes, edges);
      count_mask_at<T, kWeighted>(job, i, m, column, edges);
    }
  }
}

template <class T, bool kWeighted>
XCOUNT_INLINE void decide_near(TileJob<T>& job, std::size_t column) {
  make_balls<T>(job);
  const std::size_t period = job.line.stride * job.line.n_cells;
  for (std::size_t begin = 0; begin < job.n_masks; begin += period) {
    for (std::size_t base = begin; base < begin + job.line.stride; ++base) {
      decide_line<T, kWeighted>(job, column, base);
    }
  }
}

template <class T, bool kWeighted>
XCOUNT_INLINE void count_column(TileJob<T>& job, std::size_t column) {
  for (std::size_t k = 0; k < job.n_outputs; ++k) {
    if (job.fresh) {
      sum_column<T, true>(job, k, column);
    } else {
      sum_column<T, false>(job, k, column);
    }
  }
  if (job.judge != nullptr) {
    find_probabilities<T>(job);
  } else if (job.n_outputs > 1) {
    find_largest<T>(job);
  }
  if (job.any) {
    decide_any<T, kWeighted>(job, column);
  } else {
    decide_near<T, kWeighted>(job, column);
  }
}

template <class T, bool kWeighted>
void count_tile(TileJob<T>& job) {
  TileJob<T> copy = job;  // of which compilers know that no store changes it
  for (std::size_t column = 0; column < copy.n_columns; ++column) {
    for (copy.offset = 0; copy.offset < LaneTraits<T>::kLanes; copy.offset += kRegisterLanes<T>) {
      count_column<T, kWeighted>(copy, column);
    }
  }
}

template <class T>
void add_lanes(Lanes<T>* a, const Lanes<T>* b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t offset = 0; offset < LaneTraits<T>::kLanes; offset += kRegisterLanes<T>) {
      const auto sum = load<Unsigned<T>>(a[i], offset);
      store(a[i], offset, Unsigned<T>(sum + load<Unsigned<T>>(b[i], offset)));
    }
  }
}

template <class T>
TileKernels<T> kernels(bool weighted) {
  return {weighted ? count_tile<T, true> : count_tile<T, false>, add_lanes<T>};
}

}  // namespace

}  // namespace xcount

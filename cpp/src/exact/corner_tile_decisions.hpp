// Which masks change, given what is compared at all of them: the part of the loops over a tile that
// decides. Included by corner_tile_kernels.hpp alone, which says how all of it is compiled.
#pragma once

#include <cstddef>
#include <cstdint>

#include "corner_tile_balls.hpp"
#include "corner_tile_registers.hpp"
#include "xcount/exact/corner_tile.hpp"

namespace xcount {

namespace {

// Fewer masks are counted quicker than it takes to see whether they have to be.
inline constexpr std::size_t kFewMasks = 4;

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
  if (change.form == ChangeForm::kSureLargest) {
    edges = {extremes.high, extremes.low};
    return;
  }
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

// The softmax of one output.
template <class T>
XCOUNT_INLINE double softmax(const TileJob<T>& job, std::size_t output, std::size_t mask,
                             std::size_t lane) {
  const double own = argument(job, job.column[output * job.n_masks + mask].lane[lane]);
  double sum = 0.0;
  for (std::size_t k = 0; k < job.n_outputs; ++k) {
    const double other = argument(job, job.column[k * job.n_masks + mask].lane[lane]);
    sum += k == output ? 1.0 : __builtin_exp(other - own);
  }
  return 1.0 / sum;
}

// The integer that stands for a probability: below 2^49, hence exact.
template <class T>
XCOUNT_INLINE double threshold_as_double(const T& value) {
  if constexpr (requires { static_cast<double>(value); }) {
    return static_cast<double>(value);
  } else {
    return ValueTraits<T>::to_number(value);
  }
}

// Whether the largest sum is sure enough for a flip to start there.
template <class T>
__attribute__((noinline)) bool is_sure(const TileJob<T>& job, std::size_t change, std::size_t mask,
                                       std::size_t lane) {
  const Change<T>& asked = job.changes[change];
  std::size_t largest = 0;
  T best = static_cast<T>(job.column[mask].lane[lane]);
  for (std::size_t k = 1; k < job.n_outputs; ++k) {
    const T other = static_cast<T>(job.column[k * job.n_masks + mask].lane[lane]);
    if (other > best) {
      best = other;
      largest = k;
    }
  }
  if (!job.softmax) return best > asked.sure_above;
  const double scaled = softmax(job, largest, mask, lane) * static_cast<double>(kProbabilityOne);
  const double least = threshold_as_double<T>(asked.threshold);
  if (scaled > least + kProbabilityDoubt) return true;
  if (scaled < least - kProbabilityDoubt) return false;
  return job.judge->changes(job, change, mask, lane);
}

// Of the lanes in which the largest changes, those in which it is sure enough before.
template <class T>
XCOUNT_INLINE Mask<T> surely(const TileJob<T>& job, std::size_t change, std::size_t mask,
                             const Mask<T>& hit) {
  if (!any_of<T>(hit)) return hit;
  if constexpr (kIsVector<T>) {
    T hits[kRegisterLanes<T>];
    __builtin_memcpy(hits, &hit, sizeof hits);
    for (std::size_t i = 0; i < kRegisterLanes<T>; ++i) {
      if (hits[i] != 0 && !is_sure<T>(job, change, mask, job.offset + i)) hits[i] = 0;
    }
    Mask<T> result;
    __builtin_memcpy(&result, hits, sizeof result);
    return result;
  } else {
    return is_sure<T>(job, change, mask, job.offset);
  }
}

template <class T, bool kWeighted>
XCOUNT_INLINE void count_mask_at(TileJob<T>& job, std::size_t change, std::size_t mask,
                                 std::size_t column, const Edges<T>& edges) {
  const auto value = load<Signed<T>>(job.decided[mask], job.offset);
  Mask<T> hit = (value < edges.a) | (value > edges.b);
  if (job.changes[change].form == ChangeForm::kSureLargest) {
    hit = surely<T>(job, change, mask, hit);
  } else if (job.judge != nullptr) {
    // The edges are those of the smallest gap that may be exceeded.
    const Signed<T> band = broadcast<T>(T(2 * kProbabilityDoubt));
    const Mask<T> must = (value < edges.a - band) | (value > edges.b + band);
    hit = judged<T>(job, change, mask, hit, must);
  }
  const std::size_t i = change * job.n_masks + mask;
  if constexpr (kIsVector<T>) {
    if (job.filter != nullptr) hit &= load<Mask<T>>(job.filter[i], job.offset);
  }
  job.counts[i] += n_set<T>(hit);
  if constexpr (kWeighted) {
    add_weights<T>(job.shares + i * kShareLanes, job.offset, hit,
                   &job.row_weights[column * LaneTraits<T>::kLanes]);
  }
}

// Whether two masks change together, or not at all.
template <class T>
XCOUNT_INLINE bool is_mutual(const TileJob<T>& job, const Change<T>& change) {
  return change.form == ChangeForm::kGap && change.direction == Direction::kAny &&
         job.judge == nullptr;
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
    if (!kWeighted && n_masks == 2 && is_mutual(job, job.changes[i])) {
      job.common_counts[i] += n_set<T>(extremes.low < edges.a);
      continue;
    }
    if (takes_shortcuts) {
      const Mask<T> some = (extremes.low < edges.a) | (extremes.high > edges.b);
      if (!any_of<T>(some)) continue;
      const Mask<T> all = edges.a > edges.b;  // every V is below a or above b
      if (job.judge == nullptr && !any_of<T>(Mask<T>(some ^ all))) {
        job.common_counts[i] += n_set<T>(all);
        continue;
      }
    }
    for (std::size_t m = 0; m < n_masks; ++m) count_mask_at<T, kWeighted>(job, i, m, column, edges);
  }
}

// What is compared is there: finds the masks of a column that count.
template <class T, bool kWeighted>
XCOUNT_INLINE void decide_column(TileJob<T>& job, std::size_t column) {
  if (job.any) return decide_any<T, kWeighted>(job, column);
  decide_near<T>(job, [&](std::size_t m, const Extremes<T>& extremes) XCOUNT_LAMBDA {
    for (std::size_t i = 0; i < job.n_changes; ++i) {
      Edges<T> edges;
      set_edges<T>(job.changes[i], job.span, extremes, edges);
      count_mask_at<T, kWeighted>(job, i, m, column, edges);
    }
  });
}

}  // namespace

}  // namespace xcount

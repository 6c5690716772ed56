// Which masks change, given what is compared at all of them: the part of the loops over a tile that
// decides. Included by corner_tile_kernels.hpp only, which says how all of it is compiled.
#pragma once

#include <cstddef>
#include <cstdint>

#include "corner_tile_balls.hpp"
#include "corner_tile_registers.hpp"
#include "xcount/exact/corner_tile.hpp"
#include "xcount/exact/tile_probability.hpp"

namespace xcount {

namespace {

// Counting fewer masks is quicker than finding out whether they have to be counted.
inline constexpr std::size_t kFewMasks = 4;

template <class T>
struct Edges {
  Signed<T> a, b;  // V < a or V > b: the change happens
};

// A new form of change is one more case here: solve it for V, given the neighbours' extremes. (And
// in wide_tile.cpp, `exceeds`.)
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

// Of the lanes that are set in `may`, those that are set in `must` or that decide(lane) confirms.
template <class T, class Decide>
XCOUNT_INLINE Mask<T> confirmed(const Mask<T>& may, const Mask<T>& must, Decide decide) {
  if (!any_of<T>(Mask<T>(may ^ must))) return must;
  T open[kRegisterLanes<T>];
  T hits[kRegisterLanes<T>];
  __builtin_memcpy(open, &may, sizeof open);
  __builtin_memcpy(hits, &must, sizeof hits);
  for (std::size_t i = 0; i < kRegisterLanes<T>; ++i) {
    if (open[i] != hits[i]) hits[i] = decide(i) ? T(-1) : T(0);
  }
  Mask<T> result;
  __builtin_memcpy(&result, hits, sizeof result);
  return result;
}

template <class T, bool kWeighted>
XCOUNT_INLINE void count_mask_at(const TileJob<T>& job, std::size_t change, std::size_t mask,
                                 std::size_t column, const Edges<T>& edges) {
  const std::size_t offset = job.near.offset;
  const auto value = load<Signed<T>>(job.near.decided[mask], offset);
  Mask<T> hit = (value < edges.a) | (value > edges.b);
  if (job.question.changes.data[change].form == ChangeForm::kSureLargest) {
    hit = confirmed<T>(hit, Mask<T>{}, [&](std::size_t i) XCOUNT_LAMBDA {
      return is_sure<T>(job.question, job.column, change, mask, offset + i);
    });
  } else if (job.question.judge != nullptr) {
    // The edges are those of the smallest gap that may be exceeded.
    const Signed<T> band = broadcast<T>(T(2 * kProbabilityDoubt));
    const Mask<T> must = (value < edges.a - band) | (value > edges.b + band);
    hit = confirmed<T>(hit, must, [&](std::size_t i) XCOUNT_LAMBDA {
      return job.question.judge->changes(job.column, change, mask, offset + i);
    });
  }
  const std::size_t i = change * job.sums.n_masks + mask;
  if (job.filter != nullptr) hit &= load<Mask<T>>(job.filter[i], offset);
  job.results.counts[i] += n_set<T>(hit);
  if constexpr (kWeighted) {
    add_weights<T>(job.results.shares + i * kShareLanes, offset, hit,
                   &job.results.row_weights[column * LaneTraits<T>::kLanes]);
  }
}

// Whether of two masks both change, or neither.
template <class T>
XCOUNT_INLINE bool is_mutual(const TileJob<T>& job, const Change<T>& change) {
  return change.form == ChangeForm::kGap && change.direction == Direction::kAny &&
         job.question.judge == nullptr;
}

// Every mask is near every other: the extremes of all decide.
template <class T, bool kWeighted>
XCOUNT_INLINE void decide_any(const TileJob<T>& job, std::size_t column) {
  const std::size_t n_masks = job.sums.n_masks;
  const std::size_t offset = job.near.offset;
  const Lanes<T>* decided = job.near.decided;
  Extremes<T> extremes = extremes_at<T>(decided, decided, 0, offset);
  for (std::size_t m = 1; m < n_masks; ++m) {
    const auto value = load<Signed<T>>(decided[m], offset);
    widen<T>(extremes, value, value);
  }
  const bool takes_shortcuts = !kWeighted && n_masks > kFewMasks;
  for (std::size_t i = 0; i < job.question.changes.size; ++i) {
    const Change<T>& change = job.question.changes.data[i];
    Edges<T> edges;
    set_edges<T>(change, job.question.span, extremes, edges);
    if (!kWeighted && n_masks == 2 && is_mutual(job, change)) {
      job.results.common_counts[i] += n_set<T>(extremes.low < edges.a);
      continue;
    }
    if (takes_shortcuts) {
      const Mask<T> some = (extremes.low < edges.a) | (extremes.high > edges.b);
      if (!any_of<T>(some)) continue;
      const Mask<T> all = edges.a > edges.b;  // every V is below a or above b
      if (job.question.judge == nullptr && !any_of<T>(Mask<T>(some ^ all))) {
        job.results.common_counts[i] += n_set<T>(all);
        continue;
      }
    }
    for (std::size_t m = 0; m < n_masks; ++m) count_mask_at<T, kWeighted>(job, i, m, column, edges);
  }
}

// Counts the masks of a column that change, given what is compared.
template <class T, bool kWeighted>
XCOUNT_INLINE void decide_column(const TileJob<T>& job, std::size_t column) {
  if (job.near.masks.any) return decide_any<T, kWeighted>(job, column);
  find_extremes<T>(job.near);
  for (std::size_t m = 0; m < job.sums.n_masks; ++m) {
    const Extremes<T> extremes = extremes_at<T>(job.near.high, job.near.low, m, job.near.offset);
    for (std::size_t i = 0; i < job.question.changes.size; ++i) {
      Edges<T> edges;
      set_edges<T>(job.question.changes.data[i], job.question.span, extremes, edges);
      count_mask_at<T, kWeighted>(job, i, m, column, edges);
    }
  }
}

}  // namespace

}  // namespace xcount

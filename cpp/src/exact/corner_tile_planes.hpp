// The loops over a large tile: sums are held only for the masks that have corners, V and its 16
// bits are made plane by plane, and every plane is compared as soon as the planes that its balls
// reach are there. Included by corner_tile_kernels.hpp only, which says how all of it is compiled.
// Proved in docs/corner-sums.md, "Large tiles".
#pragma once

#include <cstddef>
#include <cstdint>

#include "corner_tile_narrow.hpp"
#include "corner_tile_registers.hpp"
#include "xcount/exact/narrow_tile.hpp"

namespace xcount {

namespace {

// Registers of T that have the lanes of one register of 16 bits, and vectors that have all lanes.
template <class T>
inline constexpr std::size_t kParts = kRegisterLanes<Q> / kRegisterLanes<T>;
template <class T>
inline constexpr std::size_t kHeldColumns = LaneTraits<Q>::kLanes / LaneTraits<T>::kLanes;

template <class T>
using Parts = Unsigned<T>[kParts<T>];

// Of vectors that stand side by side: the register from lane `lane` of the first of them on.
template <class T, class From>
XCOUNT_INLINE From& vector_at(From* vectors, std::size_t lane) {
  return vectors[lane / LaneTraits<T>::kLanes];
}

#if XCOUNT_VECTOR_BYTES == 64
// The upper and lower halves of the low 32 bits of all lanes.
template <class T>
XCOUNT_INLINE void split(const Parts<T>& words, Signed<Q>& upper, Signed<Q>& lower) {
  alignas(64) static constexpr std::uint32_t kEvenWords[] = {0,  2,  4,  6,  8,  10, 12, 14,
                                                             16, 18, 20, 22, 24, 26, 28, 30};
  alignas(64) static constexpr std::uint16_t kEven[] = {0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20,
                                                        22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42,
                                                        44, 46, 48, 50, 52, 54, 56, 58, 60, 62};
  __m512i low = __m512i(words[0]), high = __m512i(words[1]);
  if constexpr (sizeof(T) == 8) {
    const __m512i even = _mm512_load_si512(kEvenWords);
    low = _mm512_permutex2var_epi32(low, even, high);
    high = _mm512_permutex2var_epi32(__m512i(words[2]), even, __m512i(words[3]));
  }
  const __m512i even = _mm512_load_si512(kEven);
  const __m512i odd = _mm512_or_si512(even, _mm512_set1_epi16(1));
  upper = Signed<Q>(_mm512_permutex2var_epi16(low, odd, high));
  lower = Signed<Q>(_mm512_permutex2var_epi16(low, even, high));
}
#endif

// Makes q of the lanes of a mask that one register of 16 bits has.
template <class T, Shrink kShrink>
XCOUNT_INLINE void put_parts(Shrinker<T, kShrink>& shrinker, std::size_t m, std::size_t lane,
                             const Parts<T>& values, const Parts<T>& first) {
#if XCOUNT_VECTOR_BYTES == 64
  if constexpr (kShrink == Shrink::kFineGaps) {
    Parts<T> words;
    for (std::size_t i = 0; i < kParts<T>; ++i) {
      words[i] = shrinker.above(Signed<T>(values[i]), Signed<T>(first[i]));
      words[i] = words[i] << shrinker.left >> shrinker.right;
    }
    Signed<Q> upper, lower;
    split<T>(words, upper, lower);
    store(shrinker.decided[m], lane, upper);
    store(shrinker.fine[m], lane, lower);
    return;
  }
#endif
  for (std::size_t i = 0; i < kParts<T>; ++i) {
    shrinker.put(m, lane + i * kRegisterLanes<T>, Signed<T>(values[i]), Signed<T>(first[i]));
  }
}

// The columns of a mask.
template <class T>
XCOUNT_INLINE const Lanes<T>* held_at(const HeldSums<T>& held, std::size_t mask) {
  return held.sums + held.place[mask] * held.n_columns;
}

// V of a row of masks, in the lanes of one register of 16 bits, and q. Before the row,
//   row_before(e) = sum over the rows before it in its plane, and q <= e, of E;
//   plane_before(e) = V of the row in the plane before
// and after it, the same for the next row and plane.
template <class T, bool kHasPlanes, Shrink kShrink>
XCOUNT_INLINE void shrink_held_row(const TileJob<T>& job, std::size_t m, std::size_t n,
                                   std::size_t lane, Lanes<T>* row_before, Lanes<T>* plane_before,
                                   Shrinker<T, kShrink>& shrinker) {
  constexpr std::size_t kColumns = kHeldColumns<T>;
  Parts<T> first, total{};
  std::size_t offset[kParts<T>];
  for (std::size_t i = 0; i < kParts<T>; ++i) {
    const std::size_t begin = lane + i * kRegisterLanes<T>;
    offset[i] = begin % LaneTraits<T>::kLanes;
    first[i] = load<Unsigned<T>>(vector_at<T>(held_at(job.held, 0), begin), offset[i]);
    first[i] += Unsigned<T>(broadcast<T>(job.narrow->center));
  }
  for (std::size_t cell = 0; cell < n; ++cell) {
    const Lanes<T>* own = held_at(job.held, m + cell);
    Parts<T> values;
    for (std::size_t i = 0; i < kParts<T>; ++i) {
      const std::size_t begin = lane + i * kRegisterLanes<T>;
      total[i] += load<Unsigned<T>>(vector_at<T>(own, begin), offset[i]);
      Lanes<T>& above = vector_at<T>(row_before + cell * kColumns, begin);
      values[i] = total[i] + load<Unsigned<T>>(above, offset[i]);
      store(above, offset[i], values[i]);
      if constexpr (kHasPlanes) {
        Lanes<T>& behind = vector_at<T>(plane_before + cell * kColumns, begin);
        values[i] += load<Unsigned<T>>(behind, offset[i]);
        store(behind, offset[i], values[i]);
      }
    }
    put_parts<T, kShrink>(shrinker, m + cell, lane, values, first);
  }
}

template <class T>
XCOUNT_INLINE void clear(Lanes<T>* vectors, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) vectors[i] = {};
}

// V and q of a plane, that is a cell of the slowest axis. With two axes, a plane is a row.
template <class T, bool kHasPlanes, Shrink kShrink>
__attribute__((noinline)) void shrink_plane(const TileJob<T>& job, std::size_t plane) {
  NarrowTile<T>& narrow = *job.narrow;
  const Items<std::size_t> axes = job.sums.axes;
  const std::size_t n = axes.data[axes.size - 1];
  const std::size_t size = kHasPlanes ? n * axes.data[axes.size - 2] : n;
  Lanes<T>* row_before = narrow.before;
  Lanes<T>* plane_before = narrow.before + n * kHeldColumns<T>;
  if (plane == 0) clear(narrow.before, (kHasPlanes ? n + size : n) * kHeldColumns<T>);
  if (kHasPlanes) clear(row_before, n * kHeldColumns<T>);
  Shrinker<T, kShrink> shrinker(narrow);
  for (std::size_t m = plane * size; m < (plane + 1) * size; m += n) {
    for (std::size_t lane = 0; lane < LaneTraits<Q>::kLanes; lane += kRegisterLanes<Q>) {
      shrink_held_row<T, kHasPlanes, kShrink>(job, m, n, lane, row_before, plane_before, shrinker);
    }
    plane_before += n * kHeldColumns<T>;
  }
  shrinker.finish(narrow);
}

// One plane of q, unless all are there, and one of every shift's balls.
template <class T, Shrink kShrink>
XCOUNT_INLINE void count_front(const TileJob<T>& job, std::size_t front) {
  NarrowJob& narrow = job.narrow->job;
  const Items<MaskAxis> grown = narrow.near.masks.grown;
  if (front < grown.data[grown.size - 1].n_cells) {
    if (job.sums.axes.size > 2) {
      shrink_plane<T, true, kShrink>(job, front);
    } else {
      shrink_plane<T, false, kShrink>(job, front);
    }
  }
  decide_narrow(narrow, [front](const NearTables<Q>& near, const auto& decide)
                            XCOUNT_LAMBDA { grow_front<Q>(near, front, decide); });
}

// Counts what is sure in all planes; the rest becomes doubts. False if the unit does not hold the
// sums: then nothing is counted.
template <class T, Shrink kShrink>
__attribute__((noinline)) bool count_fronts(const TileJob<T>& job) {
  NarrowTile<T>& narrow = *job.narrow;
  narrow.job.doubts.size = 0;
  narrow.magnitude = 0;
  clear_counts(narrow.job);
  const std::size_t end = end_of_fronts<Q>(narrow.job.near);
  for (std::size_t front = 0; front < end; ++front) {
    count_front<T, kShrink>(job, front);
    if (narrow.magnitude >> narrow.shift >> 15 != 0) return false;
  }
  add_counts(narrow.job, job.results.counts);
  return true;
}

// The same in the columns from `begin` on that fill lanes of 16 bits.
template <class T>
XCOUNT_INLINE bool count_fronts(TileJob<T> job, std::size_t begin) {
  job.held.sums += begin;
  return job.narrow->job.is_flip ? count_fronts<T, Shrink::kSides>(job)
                                 : count_fronts<T, Shrink::kFineGaps>(job);
}

}  // namespace

}  // namespace xcount

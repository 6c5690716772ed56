// The loops over a tile. Included by corner_tile_unit.cpp only, which is compiled once per vector
// unit and sets XCOUNT_VECTOR_BYTES, the width of its registers (at most that of Lanes), before:
// all that is here is compiled for that unit, and has internal linkage for that reason. Nothing of
// the standard library is called, as other sources would share such functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "corner_tile_decisions.hpp"
#include "corner_tile_narrow.hpp"
#include "corner_tile_planes.hpp"
#include "corner_tile_registers.hpp"
#include "xcount/exact/corner_tile.hpp"

namespace xcount {

namespace {

// Adds up along a sensitive axis, given the masks between its next cells.
template <class T>
XCOUNT_INLINE void sum_along(Lanes<T>* out, std::size_t n_masks, std::size_t stride,
                             std::size_t n_cells, std::size_t offset) {
  const std::size_t period = stride * n_cells;
  for (std::size_t begin = 0; begin < n_masks; begin += period) {
    for (std::size_t m = begin + stride; m < begin + period; ++m) {
      store(out[m], offset,
            Unsigned<T>(load<Unsigned<T>>(out[m], offset) +
                        load<Unsigned<T>>(out[m - stride], offset)));
    }
  }
}

// E of a mask, from S and from E so far; stored unless it was there.
template <class T>
XCOUNT_INLINE Unsigned<T> next_sum(Start start, const Lanes<T>& slab, Lanes<T>& sums,
                                   std::size_t offset) {
  if (start == Start::kKept) return load<Unsigned<T>>(sums, offset);
  auto sum = load<Unsigned<T>>(slab, offset);
  if (start == Start::kAdded) sum += load<Unsigned<T>>(sums, offset);
  store(sums, offset, sum);
  return sum;
}

// V of one output and column, for all masks: the last two sensitive axes are added up on the way.
template <class T, Start kStart>
XCOUNT_INLINE void sum_column(const TileJob<T>& job, std::size_t output, std::size_t column) {
  const std::size_t n_masks = job.sums.n_masks;
  const std::size_t offset = job.near.offset;
  const Lanes<T>* slab = job.sums.slab[output] + column * n_masks;
  Lanes<T>* sums = job.sums.sums[output] + column * n_masks;
  Lanes<T>* out = job.column.sums + output * n_masks;
  const std::size_t* axes = job.sums.axes.data;
  const std::size_t n_axes = job.sums.axes.size;
  const std::size_t row = n_axes > 0 ? axes[n_axes - 1] : 1;
  const std::size_t n_rows = n_axes > 1 ? axes[n_axes - 2] : 1;
  for (std::size_t begin = 0, number = 0; begin < n_masks; begin += row, ++number) {
    if (number == n_rows) number = 0;
    Unsigned<T> total{};
    for (std::size_t m = begin; m < begin + row; ++m) {
      total += next_sum<T>(kStart, slab[m], sums[m], offset);
      Unsigned<T> value = total;
      if (number > 0) value += load<Unsigned<T>>(out[m - row], offset);
      store(out[m], offset, value);
    }
  }
  std::size_t stride = row * n_rows;
  for (std::size_t i = n_axes > 2 ? n_axes - 2 : 0; i-- > 0; stride *= axes[i]) {
    sum_along<T>(out, n_masks, stride, axes[i], offset);
  }
}

// Sets what is decided to the index of the largest output; it may stand in the first one's place.
template <class T>
XCOUNT_INLINE void find_largest(const TileJob<T>& job) {
  const std::size_t n_masks = job.sums.n_masks;
  const std::size_t offset = job.near.offset;
  for (std::size_t m = 0; m < n_masks; ++m) {
    Signed<T> best = load<Signed<T>>(job.column.sums[m], offset);
    Signed<T> index{};
    for (std::size_t k = 1; k < job.sums.n_outputs; ++k) {
      const auto other = load<Signed<T>>(job.column.sums[k * n_masks + m], offset);
      index = other > best ? broadcast<T>(T(static_cast<std::int32_t>(k))) : index;
      best = other > best ? other : best;
    }
    store(job.near.decided[m], offset, index);
  }
}

// Sets what is compared in a column.
template <class T>
XCOUNT_INLINE void sum_outputs(const TileJob<T>& job, std::size_t column, Start start) {
  for (std::size_t k = 0; k < job.sums.n_outputs; ++k) {
    if (start == Start::kFresh) {
      sum_column<T, Start::kFresh>(job, k, column);
    } else if (start == Start::kAdded) {
      sum_column<T, Start::kAdded>(job, k, column);
    } else {
      sum_column<T, Start::kKept>(job, k, column);
    }
  }
  if (job.question.changes.data[0].form == ChangeForm::kProbability) {
    find_probabilities<T>(job.question, job.column, job.near.decided, job.near.offset,
                          job.near.offset + kRegisterLanes<T>);
  } else if (job.sums.n_outputs > 1) {
    find_largest<T>(job);
  }
}

// Here and below, jobs are copied: compilers know that no store changes a copy.
template <class T, bool kWeighted>
__attribute__((noinline)) void count_columns(TileJob<T> job, std::size_t begin, std::size_t end,
                                             Start start) {
  std::size_t& offset = job.near.offset;
  for (std::size_t column = begin; column < end; ++column) {
    for (offset = 0; offset < LaneTraits<T>::kLanes; offset += kRegisterLanes<T>) {
      sum_outputs<T>(job, column, start);
      decide_column<T, kWeighted>(job, column);
    }
  }
}

// Sets what is compared in a column whose sums are there.
template <class T>
__attribute__((noinline)) void sum_again(TileJob<T> job, std::size_t column, Start start) {
  std::size_t& offset = job.near.offset;
  for (offset = 0; offset < LaneTraits<T>::kLanes; offset += kRegisterLanes<T>) {
    sum_outputs<T>(job, column, start);
  }
}

// 16 bits of what is compared in a column, whose lanes begin at the narrow lane `lane`.
template <class T, Shrink kShrink>
__attribute__((noinline)) void shrink_column(TileJob<T> job, std::size_t lane) {
  Shrinker<T, kShrink> shrinker(*job.narrow);
  for (std::size_t offset = 0; offset < LaneTraits<T>::kLanes; offset += kRegisterLanes<T>) {
    const auto first = load<Signed<T>>(job.near.decided[0], offset);
    for (std::size_t m = 0; m < job.sums.n_masks; ++m) {
      shrinker.put(m, lane + offset, load<Signed<T>>(job.near.decided[m], offset), first);
    }
  }
  shrinker.finish(*job.narrow);
}

// A row of masks in one column: V is made of its sums, of those of the row before it in the plane,
// and of V in the plane before.
template <class T>
struct MaskRow {
  std::size_t mask = 0, n_masks = 1;
  const Lanes<T>* slab = nullptr;  // S and E of the row
  Lanes<T>* sums = nullptr;
  Lanes<T>* row_before = nullptr;           // what the next row needs is written there
  Lanes<T>* plane_before = nullptr;         // null without planes
  bool has_row = false, has_plane = false;  // before it
};

// kHasRows: there are sensitive axes slower than the row. first: V of the first mask.
template <class T, bool kKept, bool kHasRows, Shrink kShrink>
XCOUNT_INLINE void shrink_row(const MaskRow<T>& row, Start start, std::size_t offset,
                              std::size_t lane, Lanes<T>& first, Shrinker<T, kShrink>& shrinker) {
  const auto [m, n, slab, sums, row_before, plane_before, has_row, has_plane] = row;
  Unsigned<T> total{};
  auto origin = load<Signed<T>>(first, offset);
  for (std::size_t cell = 0; cell < n; ++cell) {
    total += next_sum<T>(kKept ? Start::kKept : start, slab[cell], sums[cell], offset);
    Unsigned<T> value = total;
    if constexpr (kHasRows) {
      if (has_row) value += load<Unsigned<T>>(row_before[cell], offset);
      store(row_before[cell], offset, value);
      if (plane_before != nullptr) {
        if (has_plane) value += load<Unsigned<T>>(plane_before[cell], offset);
        store(plane_before[cell], offset, value);
      }
    }
    if (m + cell == 0) {
      origin = Signed<T>(value);
      store(first, offset, origin);
    }
    shrinker.put(m + cell, lane, Signed<T>(value), origin);
  }
}

// Makes the sums of some columns of the only output, and 16 bits of each: row by row of masks, all
// columns in turn, so that vectors of q are filled while they are in the cache.
template <class T, bool kKept, bool kHasRows, Shrink kShrink>
__attribute__((noinline)) void shrink_rows(const TileJob<T>& job, std::size_t begin,
                                           std::size_t end, Start start) {
  NarrowTile<T>& narrow = *job.narrow;
  const std::size_t* axes = job.sums.axes.data;
  const std::size_t n_axes = job.sums.axes.size;
  const std::size_t n_masks = job.sums.n_masks;
  const Lanes<T>* slab = job.sums.slab[0];
  Lanes<T>* sums = job.sums.sums[0];
  const bool has_planes = kHasRows && n_axes > 2;
  const std::size_t n = n_axes > 0 ? axes[n_axes - 1] : 1;
  const std::size_t n_rows = kHasRows ? axes[n_axes - 2] : 1;
  const std::size_t n_before = has_planes ? n + n * n_rows : n;
  Lanes<T> first[LaneTraits<std::uint16_t>::kLanes / LaneTraits<T>::kLanes];
  Shrinker<T, kShrink> shrinker(narrow);
  for (std::size_t m = 0, number = 0; m < n_masks; m += n, ++number) {
    if (number == n_rows) number = 0;
    for (std::size_t column = begin; column < end; ++column) {
      const std::size_t i = column - begin;
      MaskRow<T> row{m, n, slab + column * n_masks + m, sums + column * n_masks + m};
      if constexpr (kHasRows) {
        row.row_before = narrow.before + i * n_before;
        row.has_row = number > 0;
        if (has_planes) row.plane_before = row.row_before + (1 + number) * n;
        row.has_plane = m >= n * n_rows;
      }
      for (std::size_t offset = 0; offset < LaneTraits<T>::kLanes; offset += kRegisterLanes<T>) {
        const std::size_t lane = i * LaneTraits<T>::kLanes + offset;
        shrink_row<T, kKept, kHasRows>(row, start, offset, lane, first[i], shrinker);
      }
    }
  }
  shrinker.finish(narrow);
}

template <class T, bool kHasRows, Shrink kShrink>
XCOUNT_INLINE void shrink_columns(const TileJob<T>& job, std::size_t begin, std::size_t end,
                                  Start start) {
  if (job.sums.n_outputs == 1 && job.sums.axes.size <= kRowAxes) {
    if (start == Start::kKept) {
      return shrink_rows<T, true, kHasRows, kShrink>(job, begin, end, start);
    }
    return shrink_rows<T, false, kHasRows, kShrink>(job, begin, end, start);
  }
  for (std::size_t column = begin; column < end; ++column) {
    sum_again<T>(job, column, start);
    shrink_column<T, kShrink>(job, (column - begin) * LaneTraits<T>::kLanes);
  }
}

// Makes the sums of some columns, and 16 bits of each.
template <class T>
__attribute__((noinline)) void shrink_columns(const TileJob<T>& job, std::size_t begin,
                                              std::size_t end, Start start) {
  NarrowTile<T>& narrow = *job.narrow;
  narrow.magnitude = 0;
  const bool has_rows = job.sums.axes.size > 1;
  if (!narrow.job.is_flip) {
    if (has_rows) {
      shrink_columns<T, true, Shrink::kFineGaps>(job, begin, end, start);
    } else {
      shrink_columns<T, false, Shrink::kGaps>(job, begin, end, start);
    }
  } else if (has_rows) {
    shrink_columns<T, true, Shrink::kSides>(job, begin, end, start);
  } else {
    shrink_columns<T, false, Shrink::kSides>(job, begin, end, start);
  }
  constexpr std::size_t kAll = LaneTraits<std::uint16_t>::kLanes;
  for (std::size_t lane = (end - begin) * LaneTraits<T>::kLanes; lane < kAll; ++lane) {
    for (std::size_t m = 0; m < job.sums.n_masks; ++m) narrow.job.near.decided[m].lane[lane] = 0;
  }
}

// Decides what 16 bits leave open, in columns whose sums are there.
template <class T>
void settle_columns(TileJob<T>& job, std::size_t begin, std::size_t end) {
  NarrowRoom<T>& room = *job.narrow->room;
  const bool many = room.has_many_doubts();
  if (!many) room.settle_finely();
  if (job.held.filler != nullptr && job.narrow->job.doubts.size > 0) job.held.filler->fill();
  for (std::size_t column = begin; column < end; ++column) {
    const std::size_t lane = (column - begin) * LaneTraits<T>::kLanes;
    if (!room.has_doubts(lane)) continue;
    if (many) {
      job.filter = room.filter(lane);
      count_columns<T, false>(job, column, column + 1, Start::kKept);
      job.filter = nullptr;
      continue;
    }
    sum_again<T>(job, column, Start::kKept);
    room.settle(job, lane);
  }
  room.finish(!many);
}

// Columns that fill the lanes of 16 bits, or are the last.
template <class T>
void count_narrow(TileJob<T>& job, std::size_t begin, std::size_t end) {
  NarrowRoom<T>& room = *job.narrow->room;
  if (room.skips()) return count_columns<T, false>(job, begin, end, job.sums.start);
  shrink_columns<T>(job, begin, end, job.sums.start);
  if (room.grows()) shrink_columns<T>(job, begin, end, Start::kKept);
  if (!room.is_usable()) {
    room.finish(false);
    return count_columns<T, false>(job, begin, end, Start::kKept);
  }
  decide_all(job.narrow->job, job.results.counts);
  settle_columns<T>(job, begin, end);
}

// The same if sums are held for few masks; those of all are asked for if they have to be compared
// in full.
template <class T>
void count_held(TileJob<T>& job, std::size_t begin, std::size_t end) {
  NarrowRoom<T>& room = *job.narrow->room;
  const bool skips = room.skips();
  bool is_done = false;
  while (!skips && !is_done && room.is_usable()) {
    is_done = count_fronts<T>(job, begin);
    static_cast<void>(room.grows());  // even if it is done: a smaller unit may do
  }
  if (is_done) return settle_columns<T>(job, begin, end);
  if (!skips) room.finish(false);
  job.held.filler->fill();
  count_columns<T, false>(job, begin, end, Start::kKept);
}

template <class T, bool kWeighted>
void count_tile(TileJob<T>& job) {
  const std::size_t n_columns = job.sums.n_columns;
  if (kWeighted || job.narrow == nullptr) {
    return count_columns<T, kWeighted>(job, 0, n_columns, job.sums.start);
  }
  constexpr std::size_t kColumns = LaneTraits<std::uint16_t>::kLanes / LaneTraits<T>::kLanes;
  for (std::size_t begin = 0; begin < n_columns; begin += kColumns) {
    const std::size_t end = begin + kColumns < n_columns ? begin + kColumns : n_columns;
    if (job.held.place != nullptr) {
      count_held<T>(job, begin, end);
    } else {
      count_narrow<T>(job, begin, end);
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

}  // namespace

}  // namespace xcount

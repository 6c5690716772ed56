// The loops over a tile. Included by one source per kind of machine, which sets the target and
// XCOUNT_VECTOR_BYTES, the width of its registers (at most that of Lanes), before:
// all that is here is compiled for that machine, and has internal linkage for that reason.
// Nothing of the standard library is called, as other sources would share such functions.
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

// V of one output and column, for all masks: the last two sensitive axes are added up on the way.
template <class T, Start kStart>
XCOUNT_INLINE void sum_column(TileJob<T>& job, std::size_t output, std::size_t column) {
  const std::size_t n_masks = job.n_masks;
  const Lanes<T>* slab = job.slab[output] + column * n_masks;
  Lanes<T>* sums = job.sums[output] + column * n_masks;
  Lanes<T>* out = job.column + output * n_masks;
  const std::size_t* axes = job.sensitive_cells;
  const std::size_t n_axes = job.n_sensitive;
  const std::size_t row = n_axes > 0 ? axes[n_axes - 1] : 1;
  const std::size_t n_rows = n_axes > 1 ? axes[n_axes - 2] : 1;
  for (std::size_t begin = 0, number = 0; begin < n_masks; begin += row, ++number) {
    if (number == n_rows) number = 0;
    Unsigned<T> total{};
    for (std::size_t m = begin; m < begin + row; ++m) {
      Unsigned<T> sum{};
      if constexpr (kStart != Start::kKept) sum = load<Unsigned<T>>(slab[m], job.offset);
      if constexpr (kStart != Start::kFresh) sum += load<Unsigned<T>>(sums[m], job.offset);
      if constexpr (kStart != Start::kKept) store(sums[m], job.offset, sum);
      total += sum;
      Unsigned<T> value = total;
      if (number > 0) value += load<Unsigned<T>>(out[m - row], job.offset);
      store(out[m], job.offset, value);
    }
  }
  std::size_t stride = row * n_rows;
  for (std::size_t i = n_axes > 2 ? n_axes - 2 : 0; i-- > 0; stride *= axes[i]) {
    sum_along<T>(out, n_masks, stride, axes[i], job.offset);
  }
}

// Sets what is decided to the index of the largest output; it may stand in the first one's place.
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
    store(job.decided[m], job.offset, index);
  }
}

template <class T>
XCOUNT_INLINE double probability(const TileJob<T>& job, std::size_t mask, std::size_t lane) {
  if (job.softmax) return softmax(job, job.output, mask, lane);
  const double own = argument(job, job.column[job.output * job.n_masks + mask].lane[lane]);
  return 1.0 / (1.0 + __builtin_exp(-own));
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

// Makes what is compared in a column.
template <class T>
XCOUNT_INLINE void sum_outputs(TileJob<T>& job, std::size_t column, Start start) {
  for (std::size_t k = 0; k < job.n_outputs; ++k) {
    if (start == Start::kFresh) {
      sum_column<T, Start::kFresh>(job, k, column);
    } else if (start == Start::kAdded) {
      sum_column<T, Start::kAdded>(job, k, column);
    } else {
      sum_column<T, Start::kKept>(job, k, column);
    }
  }
  if (job.changes[0].form == ChangeForm::kProbability) {
    find_probabilities<T>(job);
  } else if (job.n_outputs > 1) {
    find_largest<T>(job);
  }
}

// Here and below, jobs are copied: compilers know that no store changes a copy.
template <class T, bool kWeighted>
XCOUNT_INLINE void count_columns(TileJob<T> job, std::size_t begin, std::size_t end, Start start) {
  for (std::size_t column = begin; column < end; ++column) {
    for (job.offset = 0; job.offset < LaneTraits<T>::kLanes; job.offset += kRegisterLanes<T>) {
      sum_outputs<T>(job, column, start);
      decide_column<T, kWeighted>(job, column);
    }
  }
}

// 16 bits of what is compared in a column.
template <class T, Shrink kShrink>
XCOUNT_INLINE void shrink_column(const TileJob<T>& job, std::size_t lane) {
  Shrinker<T, kShrink> shrinker(*job.narrow);
  const auto first = load<Signed<T>>(job.decided[0], job.offset);
  for (std::size_t m = 0; m < job.n_masks; ++m) {
    shrinker.put(m, lane, load<Signed<T>>(job.decided[m], job.offset), first);
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
  Lanes<T>* row_before = nullptr;  // become what the next row needs
  Lanes<T>* plane_before = nullptr;
  bool has_row = false, has_plane = false;  // before it
};

// kSlower: sensitive axes that are slower than the row. first: V of the first mask.
template <class T, Start kStart, std::size_t kSlower, Shrink kShrink>
XCOUNT_INLINE void shrink_row(const MaskRow<T>& row, std::size_t offset, std::size_t lane,
                              Lanes<T>& first, Shrinker<T, kShrink>& shrinker) {
  const auto [m, n, slab, sums, row_before, plane_before, has_row, has_plane] = row;
  Unsigned<T> total{};
  auto origin = load<Signed<T>>(first, offset);
  for (std::size_t cell = 0; cell < n; ++cell) {
    Unsigned<T> sum{};
    if constexpr (kStart != Start::kKept) sum = load<Unsigned<T>>(slab[cell], offset);
    if constexpr (kStart != Start::kFresh) sum += load<Unsigned<T>>(sums[cell], offset);
    if constexpr (kStart != Start::kKept) store(sums[cell], offset, sum);
    total += sum;
    Unsigned<T> value = total;
    if constexpr (kSlower > 0) {
      if (has_row) value += load<Unsigned<T>>(row_before[cell], offset);
      store(row_before[cell], offset, value);
    }
    if constexpr (kSlower > 1) {
      if (has_plane) value += load<Unsigned<T>>(plane_before[cell], offset);
      store(plane_before[cell], offset, value);
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
template <class T, Start kStart, std::size_t kSlower, Shrink kShrink>
__attribute__((noinline)) void shrink_rows(const TileJob<T>& job, std::size_t begin,
                                           std::size_t end) {
  NarrowTile<T>& narrow = *job.narrow;
  const std::size_t* axes = job.sensitive_cells;
  const std::size_t n_axes = job.n_sensitive;
  const std::size_t n_masks = job.n_masks;
  const std::size_t n = n_axes > 0 ? axes[n_axes - 1] : 1;
  const std::size_t n_rows = kSlower > 0 ? axes[n_axes - 2] : 1;
  const std::size_t n_before = kSlower > 1 ? n + n * n_rows : kSlower * n;
  Lanes<T> first[LaneTraits<std::uint16_t>::kLanes / LaneTraits<T>::kLanes];
  Shrinker<T, kShrink> shrinker(narrow);
  for (std::size_t m = 0, number = 0; m < n_masks; m += n, ++number) {
    if (number == n_rows) number = 0;
    for (std::size_t column = begin; column < end; ++column) {
      const std::size_t i = column - begin;
      MaskRow<T> row{m, n, job.slab[0] + column * n_masks + m, job.sums[0] + column * n_masks + m};
      row.row_before = narrow.before + i * n_before;
      row.has_row = number > 0;
      if constexpr (kSlower > 1) {
        row.plane_before = row.row_before + (1 + number) * n;
        row.has_plane = m >= n * n_rows;
      }
      for (std::size_t offset = 0; offset < LaneTraits<T>::kLanes; offset += kRegisterLanes<T>) {
        const std::size_t lane = i * LaneTraits<T>::kLanes + offset;
        shrink_row<T, kStart, kSlower, kShrink>(row, offset, lane, first[i], shrinker);
      }
    }
  }
  shrinker.finish(narrow);
}

template <class T, Start kStart, Shrink kShrink>
XCOUNT_INLINE void shrink_rows(const TileJob<T>& job, std::size_t begin, std::size_t end) {
  if constexpr (kShrink == Shrink::kGaps) {
    shrink_rows<T, kStart, 0, kShrink>(job, begin, end);
  } else if (job.n_sensitive <= 1) {
    shrink_rows<T, kStart, 0, kShrink>(job, begin, end);
  } else if (job.n_sensitive == 2) {
    shrink_rows<T, kStart, 1, kShrink>(job, begin, end);
  } else {
    shrink_rows<T, kStart, 2, kShrink>(job, begin, end);
  }
}

template <class T, Shrink kShrink>
XCOUNT_INLINE void shrink_columns(TileJob<T>& job, std::size_t begin, std::size_t end,
                                  Start start) {
  if (job.n_outputs == 1 && job.n_sensitive <= kRowAxes) {
    if (start == Start::kFresh) return shrink_rows<T, Start::kFresh, kShrink>(job, begin, end);
    if (start == Start::kAdded) return shrink_rows<T, Start::kAdded, kShrink>(job, begin, end);
    return shrink_rows<T, Start::kKept, kShrink>(job, begin, end);
  }
  for (std::size_t column = begin; column < end; ++column) {
    for (job.offset = 0; job.offset < LaneTraits<T>::kLanes; job.offset += kRegisterLanes<T>) {
      sum_outputs<T>(job, column, start);
      shrink_column<T, kShrink>(job, (column - begin) * LaneTraits<T>::kLanes + job.offset);
    }
  }
}

// Makes the sums of some columns, and 16 bits of each.
template <class T>
XCOUNT_INLINE void shrink_columns(TileJob<T> job, std::size_t begin, std::size_t end, Start start) {
  NarrowTile<T>& narrow = *job.narrow;
  narrow.magnitude = 0;
  if (narrow.is_flip) {
    shrink_columns<T, Shrink::kSides>(job, begin, end, start);
  } else if (job.n_sensitive > 1) {
    shrink_columns<T, Shrink::kFineGaps>(job, begin, end, start);
  } else {
    shrink_columns<T, Shrink::kGaps>(job, begin, end, start);
  }
  constexpr std::size_t kAll = LaneTraits<std::uint16_t>::kLanes;
  for (std::size_t lane = (end - begin) * LaneTraits<T>::kLanes; lane < kAll; ++lane) {
    for (std::size_t m = 0; m < job.n_masks; ++m) narrow.tile.decided[m].lane[lane] = 0;
  }
}

// Decides what 16 bits leave open, in columns whose sums are there.
template <class T>
void settle_columns(TileJob<T>& job, std::size_t begin, std::size_t end) {
  NarrowRoom<T>& room = *job.narrow->room;
  const bool many = room.has_many_doubts();
  if (!many) room.settle_finely();
  if (job.filler != nullptr && job.narrow->n_doubts > 0) job.filler->fill();
  for (std::size_t column = begin; column < end; ++column) {
    const std::size_t lane = (column - begin) * LaneTraits<T>::kLanes;
    if (!room.has_doubts(lane)) continue;
    if (many) {
      job.filter = room.filter(lane);
      count_columns<T, false>(job, column, column + 1, Start::kKept);
      job.filter = nullptr;
      continue;
    }
    for (job.offset = 0; job.offset < LaneTraits<T>::kLanes; job.offset += kRegisterLanes<T>) {
      sum_outputs<T>(job, column, Start::kKept);
    }
    room.settle(job, lane);
  }
  room.finish(!many);
}

// Columns that fill the lanes of 16 bits, or are the last.
template <class T>
void count_narrow(TileJob<T>& job, std::size_t begin, std::size_t end) {
  NarrowRoom<T>& room = *job.narrow->room;
  if (room.skips()) return count_columns<T, false>(job, begin, end, job.start);
  shrink_columns<T>(job, begin, end, job.start);
  if (room.grows()) shrink_columns<T>(job, begin, end, Start::kKept);
  if (!room.is_usable()) {
    room.finish(false);
    return count_columns<T, false>(job, begin, end, Start::kKept);
  }
  decide_narrow<T>(job);
  settle_columns<T>(job, begin, end);
}

// The same where sums are held of few masks; those of all are asked for where they have to be
// compared in full.
template <class T>
void count_held(TileJob<T>& job, std::size_t begin, std::size_t end) {
  NarrowRoom<T>& room = *job.narrow->room;
  const auto count_in_full = [&] {
    job.filler->fill();
    count_columns<T, false>(job, begin, end, Start::kKept);
  };
  if (room.skips()) return count_in_full();
  bool is_done = false;
  while (!is_done && room.is_usable()) {
    is_done = count_fronts<T>(job, begin);
    static_cast<void>(room.grows());  // also where it is: a smaller unit may do
  }
  if (is_done) return settle_columns<T>(job, begin, end);
  room.finish(false);
  count_in_full();
}

template <class T, bool kWeighted>
void count_tile(TileJob<T>& job) {
  if constexpr (kIsVector<T> && !kWeighted) {
    constexpr std::size_t kColumns = LaneTraits<std::uint16_t>::kLanes / LaneTraits<T>::kLanes;
    for (std::size_t begin = 0; job.narrow != nullptr && begin < job.n_columns; begin += kColumns) {
      const std::size_t end = begin + kColumns < job.n_columns ? begin + kColumns : job.n_columns;
      if (job.place != nullptr) {
        count_held<T>(job, begin, end);
      } else {
        count_narrow<T>(job, begin, end);
      }
    }
    if (job.narrow != nullptr) return;
  }
  count_columns<T, kWeighted>(job, 0, job.n_columns, job.start);
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

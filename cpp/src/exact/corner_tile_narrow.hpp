// The loops over a tile that compare 16 bits of the sums. Compiled once per vector unit, like the
// other loops (corner_tile_kernels.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "corner_tile_decisions.hpp"
#include "corner_tile_registers.hpp"
#include "xcount/exact/narrow_tile.hpp"

namespace xcount {

namespace {

// As many numbers of 16 bits as a register has lanes of T.
template <class T>
struct NarrowPart {
  typedef std::uint16_t Type
      __attribute__((vector_size(XCOUNT_VECTOR_BYTES / sizeof(T) * sizeof(std::uint16_t))));
};

// What is made of a sum: q for flips, q for gaps, or q and the next 16 bits for gaps.
enum class Shrink : std::uint8_t { kSides, kGaps, kFineGaps };

// Makes q of some lanes of a mask, from lane `lane` of its vector on.
template <class T, Shrink kShrink>
struct Shrinker {
  using Part = typename NarrowPart<T>::Type;

  XCOUNT_INLINE explicit Shrinker(const NarrowTile<T>& narrow)
      : decided(narrow.job.near.decided),
        fine(narrow.fine),
        cuts(narrow.cuts.data),
        n_cuts(narrow.cuts.size),
        shift(static_cast<int>(narrow.shift)),
        left(shift < 16 ? 16 - shift : 0),
        right(shift > 16 ? shift - 16 : 0),
        middle(broadcast<T>(T(T(1) << (shift + 15)))) {}

  // Gaps: the difference to the first mask, in units; flips: how many cut-offs are below.
  XCOUNT_INLINE void put(std::size_t m, std::size_t lane, const Signed<T>& value,
                         const Signed<T>& first) {
    if constexpr (kShrink == Shrink::kSides) {
      Unsigned<T> n_below{};
      for (std::size_t i = 0; i < n_cuts; ++i) {
        n_below -= Unsigned<T>(value > broadcast<T>(cuts[i]));
      }
      store(decided[m], lane, __builtin_convertvector(n_below, Part));
    } else {
      const Unsigned<T> units = above(value, first);
      store(decided[m], lane, __builtin_convertvector(units >> shift, Part));
      if constexpr (kShrink == Shrink::kGaps) return;
      store(fine[m], lane, __builtin_convertvector(units << left >> right, Part));
    }
  }

  // The difference, from 0 on; its size is noted.
  XCOUNT_INLINE Unsigned<T> above(const Signed<T>& value, const Signed<T>& first) {
    constexpr int kSign = 8 * sizeof(T) - 1;
    const Signed<T> rise = value - first;
    magnitude |= rise ^ (rise >> kSign);
    return Unsigned<T>(rise + middle);
  }

  // Notes in the tile how large the differences were.
  XCOUNT_INLINE void finish(NarrowTile<T>& narrow) const {
    LaneResidue<T> parts[kRegisterLanes<T>];
    __builtin_memcpy(parts, &magnitude, sizeof parts);
    for (const LaneResidue<T> part : parts) narrow.magnitude |= part;
  }

  Lanes<std::uint16_t>* decided;
  Lanes<std::uint16_t>* fine;
  const T* cuts;
  std::size_t n_cuts;
  int shift, left, right;
  Signed<T> middle;
  Signed<T> magnitude{};
};

using Q = std::uint16_t;

XCOUNT_INLINE void note_doubt(Doubts& doubts, std::size_t change, std::size_t mask,
                              std::size_t offset, const Mask<Q>& lanes) {
  Doubt& doubt = doubts.data[doubts.size++];
  doubt = {change, mask, {}};
  store(doubt.lanes, offset, lanes);
}

// By how much a neighbour exceeds a mask's own q, either way.
struct Rises {
  Signed<Q> up, down, either;

  [[nodiscard]] XCOUNT_INLINE const Signed<Q>& along(Direction direction) const {
    return direction == Direction::kAny ? either : direction == Direction::kUp ? up : down;
  }
};

// What deciding a mask needs: copies, which no store changes.
struct DecideNarrow {
  NarrowJob* job;
  const Lanes<Q>* decided;
  const NarrowChange* changes;
  std::size_t offset, n_changes, n_masks;
  std::uint32_t* counts;

  XCOUNT_INLINE explicit DecideNarrow(NarrowJob& narrow)
      : job(&narrow),
        decided(narrow.near.decided),
        changes(narrow.changes.data),
        offset(narrow.near.offset),
        n_changes(narrow.changes.size),
        n_masks(narrow.near.masks.n_masks),
        counts(narrow.counts) {}

  XCOUNT_INLINE void add(std::size_t change, std::size_t mask, const Mask<Q>& hit) const {
    counts[change * n_masks + mask] += n_set<Q>(hit);
  }
};

// Counts the lanes in which a neighbour surely exceeds a gap, and notes the doubts.
struct DecideGaps : DecideNarrow {
  XCOUNT_INLINE explicit DecideGaps(NarrowJob& narrow) : DecideNarrow(narrow) {}

  XCOUNT_INLINE void operator()(std::size_t m, const Extremes<Q>& extremes) const {
    const auto own = load<Signed<Q>>(decided[m], offset);
    Rises rises{extremes.high - own, own - extremes.low, {}};
    rises.either = rises.up > rises.down ? rises.up : rises.down;
    Mask<Q> doubt{};
    for (std::size_t i = 0; i < n_changes; ++i) {
      const Signed<Q>& rise = rises.along(changes[i].direction);
      const Mask<Q> surely = rise > broadcast<Q>(changes[i].surely);
      add(i, m, surely);
      doubt |= surely ^ (rise > broadcast<Q>(changes[i].possibly));
    }
    if (any_of<Q>(doubt)) note_doubts(m, rises);
  }

  XCOUNT_INLINE void note_doubts(std::size_t m, const Rises& rises) const {
    for (std::size_t i = 0; i < n_changes; ++i) {
      const Signed<Q>& rise = rises.along(changes[i].direction);
      const Mask<Q> doubt =
          (rise > broadcast<Q>(changes[i].surely)) ^ (rise > broadcast<Q>(changes[i].possibly));
      if (any_of<Q>(doubt)) note_doubt(job->doubts, i, m, offset, doubt);
    }
  }
};

// The same for flips, which leave no doubts.
struct DecideFlips : DecideNarrow {
  XCOUNT_INLINE explicit DecideFlips(NarrowJob& narrow) : DecideNarrow(narrow) {}

  XCOUNT_INLINE void operator()(std::size_t m, const Extremes<Q>& extremes) const {
    const auto own = load<Signed<Q>>(decided[m], offset);
    for (std::size_t i = 0; i < n_changes; ++i) {
      const NarrowChange& change = changes[i];
      const Mask<Q> up =
          (own <= broadcast<Q>(change.sure_below)) & (extremes.high > broadcast<Q>(change.high));
      const Mask<Q> down =
          (own > broadcast<Q>(change.sure_above)) & (extremes.low <= broadcast<Q>(change.low));
      add(i, m,
          change.direction == Direction::kAny  ? up | down
          : change.direction == Direction::kUp ? up
                                               : down);
    }
  }
};

inline void clear_counts(const NarrowJob& job) {
  const std::size_t n_results = job.changes.size * job.near.masks.n_masks;
  for (std::size_t i = 0; i < n_results; ++i) job.counts[i] = 0;
}

inline void add_counts(const NarrowJob& job, std::uint64_t* counts) {
  const std::size_t n_results = job.changes.size * job.near.masks.n_masks;
  const std::uint32_t* own = job.counts;
  for (std::size_t i = 0; i < n_results; ++i) counts[i] += own[i];
}

// Counts what is sure; the rest becomes doubts. Calls run(job, decide) for each register's lanes,
// which calls decide(mask, extremes around it).
template <class Run>
XCOUNT_INLINE void decide_narrow(NarrowJob& job, Run run) {
  NearTables<Q>& near = job.near;
  for (near.offset = 0; near.offset < LaneTraits<Q>::kLanes; near.offset += kRegisterLanes<Q>) {
    if (job.is_flip) {
      run(near, DecideFlips(job));
    } else {
      run(near, DecideGaps(job));
    }
  }
}

// The same for all masks of the columns, whose q are there.
inline __attribute__((noinline)) void decide_all(NarrowJob& job, std::uint64_t* counts) {
  job.doubts.size = 0;
  clear_counts(job);
  decide_narrow(job, [](const NearTables<Q>& near, const auto& decide)
                         XCOUNT_LAMBDA { visit_near<Q>(near, decide); });
  add_counts(job, counts);
}

}  // namespace

}  // namespace xcount

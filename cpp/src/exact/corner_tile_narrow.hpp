// The loops over a tile that compare 16 bits of the sums. Compiled once per kind of machine, as the
// other loops are (corner_tile_kernels.hpp).
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

// What is made of a sum: q of flips, q of gaps, or 16 bits more of gaps, too.
enum class Shrink : std::uint8_t { kSides, kGaps, kFineGaps };

// Makes q of some lanes of a mask, from lane `lane` of its vector on.
template <class T, Shrink kShrink>
struct Shrinker {
  using Part = typename NarrowPart<T>::Type;

  XCOUNT_INLINE explicit Shrinker(const NarrowTile<T>& narrow)
      : decided(narrow.tile.decided),
        fine(narrow.fine),
        cuts(narrow.cuts),
        n_cuts(narrow.n_cuts),
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

  // Tells the tile how large the differences were.
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

template <class T>
XCOUNT_INLINE void note_doubt(NarrowTile<T>& narrow, std::size_t change, std::size_t mask,
                              std::size_t offset, const Mask<Q>& lanes) {
  Doubt& doubt = narrow.doubts[narrow.n_doubts++];
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

template <class T>
XCOUNT_INLINE void note_doubts(NarrowTile<T>& narrow, const TileJob<Q>& tile, std::size_t m,
                               const Rises& rises) {
  for (std::size_t i = 0; i < tile.n_changes; ++i) {
    const NarrowChange& change = narrow.changes[i];
    const Signed<Q>& rise = rises.along(change.direction);
    const Mask<Q> doubt =
        (rise > broadcast<Q>(change.surely)) ^ (rise > broadcast<Q>(change.possibly));
    if (any_of<Q>(doubt)) note_doubt<T>(narrow, i, m, tile.offset, doubt);
  }
}

// Calls run(decide), where decide(mask, extremes around it) counts what surely exceeds a gap and
// notes the doubts.
template <class T, class Count, class Run>
XCOUNT_INLINE void decide_gaps(NarrowTile<T>& narrow, TileJob<Q>& tile, Count* counts, Run run) {
  run([&narrow, &tile, decided = tile.decided, offset = tile.offset, changes = narrow.changes,
       n_changes = tile.n_changes, n_masks = tile.n_masks,
       counts](std::size_t m, const Extremes<Q>& extremes) XCOUNT_LAMBDA {
    const auto own = load<Signed<Q>>(decided[m], offset);
    Rises rises{extremes.high - own, own - extremes.low, {}};
    rises.either = rises.up > rises.down ? rises.up : rises.down;
    Mask<Q> doubt{};
    for (std::size_t i = 0; i < n_changes; ++i) {
      const Signed<Q>& rise = rises.along(changes[i].direction);
      const Mask<Q> surely = rise > broadcast<Q>(changes[i].surely);
      counts[i * n_masks + m] = static_cast<Count>(counts[i * n_masks + m] + n_set<Q>(surely));
      doubt |= surely ^ (rise > broadcast<Q>(changes[i].possibly));
    }
    if (any_of<Q>(doubt)) note_doubts<T>(narrow, tile, m, rises);
  });
}

// The same for flips, which leave no doubts.
template <class T, class Count, class Run>
XCOUNT_INLINE void decide_flips(const NarrowTile<T>& narrow, TileJob<Q>& tile, Count* counts,
                                Run run) {
  run([decided = tile.decided, offset = tile.offset, changes = narrow.changes,
       n_changes = tile.n_changes, n_masks = tile.n_masks,
       counts](std::size_t m, const Extremes<Q>& extremes) XCOUNT_LAMBDA {
    const auto own = load<Signed<Q>>(decided[m], offset);
    for (std::size_t i = 0; i < n_changes; ++i) {
      const NarrowChange& change = changes[i];
      const Mask<Q> up =
          (own <= broadcast<Q>(change.sure_below)) & (extremes.high > broadcast<Q>(change.high));
      const Mask<Q> down =
          (own > broadcast<Q>(change.sure_above)) & (extremes.low <= broadcast<Q>(change.low));
      const Mask<Q> hit = change.direction == Direction::kAny  ? up | down
                          : change.direction == Direction::kUp ? up
                                                               : down;
      counts[i * n_masks + m] = static_cast<Count>(counts[i * n_masks + m] + n_set<Q>(hit));
    }
  });
}

// Counts what is sure; the rest becomes doubts.
template <class T>
XCOUNT_INLINE void decide_narrow(TileJob<T>& job) {
  NarrowTile<T>& narrow = *job.narrow;
  narrow.n_doubts = 0;
  TileJob<Q> tile = narrow.tile;
  for (tile.offset = 0; tile.offset < LaneTraits<Q>::kLanes; tile.offset += kRegisterLanes<Q>) {
    const auto run = [&tile](const auto& decide) XCOUNT_LAMBDA { decide_near<Q>(tile, decide); };
    if (narrow.is_flip) {
      decide_flips<T>(narrow, tile, tile.counts, run);
    } else {
      decide_gaps<T>(narrow, tile, tile.counts, run);
    }
  }
}

}  // namespace

}  // namespace xcount

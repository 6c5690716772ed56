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

// q of gaps: the difference to the first mask, in units. Here and below, each(visit) calls
// visit(mask, what is compared) for every mask, the first mask first.
template <class T, class Each>
XCOUNT_INLINE void shrink_sums(NarrowTile<T>& narrow, std::size_t lane, Each each) {
  using Part = typename NarrowPart<T>::Type;
  constexpr int kSign = 8 * sizeof(T) - 1;
  const auto shift = static_cast<int>(narrow.shift);
  const Signed<T> middle = broadcast<T>(T(T(1) << (shift + 15)));
  const int left = shift < 16 ? 16 - shift : 0;
  const int right = shift > 16 ? shift - 16 : 0;
  Signed<T> first{};
  Signed<T> magnitude{};
  each([&](std::size_t m, const Signed<T>& value) XCOUNT_LAMBDA {
    if (m == 0) first = value;
    const Signed<T> rise = value - first;
    magnitude |= rise ^ (rise >> kSign);
    const auto above = Unsigned<T>(rise + middle);
    store(narrow.tile.decided[m], lane, __builtin_convertvector(above >> shift, Part));
    store(narrow.fine[m], lane, __builtin_convertvector(above << left >> right, Part));
  });
  LaneResidue<T> parts[kRegisterLanes<T>];
  __builtin_memcpy(parts, &magnitude, sizeof parts);
  for (const LaneResidue<T> part : parts) narrow.magnitude |= part;
}

// q of flips: how many cut-offs are below.
template <class T, class Each>
XCOUNT_INLINE void shrink_sides(NarrowTile<T>& narrow, std::size_t lane, Each each) {
  using Part = typename NarrowPart<T>::Type;
  each([&](std::size_t m, const Signed<T>& value) XCOUNT_LAMBDA {
    Unsigned<T> n_below{};
    for (std::size_t i = 0; i < narrow.n_cuts; ++i) {
      n_below -= Unsigned<T>(value > broadcast<T>(narrow.cuts[i]));
    }
    store(narrow.tile.decided[m], lane, __builtin_convertvector(n_below, Part));
  });
}

template <class T, class Each>
XCOUNT_INLINE void shrink(NarrowTile<T>& narrow, std::size_t lane, Each each) {
  if (narrow.is_flip) {
    shrink_sides<T>(narrow, lane, each);
  } else {
    shrink_sums<T>(narrow, lane, each);
  }
}

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
    const Mask<Q> doubt = (rise > broadcast<Q>(change.surely)) ^
                          (rise > broadcast<Q>(change.possibly));
    if (any_of<Q>(doubt)) note_doubt<T>(narrow, i, m, tile.offset, doubt);
  }
}

template <class T>
XCOUNT_INLINE void decide_gaps(NarrowTile<T>& narrow, TileJob<Q>& tile) {
  const auto decide = [&narrow, &tile, decided = tile.decided, offset = tile.offset,
                       changes = narrow.changes, n_changes = tile.n_changes,
                       n_masks = tile.n_masks, counts = narrow.counts](
                          std::size_t m, const Extremes<Q>& extremes) XCOUNT_LAMBDA {
    const auto own = load<Signed<Q>>(decided[m], offset);
    Rises rises{extremes.high - own, own - extremes.low, {}};
    rises.either = rises.up > rises.down ? rises.up : rises.down;
    Mask<Q> doubt{};
    for (std::size_t i = 0; i < n_changes; ++i) {
      const Signed<Q>& rise = rises.along(changes[i].direction);
      const Mask<Q> surely = rise > broadcast<Q>(changes[i].surely);
      counts[i * n_masks + m] += n_set(surely);
      doubt |= surely ^ (rise > broadcast<Q>(changes[i].possibly));
    }
    if (any_of<Q>(doubt)) note_doubts<T>(narrow, tile, m, rises);
  };
  decide_near<Q>(tile, decide);
}

template <class T>
XCOUNT_INLINE void decide_flips(const NarrowTile<T>& narrow, TileJob<Q>& tile) {
  const auto decide = [decided = tile.decided, offset = tile.offset, changes = narrow.changes,
                       n_changes = tile.n_changes, n_masks = tile.n_masks, counts = narrow.counts](
                          std::size_t m, const Extremes<Q>& extremes) XCOUNT_LAMBDA {
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
      counts[i * n_masks + m] += n_set(hit);
    }
  };
  decide_near<Q>(tile, decide);
}

// Counts what is sure; the rest becomes doubts.
template <class T>
XCOUNT_INLINE void decide_narrow(TileJob<T>& job) {
  NarrowTile<T>& narrow = *job.narrow;
  narrow.n_doubts = 0;
  TileJob<Q> tile = narrow.tile;
  for (tile.offset = 0; tile.offset < LaneTraits<Q>::kLanes; tile.offset += kRegisterLanes<Q>) {
    if (narrow.is_flip) {
      decide_flips<T>(narrow, tile);
    } else {
      decide_gaps<T>(narrow, tile);
    }
  }
}

}  // namespace

}  // namespace xcount

// The integers that margins are computed in, and how many of them a vector has.
// Proved in docs/corner-sums.md, "Sums that wrap around".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "xcount/support/value.hpp"

namespace xcount {

// Residue: T modulo 2^width, in which sums may wrap around; kLanes: numbers in a vector.
template <class T>
struct LaneTraits;

template <>
struct LaneTraits<std::uint16_t> {  // for comparisons only: see narrow_tile.hpp
  using Residue = std::uint16_t;
  static constexpr std::size_t kLanes = 32;
};

template <>
struct LaneTraits<std::int32_t> {
  using Residue = std::uint32_t;
  static constexpr std::size_t kLanes = 16;
};

template <>
struct LaneTraits<std::int64_t> {
  using Residue = std::uint64_t;
  static constexpr std::size_t kLanes = 8;
};

template <>
struct LaneTraits<Int128> {
  using Residue = UInt128;
  static constexpr std::size_t kLanes = 1;
};

template <>
struct LaneTraits<Int2304> {
  using Residue = Int2304;
  static constexpr std::size_t kLanes = 1;
};

template <class T>
using LaneResidue = typename LaneTraits<T>::Residue;

// The residue modulo 2^width of T.
template <class T, class Value>
[[nodiscard]] LaneResidue<T> truncated(const Value& value) {
  if constexpr (!std::is_same_v<T, Value> && std::is_same_v<Value, Int2304>) {
    return truncated<T>(ValueTraits<Int128>::from_limbs(std::span(value.limbs).first(2)));
  } else {
    return static_cast<LaneResidue<T>>(value);
  }
}

// A vector in memory: 64 bytes, a cache line, for the built-in widths.
template <class T>
struct alignas(LaneTraits<T>::kLanes > 1 ? 64 : alignof(T)) Lanes {
  LaneResidue<T> lane[LaneTraits<T>::kLanes];
};

}  // namespace xcount

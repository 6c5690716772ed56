// The number types of leaf sums. All sums are integers: 64 bits where they fit, 128 where they do
// not, and a wide type that holds any sum of 64-bit floats scaled to integers.
//
// With B the sum over the trees of the largest leaf in magnitude, the caller chooses the type so
// that 4 * (B + 1) fits: then no sum, offset or end of an interval overflows, and
// -infinity() < every such number < infinity(). Proof: docs/exact.md, "Why this is right", "No
// overflow".
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace xcount {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

// A two's complement integer of N 64-bit limbs, least significant first. Sums must fit. Its
// arithmetic stands in value.cpp and is not inlined: it would be most of the code of every loop.
template <std::size_t N>
struct WideInt {
  std::array<std::uint64_t, N> limbs{};

  WideInt() = default;
  WideInt(std::int64_t value);  // NOLINT: implicit, like the built-in integers

  [[nodiscard]] bool negative() const { return (limbs[N - 1] >> 63) != 0; }
  // -1, 0 or 1 as this is less than, equal to or greater than the other.
  [[nodiscard]] int compare(const WideInt& other) const;

  WideInt operator-() const;
  WideInt& operator+=(const WideInt& other);
  WideInt& operator-=(const WideInt& other);
  friend WideInt operator+(WideInt a, const WideInt& b) { return a += b; }
  friend WideInt operator-(WideInt a, const WideInt& b) { return a -= b; }
  friend bool operator==(const WideInt& a, const WideInt& b) { return a.compare(b) == 0; }
  friend bool operator<(const WideInt& a, const WideInt& b) { return a.compare(b) < 0; }
  friend bool operator>(const WideInt& a, const WideInt& b) { return a.compare(b) > 0; }
  friend bool operator<=(const WideInt& a, const WideInt& b) { return a.compare(b) <= 0; }
};

using Int2304 = WideInt<36>;

// How a value is read from limbs and hashed, what lies beyond every sum, how large it is roughly:
// `to_number` as a number (infinity if it is too large), `to_double` in a unit of the type's own,
// to compare sizes. Of values that are not negative, `scaled` is value * 2^exponent, rounded, and
// `bit_width` the number of bits that they take.
template <class Value>
struct ValueTraits;

template <>
struct ValueTraits<std::int64_t> {
  static constexpr std::size_t kLimbs = 1;
  static std::int64_t from_limbs(std::span<const std::uint64_t> limbs) {
    return static_cast<std::int64_t>(limbs[0]);
  }
  static std::uint64_t hash(std::int64_t value) { return static_cast<std::uint64_t>(value); }
  static std::int64_t infinity() { return INT64_MAX / 2; }
  static double to_double(std::int64_t value) { return static_cast<double>(value); }
  static double scaled(std::int64_t value, int exponent) {
    return std::ldexp(static_cast<double>(value), exponent);
  }
  static int bit_width(std::int64_t value) {
    return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value)));
  }
  static double to_number(std::int64_t value) { return to_double(value); }
};

template <>
struct ValueTraits<Int128> {
  static constexpr std::size_t kLimbs = 2;
  static Int128 from_limbs(std::span<const std::uint64_t> limbs) {
    return static_cast<Int128>((static_cast<UInt128>(limbs[1]) << 64) | limbs[0]);
  }
  static std::uint64_t hash(Int128 value) {
    const auto bits = static_cast<UInt128>(value);
    return static_cast<std::uint64_t>(bits) ^
           (static_cast<std::uint64_t>(bits >> 64) * 0x9E3779B97F4A7C15ULL);
  }
  static Int128 infinity() { return static_cast<Int128>((~UInt128{0}) >> 2); }
  static double to_double(Int128 value) { return static_cast<double>(value); }
  static double scaled(Int128 value, int exponent) {
    return std::ldexp(static_cast<double>(value), exponent);
  }
  static int bit_width(Int128 value) {
    const auto high = static_cast<std::uint64_t>(static_cast<UInt128>(value) >> 64);
    if (high != 0) return 64 + static_cast<int>(std::bit_width(high));
    return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value)));
  }
  static double to_number(Int128 value) { return to_double(value); }
};

template <std::size_t N>
struct ValueTraits<WideInt<N>> {
  static constexpr std::size_t kLimbs = N;
  static WideInt<N> from_limbs(std::span<const std::uint64_t> limbs);
  static std::uint64_t hash(const WideInt<N>& value);
  static const WideInt<N>& infinity();
  // Scaled by 2^-1280 to stay finite. Not for negatives.
  static double to_double(const WideInt<N>& value) { return scaled(value, -1280); }
  static double to_number(const WideInt<N>& value) { return scaled(value, 0); }

  static double scaled(const WideInt<N>& value, int exponent);
  static int bit_width(const WideInt<N>& value);
};

extern template struct WideInt<36>;
extern template struct ValueTraits<Int2304>;

}  // namespace xcount

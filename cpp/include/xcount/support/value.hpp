// The number types of leaf sums. All sums are integers: 64 bits where they fit, 128 where they do
// not, and a wide type that holds any sum of 64-bit floats scaled to integers.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace xcount {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

// A two's complement integer of N 64-bit limbs, least significant first. Sums must fit.
template <std::size_t N>
struct WideInt {
  std::array<std::uint64_t, N> limbs{};

  WideInt() = default;
  WideInt(std::int64_t value) {  // NOLINT: implicit, like the built-in integers
    limbs.fill(value < 0 ? ~std::uint64_t{0} : 0);
    limbs[0] = static_cast<std::uint64_t>(value);
  }

  [[nodiscard]] bool negative() const { return (limbs[N - 1] >> 63) != 0; }

  WideInt& operator+=(const WideInt& other) {
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < N; ++i) {
      const UInt128 sum = static_cast<UInt128>(limbs[i]) + other.limbs[i] + carry;
      limbs[i] = static_cast<std::uint64_t>(sum);
      carry = static_cast<std::uint64_t>(sum >> 64);
    }
    return *this;
  }
  WideInt operator-() const {
    WideInt result;
    for (std::size_t i = 0; i < N; ++i) result.limbs[i] = ~limbs[i];
    return result += WideInt(1);
  }
  WideInt& operator-=(const WideInt& other) { return *this += -other; }
  friend WideInt operator+(WideInt a, const WideInt& b) { return a += b; }
  friend WideInt operator-(WideInt a, const WideInt& b) { return a -= b; }
  friend bool operator==(const WideInt& a, const WideInt& b) { return a.limbs == b.limbs; }
  friend bool operator<(const WideInt& a, const WideInt& b) {
    if (a.negative() != b.negative()) return a.negative();
    for (std::size_t i = N; i-- > 0;) {
      if (a.limbs[i] != b.limbs[i]) return a.limbs[i] < b.limbs[i];
    }
    return false;
  }
  friend bool operator>(const WideInt& a, const WideInt& b) { return b < a; }
  friend bool operator<=(const WideInt& a, const WideInt& b) { return !(b < a); }
};

using Int2304 = WideInt<36>;

// How a value is read from limbs and hashed, what lies beyond every sum, how large it is roughly:
// `to_number` as a number (infinity if it is too large), `to_double` in a unit of the type's own,
// to compare sizes.
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
  static double to_number(Int128 value) { return to_double(value); }
};

template <std::size_t N>
struct ValueTraits<WideInt<N>> {
  static constexpr std::size_t kLimbs = N;
  static WideInt<N> from_limbs(std::span<const std::uint64_t> limbs) {
    WideInt<N> value;
    for (std::size_t i = 0; i < N; ++i) value.limbs[i] = limbs[i];
    return value;
  }
  static std::uint64_t hash(const WideInt<N>& value) {
    std::uint64_t h = 0;
    for (const std::uint64_t limb : value.limbs) h = (h ^ limb) * 0x9E3779B97F4A7C15ULL;
    return h;
  }
  static WideInt<N> infinity() {
    WideInt<N> value;
    value.limbs.fill(~std::uint64_t{0});
    value.limbs[N - 1] >>= 2;
    return value;
  }
  // Scaled by 2^-1280 to stay finite. Not for negatives.
  static double to_double(const WideInt<N>& value) { return scaled(value, -1280); }
  static double to_number(const WideInt<N>& value) { return scaled(value, 0); }

 private:
  static double scaled(const WideInt<N>& value, int exponent) {
    double result = 0.0;
    for (std::size_t i = N; i-- > 0;) {
      result +=
          std::ldexp(static_cast<double>(value.limbs[i]), static_cast<int>(64 * i) + exponent);
    }
    return result;
  }
};

}  // namespace xcount

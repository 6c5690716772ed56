#include "xcount/support/value.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace xcount {

template <std::size_t N>
WideInt<N>::WideInt(std::int64_t value) {
  limbs.fill(value < 0 ? ~std::uint64_t{0} : 0);
  limbs[0] = static_cast<std::uint64_t>(value);
}

template <std::size_t N>
int WideInt<N>::compare(const WideInt& other) const {
  if (negative() != other.negative()) return negative() ? -1 : 1;
  for (std::size_t i = N; i-- > 0;) {
    if (limbs[i] != other.limbs[i]) return limbs[i] < other.limbs[i] ? -1 : 1;
  }
  return 0;
}

template <std::size_t N>
WideInt<N>& WideInt<N>::operator+=(const WideInt& other) {
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < N; ++i) {
    const UInt128 sum = static_cast<UInt128>(limbs[i]) + other.limbs[i] + carry;
    limbs[i] = static_cast<std::uint64_t>(sum);
    carry = static_cast<std::uint64_t>(sum >> 64);
  }
  return *this;
}

template <std::size_t N>
WideInt<N>& WideInt<N>::operator-=(const WideInt& other) {
  std::uint64_t borrow = 0;
  for (std::size_t i = 0; i < N; ++i) {
    const UInt128 difference = static_cast<UInt128>(limbs[i]) - other.limbs[i] - borrow;
    limbs[i] = static_cast<std::uint64_t>(difference);
    borrow = static_cast<std::uint64_t>(difference >> 64) & 1;
  }
  return *this;
}

template <std::size_t N>
WideInt<N> WideInt<N>::operator-() const {
  WideInt result;
  return result -= *this;
}

template <std::size_t N>
WideInt<N> ValueTraits<WideInt<N>>::from_limbs(std::span<const std::uint64_t> limbs) {
  WideInt<N> value;
  std::copy_n(limbs.begin(), N, value.limbs.begin());
  return value;
}

template <std::size_t N>
std::uint64_t ValueTraits<WideInt<N>>::hash(const WideInt<N>& value) {
  std::uint64_t h = 0;
  for (const std::uint64_t limb : value.limbs) h = (h ^ limb) * 0x9E3779B97F4A7C15ULL;
  return h;
}

template <std::size_t N>
const WideInt<N>& ValueTraits<WideInt<N>>::infinity() {
  static const WideInt<N> value = [] {
    WideInt<N> all;
    all.limbs.fill(~std::uint64_t{0});
    all.limbs[N - 1] >>= 2;
    return all;
  }();
  return value;
}

template <std::size_t N>
double ValueTraits<WideInt<N>>::scaled(const WideInt<N>& value, int exponent) {
  double result = 0.0;
  for (std::size_t i = N; i-- > 0;) {
    result += std::ldexp(static_cast<double>(value.limbs[i]), static_cast<int>(64 * i) + exponent);
  }
  return result;
}

template <std::size_t N>
int ValueTraits<WideInt<N>>::bit_width(const WideInt<N>& value) {
  for (std::size_t i = N; i-- > 0;) {
    if (value.limbs[i] != 0) return static_cast<int>(64 * i + std::bit_width(value.limbs[i]));
  }
  return 0;
}

template struct WideInt<36>;
template struct ValueTraits<Int2304>;

}  // namespace xcount

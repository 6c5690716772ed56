// Registers of a vector unit, and operations on their lanes. Compiled once per unit, like the loops
// that use it (corner_tile_kernels.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#if XCOUNT_VECTOR_BYTES > 16
#include <immintrin.h>
#endif

#include "xcount/exact/corner_tile.hpp"

// Vectors are passed to functions that are always inlined: no ABI is involved.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

#define XCOUNT_INLINE inline __attribute__((always_inline))
#define XCOUNT_LAMBDA __attribute__((always_inline))

namespace xcount {

namespace {

// A register of numbers. A vector in memory takes one or several: compilers do not split well.
// Mask is the outcome of a comparison, -1 or 0 in each lane.
template <class T>
struct Register;

template <>
struct Register<std::uint16_t> {  // never negative
  typedef std::uint16_t Signed __attribute__((vector_size(XCOUNT_VECTOR_BYTES)));
  using Unsigned = Signed;
  typedef std::int16_t Mask __attribute__((vector_size(XCOUNT_VECTOR_BYTES)));
};

template <>
struct Register<std::int32_t> {
  typedef std::int32_t Signed __attribute__((vector_size(XCOUNT_VECTOR_BYTES)));
  typedef std::uint32_t Unsigned __attribute__((vector_size(XCOUNT_VECTOR_BYTES)));
  using Mask = Signed;
};

template <>
struct Register<std::int64_t> {
  typedef std::int64_t Signed __attribute__((vector_size(XCOUNT_VECTOR_BYTES)));
  typedef std::uint64_t Unsigned __attribute__((vector_size(XCOUNT_VECTOR_BYTES)));
  using Mask = Signed;
};

template <class T>
using Signed = typename Register<T>::Signed;
template <class T>
using Unsigned = typename Register<T>::Unsigned;
template <class T>
using Mask = typename Register<T>::Mask;
template <class T>
inline constexpr std::size_t kRegisterLanes = sizeof(Signed<T>) / sizeof(T);

// Reads and writes the register's part of a vector in memory, from lane `offset` on.
template <class To, class From>
XCOUNT_INLINE To load(const From& memory, std::size_t offset) {
  To value;
  __builtin_memcpy(static_cast<void*>(&value), memory.lane + offset, sizeof(To));
  return value;
}

template <class To, class From>
XCOUNT_INLINE void store(To& memory, std::size_t offset, const From& value) {
  __builtin_memcpy(static_cast<void*>(memory.lane + offset), &value, sizeof(From));
}

template <class T>
XCOUNT_INLINE Signed<T> broadcast(const T& value) {
  return value - Signed<T>{};
}

template <class T>
XCOUNT_INLINE bool any_of(const Mask<T>& mask) {
#if XCOUNT_VECTOR_BYTES == 64
  return _mm512_test_epi64_mask(__m512i(mask), __m512i(mask)) != 0;
#elif XCOUNT_VECTOR_BYTES == 32
  return _mm256_testz_si256(__m256i(mask), __m256i(mask)) == 0;
#else
  std::uint64_t words[sizeof mask / 8];
  __builtin_memcpy(words, &mask, sizeof words);
  std::uint64_t all = 0;
  for (const std::uint64_t word : words) all |= word;
  return all != 0;
#endif
}

// How many lanes are set.
template <class T>
XCOUNT_INLINE std::uint32_t n_set(const Mask<T>& mask) {
#if XCOUNT_VECTOR_BYTES == 64
  const auto lanes = __m512i(mask);
  unsigned bits = 0;
  if constexpr (sizeof(T) == 2) bits = _mm512_movepi16_mask(lanes);
  if constexpr (sizeof(T) == 4) bits = _mm512_movepi32_mask(lanes);
  if constexpr (sizeof(T) == 8) bits = _mm512_movepi64_mask(lanes);
  return static_cast<std::uint32_t>(__builtin_popcount(bits));
#elif XCOUNT_VECTOR_BYTES == 32
  const auto bytes = static_cast<unsigned>(_mm256_movemask_epi8(__m256i(mask)));
  return static_cast<std::uint32_t>(__builtin_popcount(bytes)) / sizeof(T);
#else
  std::uint32_t n = 0;
  for (std::size_t i = 0; i < kRegisterLanes<T>; ++i) n += mask[i] != 0 ? 1 : 0;
  return n;
#endif
}

// Adds the weights of the lanes set in the mask, in a fixed order: lane i of a vector is added to
// sum i modulo kShareLanes.
template <class T>
XCOUNT_INLINE void add_weights(double* sums, std::size_t offset, const Mask<T>& mask,
                               const double* weights) {
  typedef double Numbers __attribute__((vector_size(XCOUNT_VECTOR_BYTES)));
  typedef std::int64_t Bits __attribute__((vector_size(XCOUNT_VECTOR_BYTES)));
  typedef T Part __attribute__((vector_size(XCOUNT_VECTOR_BYTES / 8 * sizeof(T))));
  T lanes[kRegisterLanes<T>];
  __builtin_memcpy(lanes, &mask, sizeof lanes);
  for (std::size_t i = 0; i < kRegisterLanes<T>; i += sizeof(Numbers) / sizeof(double)) {
    Part part;
    Bits weight;
    Numbers sum;
    double* target = sums + (offset + i) % kShareLanes;
    __builtin_memcpy(&part, lanes + i, sizeof part);
    __builtin_memcpy(&weight, weights + offset + i, sizeof weight);
    __builtin_memcpy(&sum, target, sizeof sum);
    weight &= __builtin_convertvector(part, Bits);  // the weight, or 0.0
    sum += Numbers(weight);
    __builtin_memcpy(target, &sum, sizeof sum);
  }
}

}  // namespace

}  // namespace xcount

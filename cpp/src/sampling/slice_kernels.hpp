// The loops over bit slices of one vector unit: tests of codes, multiplexers, lookups.
#pragma once

#include <cstddef>
#include <cstdint>

#if XCOUNT_VECTOR_BYTES > 16
#include <immintrin.h>
#endif

#include "row_loops.hpp"
#include "xcount/sampling/slice_indices.hpp"
#include "xcount/sampling/slices.hpp"

// Vectors are passed to functions that are inlined: no ABI is involved.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

namespace xcount {

namespace {

// What a pass over a block reads, and where it adds what it finds.
struct Pass {
  const SliceProgram& program;
  const SliceTables& tables;
  const BlockRange& range;
  std::size_t digit_stride;
  const Slice* slots;
  std::int32_t* rows;
};

void look_up(const Pass& pass, const Lookup& lookup);

void run_muxes(std::span<const Mux> muxes, Slice* slots) {
  for (const Mux& mux : muxes) {
#if XCOUNT_VECTOR_BYTES > 16
    const auto slot = [&](std::uint32_t i) { return reinterpret_cast<__m256i*>(slots + i); };
    const __m256i test = _mm256_load_si256(slot(mux.test));
    const __m256i high = _mm256_and_si256(test, _mm256_load_si256(slot(mux.high)));
    const __m256i low = _mm256_andnot_si256(test, _mm256_load_si256(slot(mux.low)));
    _mm256_store_si256(slot(mux.to), _mm256_or_si256(high, low));
#else
    for (std::size_t w = 0; w < kBlock / 64; ++w) {
      const std::uint64_t test = slots[mux.test].words[w];
      slots[mux.to].words[w] =
          (test & slots[mux.high].words[w]) | (~test & slots[mux.low].words[w]);
    }
#endif
  }
}

inline bool is_empty(const Slice& slice) {
  return (slice.words[0] | slice.words[1] | slice.words[2] | slice.words[3]) == 0;
}

void sum_program(const SliceProgram& program, const SliceTables& tables, const BlockRange& range,
                 std::size_t digit_stride, Slice* slots, std::int32_t* rows) {
  const Pass pass{program, tables, range, digit_stride, slots, rows};
  for (const Lookup& lookup : program.lookups) {
    run_muxes(
        std::span(program.muxes).subspan(lookup.first_mux, lookup.last_mux - lookup.first_mux),
        slots);
    if (!is_empty(slots[lookup.guard])) look_up(pass, lookup);
  }
}

#if XCOUNT_VECTOR_BYTES > 16

inline std::uint32_t group_of(const Slice& slice, std::size_t group) {
  return static_cast<std::uint32_t>(slice.words[group / 2] >> (group % 2 * 32));
}

// All bits of a byte set for each set bit.
inline __m256i spread(std::uint32_t bits) {
  const __m256i byte_of_lane = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2,
                                                2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bit_of_lane = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ULL));
  const __m256i bytes =
      _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(bits)), byte_of_lane);
  return _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit_of_lane), bit_of_lane);
}

// The order in which unpacking bytes to words and words to numbers keeps the samples' order.
inline __m256i for_unpacking(__m256i bytes) { return _mm256_permute4x64_epi64(bytes, 0xD8); }

// The bytes of one plane at the numbers of leaves; the parts of a table have 16 entries each.
template <int kParts>
inline __m256i look_up_plane(const std::uint8_t* plane, __m256i index, __m256i bit_4,
                             __m256i bit_5) {
  const auto part = [&](int i) {
    const __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i*>(plane + 16 * i));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), index);
  };
  if constexpr (kParts == 1) return part(0);
  const __m256i lower = _mm256_blendv_epi8(part(0), part(1), bit_4);
  if constexpr (kParts == 2) return lower;
  return _mm256_blendv_epi8(lower, _mm256_blendv_epi8(part(2), part(3), bit_4), bit_5);
}

inline void add_numbers(const __m256i (&numbers)[4], bool negative, std::int32_t* row) {
  for (std::size_t i = 0; i < 4; ++i) {
    auto* to = reinterpret_cast<__m256i*>(row + 8 * i);
    const __m256i old = _mm256_loadu_si256(to);
    _mm256_storeu_si256(
        to, negative ? _mm256_sub_epi32(old, numbers[i]) : _mm256_add_epi32(old, numbers[i]));
  }
}

// The numbers of 32 samples at their leaves.
template <int kParts>
inline void look_up_numbers(const std::uint8_t* planes, __m256i index, __m256i bit_4, __m256i bit_5,
                            __m256i (&numbers)[4]) {
  __m256i bytes[4];
  for (int p = 0; p < 4; ++p) {
    bytes[p] = look_up_plane<kParts>(planes + p * kParts * 16, index, bit_4, bit_5);
  }
  const __m256i low_0 = _mm256_unpacklo_epi8(bytes[0], bytes[1]);
  const __m256i low_1 = _mm256_unpackhi_epi8(bytes[0], bytes[1]);
  const __m256i high_0 = _mm256_unpacklo_epi8(bytes[2], bytes[3]);
  const __m256i high_1 = _mm256_unpackhi_epi8(bytes[2], bytes[3]);
  const __m256i a = _mm256_unpacklo_epi16(low_0, high_0);
  const __m256i b = _mm256_unpackhi_epi16(low_0, high_0);
  const __m256i c = _mm256_unpacklo_epi16(low_1, high_1);
  const __m256i d = _mm256_unpackhi_epi16(low_1, high_1);
  numbers[0] = _mm256_permute2x128_si256(a, b, 0x20);
  numbers[1] = _mm256_permute2x128_si256(a, b, 0x31);
  numbers[2] = _mm256_permute2x128_si256(c, d, 0x20);
  numbers[3] = _mm256_permute2x128_si256(c, d, 0x31);
}

template <int kParts>
void look_up_parts(const Pass& pass, const Lookup& lookup) {
  // Copies, because a store to rows might change what is read by reference.
  const BlockRange range = pass.range;
  const Slice* slots = pass.slots;
  const std::uint8_t* planes = pass.tables.planes_of(lookup, 0);
  const std::span targets(pass.program.targets.data() + lookup.first_target,
                          lookup.last_target - lookup.first_target);
  const std::size_t n_digits = pass.tables.n_digits;
  const std::size_t digit_stride = pass.digit_stride;
  const std::size_t n_low = kParts == 1 ? lookup.n_bits : 4;
  for (std::size_t group = range.begin / kGroup; group * kGroup < range.begin + range.n; ++group) {
    const std::uint32_t guard = group_of(slots[lookup.guard], group);
    if (guard == 0) continue;
    // A shuffle by a byte with its highest bit set yields 0.
    __m256i index = _mm256_andnot_si256(spread(guard), _mm256_set1_epi8(static_cast<char>(0x80)));
    for (std::size_t d = 0; d < n_low; ++d) {
      const __m256i bit = spread(group_of(slots[lookup.bits[d]], group));
      const __m256i one = _mm256_set1_epi8(static_cast<char>(1 << d));
      index = _mm256_or_si256(index, _mm256_and_si256(bit, one));
    }
    index = for_unpacking(index);
    __m256i bit_4 = _mm256_setzero_si256();
    __m256i bit_5 = bit_4;
    if constexpr (kParts > 1) bit_4 = for_unpacking(spread(group_of(slots[lookup.bits[4]], group)));
    if constexpr (kParts > 2) bit_5 = for_unpacking(spread(group_of(slots[lookup.bits[5]], group)));
    std::int32_t* rows = pass.rows + (group * kGroup - range.begin);
    for (std::size_t d = 0; d < n_digits; ++d, rows += digit_stride) {
      __m256i numbers[4];
      look_up_numbers<kParts>(planes + d * kParts * 64, index, bit_4, bit_5, numbers);
      for (const Target& target : targets) {
        add_numbers(numbers, target.negative, rows + target.mask * range.width);
      }
    }
  }
}

void look_up(const Pass& pass, const Lookup& lookup) {
  if (lookup.n_bits <= 4) return look_up_parts<1>(pass, lookup);
  if (lookup.n_bits == 5) return look_up_parts<2>(pass, lookup);
  look_up_parts<4>(pass, lookup);
}

// A slice of 32 samples at a time: code >= cut iff max(code, cut) = code.
inline std::uint32_t cut_narrow(const std::uint8_t* codes, std::uint8_t cut) {
  const __m256i own = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
  const __m256i limit = _mm256_set1_epi8(static_cast<char>(cut));
  return static_cast<std::uint32_t>(
      _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(own, limit), own)));
}

inline std::uint32_t cut_wide(const Code* codes, Code cut) {
  const __m256i limit = _mm256_set1_epi16(static_cast<short>(cut));
  const auto half = [&](std::size_t i) {
    const __m256i own = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + 16 * i));
    return _mm256_cmpeq_epi16(_mm256_max_epu16(own, limit), own);
  };
  const __m256i bytes = for_unpacking(_mm256_packs_epi16(half(0), half(1)));
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(bytes));
}

#else

template <class Number>
inline std::uint32_t cut_group(const Number* codes, Number cut) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < kGroup; ++i) bits |= std::uint32_t{codes[i] >= cut} << i;
  return bits;
}
inline std::uint32_t cut_narrow(const std::uint8_t* codes, std::uint8_t cut) {
  return cut_group(codes, cut);
}
inline std::uint32_t cut_wide(const Code* codes, Code cut) { return cut_group(codes, cut); }

void look_up(const Pass& pass, const Lookup& lookup) {
  const BlockRange& range = pass.range;
  std::int32_t table[std::size_t{1} << kMaxBits];
  std::int32_t numbers[kBlock];
  const LeafNumbers leaves(lookup, pass.slots, range);
  for (std::size_t d = 0; d < pass.tables.n_digits; ++d) {
    for (std::size_t i = 0; i < lookup.n_entries(); ++i) {
      table[i] = pass.tables.digit(lookup, d, i);
    }
    for (std::size_t i = 0; i < range.n; ++i) numbers[i] = leaves.is_out(i) ? 0 : table[leaves[i]];
    for (std::uint32_t t = lookup.first_target; t < lookup.last_target; ++t) {
      const Target& target = pass.program.targets[t];
      std::int32_t* row = pass.rows + d * pass.digit_stride + target.mask * range.width;
      for (std::size_t i = 0; i < range.n; ++i) {
        wrapping_add(row[i], target.negative ? -numbers[i] : numbers[i]);
      }
    }
  }
}

#endif

void cut_codes(std::span<const Code> codes, bool is_narrow, std::span<const CutSlot> cuts,
               Slice* slots) {
  std::uint8_t narrow[kBlock];
  if (is_narrow) {
    for (std::size_t i = 0; i < kBlock; ++i) narrow[i] = static_cast<std::uint8_t>(codes[i]);
  }
  for (const CutSlot& cut : cuts) {
    Slice& slice = slots[cut.slot];
    for (std::size_t w = 0; w < slice.words.size(); ++w) {
      const auto group = [&](std::size_t g) -> std::uint64_t {
        return is_narrow ? cut_narrow(narrow + g * kGroup, static_cast<std::uint8_t>(cut.cut))
                         : cut_wide(codes.data() + g * kGroup, cut.cut);
      };
      slice.words[w] = group(2 * w) | group(2 * w + 1) << 32;
    }
  }
}

}  // namespace

}  // namespace xcount

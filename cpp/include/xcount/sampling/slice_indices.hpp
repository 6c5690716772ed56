// The numbers of the leaves that the samples of a block reach, gathered from bit slices in plain
// arithmetic: eight samples at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "xcount/sampling/slices.hpp"

namespace xcount {

// A byte of 1 for each set bit, the lowest bit in the lowest byte.
inline std::uint64_t bytes_of_bits(std::uint8_t bits) {
  const std::uint64_t own = (bits * 0x0101010101010101ULL) & 0x8040201008040201ULL;
  return ((own + 0x7F7F7F7F7F7F7F7FULL) >> 7) & 0x0101010101010101ULL;
}

class LeafNumbers {
 public:
  LeafNumbers(const Lookup& lookup, const Slice* slots, const BlockRange& range)
      : begin_(range.begin) {
    for (std::size_t i = range.begin / 8; i * 8 < range.begin + range.n; ++i) {
      const std::uint64_t in = bytes_of_bits(slots[lookup.guard].byte(i));
      std::uint64_t numbers = (in ^ 0x0101010101010101ULL) << kMaxBits;
      for (std::size_t d = 0; d < lookup.n_bits; ++d) {
        numbers |= bytes_of_bits(slots[lookup.bits[d]].byte(i)) << d;
      }
      for (std::size_t k = 0; k < 8; ++k) {
        numbers_[i * 8 + k] = static_cast<std::uint8_t>(numbers >> (8 * k));
      }
    }
  }

  // Of the i-th sample of the range.
  [[nodiscard]] std::uint8_t operator[](std::size_t i) const { return numbers_[begin_ + i]; }
  // Whether the lookup does not concern the sample.
  [[nodiscard]] bool is_out(std::size_t i) const { return numbers_[begin_ + i] >> kMaxBits != 0; }

 private:
  std::size_t begin_;
  std::array<std::uint8_t, kBlock> numbers_;
};

}  // namespace xcount

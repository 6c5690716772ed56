// Bit slices: what trees say of a block of samples, one bit of all of them at a time.
//
// A slice holds one bit for each sample of a block. Each test in the trees is a slice: a set bit
// means that the sample goes right. A tree is a few multiplexers over such slices, which compute
// the number of the leaf that each sample reaches, bit by bit. A lookup turns that number into what
// the leaf adds to the sums:
//   rows[target] += sign(target) * table[sum over the bits d of (bit_d << d)]   where the guard is
//   set.
// Numbers that do not fit 32 bits are looked up and added digit by digit.
// docs/approximate.md, "What is sampled", "Bit slices".
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace xcount {

inline constexpr std::size_t kBlock = 256;      // samples of a block
inline constexpr std::size_t kGroup = 32;       // samples that a kernel takes together
inline constexpr std::size_t kMaxBits = 6;      // of the number of a leaf
inline constexpr std::size_t kLeastTable = 16;  // entries that a shuffle reads
inline constexpr std::uint32_t kNobody = 0;     // the slot of the slice without any sample
inline constexpr std::uint32_t kEveryone = 1;   // the slot of the slice of all samples

using Code = std::uint16_t;  // a cell as the tests of one column see it

struct alignas(32) Slice {
  std::array<std::uint64_t, kBlock / 64> words{};

  [[nodiscard]] std::uint8_t byte(std::size_t i) const {
    return static_cast<std::uint8_t>(words[i / 8] >> (i % 8 * 8));
  }
};

// slot[to] = slot[test] ? slot[high] : slot[low], sample by sample.
struct Mux {
  std::uint32_t test = 0, low = 0, high = 0, to = 0;
};

// Where a looked-up value is added to, or subtracted from.
struct Target {
  std::uint32_t mask = 0;
  bool negative = false;
};

struct Lookup {
  std::uint32_t first_mux = 0, last_mux = 0;  // [first, last): to run before it
  std::uint32_t guard = kEveryone;            // slot of the samples that it concerns
  std::uint32_t n_bits = 0;
  std::array<std::uint32_t, kMaxBits> bits{};  // slots, the lowest bit first
  std::uint32_t table = 0;                     // its first entry
  std::uint32_t first_target = 0, last_target = 0;

  [[nodiscard]] std::size_t n_entries() const {
    return std::max(kLeastTable, std::size_t{1} << n_bits);
  }
};

// The numbers that lookups find, in digits:
//   number = sum over the digits d of (digit_d << (d * n_digit_bits)).
// A digit of a table is four planes of bytes, the lowest bytes of all entries first.
struct SliceTables {
  std::size_t n_digits = 1;
  int n_digit_bits = 0;
  std::vector<std::uint8_t> planes;

  [[nodiscard]] const std::uint8_t* planes_of(const Lookup& lookup, std::size_t digit) const {
    return planes.data() + 4 * (lookup.table * n_digits + digit * lookup.n_entries());
  }
  [[nodiscard]] std::int32_t digit(const Lookup& lookup, std::size_t digit,
                                   std::size_t entry) const {
    const std::uint8_t* own = planes_of(lookup, digit) + entry;
    std::uint32_t found = 0;
    for (int p = 0; p < 4; ++p) {
      found |= std::uint32_t{own[static_cast<std::size_t>(p) * lookup.n_entries()]} << (8 * p);
    }
    return static_cast<std::int32_t>(found);
  }
  // Adds one digit of all entries of a table.
  void add(std::span<const std::int32_t> entries) {
    for (int p = 0; p < 4; ++p) {
      for (const std::int32_t entry : entries) {
        planes.push_back(static_cast<std::uint8_t>(static_cast<std::uint32_t>(entry) >> (8 * p)));
      }
    }
  }
};

// The codes of a column that one slot tells apart: it is set where code >= cut.
struct CutSlot {
  Code cut = 0;
  std::uint32_t slot = 0;
};

struct SliceProgram {
  std::vector<Mux> muxes;
  std::vector<Lookup> lookups;
  std::vector<Target> targets;

  [[nodiscard]] std::span<const Mux> muxes_of(const Lookup& lookup) const {
    return std::span(muxes).subspan(lookup.first_mux, lookup.last_mux - lookup.first_mux);
  }
};

// The samples [begin, begin + n) of a block, whose sums are kept as rows[mask * width + sample].
struct BlockRange {
  std::size_t begin = 0, n = 0, width = 0;
};

// How far apart sums must be to differ: surely if by more than `sure`, never if by no more than
// `maybe`; in between, their rounding decides.
template <class Sum>
struct Limits {
  Sum sure, maybe;
  bool up, down;  // whether a rise counts, and a fall
};

// Which pairs of masks are compared; the masks are those of a row.
struct MaskComparison {
  std::size_t n_masks = 1;
  std::size_t n_ordered = 1;  // of windows: cells with an order, the missing one left out
  std::size_t reach = 1;      // of windows: neighbours are at most that far
  std::span<const std::pair<std::uint32_t, std::uint32_t>> pairs;
  std::span<const std::uint8_t> matters;  // of jumps: whether a mask and the one before are a pair
};

template <class Sum>
struct MaskRows {
  const Sum* rows;
  std::size_t width;
  Sum* low;              // room for n_ordered (at least 1) x width
  Sum* high;             // the same
  std::uint8_t* flags;   // n_masks x width: to be set to whether the mask is sensitive
  std::uint8_t* doubts;  // width: to be set to whether rounding decides
};

// Returns whether any flag or doubt is set.
template <class Sum>
using DecideRows = bool (*)(const MaskComparison&, const Limits<Sum>&, const MaskRows<Sum>&);

// Loops over the samples of a block, compiled for one vector unit.
struct SliceKernels {
  void (*cut)(std::span<const Code> codes, bool is_narrow, std::span<const CutSlot> cuts,
              Slice* slots);
  void (*run)(std::span<const Mux> muxes, Slice* slots);
  // Adds digit d of all numbers to the rows at d * digit_stride.
  void (*sum)(const SliceProgram& program, const SliceTables& tables, const BlockRange& range,
              std::size_t digit_stride, Slice* slots, std::int32_t* rows);
  void (*integrate)(std::span<const std::uint32_t> extents, std::size_t width, std::int32_t* rows);
  DecideRows<std::int32_t> everyone, jumps, windows, pairs, any_pair, all_pairs;
};

template <std::size_t kVectorBytes>
[[nodiscard]] SliceKernels unit_slice_kernels();

// The kernels of the best vector unit that the machine has.
[[nodiscard]] const SliceKernels& slice_kernels();

}  // namespace xcount

// The loops of every vector unit that the machine has give what the plain ones give.
#include "xcount/sampling/slices.hpp"

#include <cstring>
#include <random>

#include "check.hpp"
#include "xcount/sampling/slice_indices.hpp"
#include "xcount/support/vector_unit.hpp"

using namespace xcount;
using xcount::test::failures;

namespace {

std::vector<SliceKernels> all_units() {
  std::vector<SliceKernels> units{unit_slice_kernels<16>()};
#if defined(__x86_64__)
  const VectorUnit best = vector_unit(VectorUnit::kAvx512);
  if (best >= VectorUnit::kAvx2) units.push_back(unit_slice_kernels<32>());
  if (best >= VectorUnit::kAvx512) units.push_back(unit_slice_kernels<64>());
#endif
  return units;
}

// Tables of every size behind random slices, with and without a guard.
SliceProgram random_program(std::mt19937& random, SliceTables& tables) {
  SliceProgram program;
  std::uint32_t n_entries = 0;
  for (std::uint32_t n_bits = 0; n_bits <= kMaxBits; ++n_bits) {
    for (const std::uint32_t guard : {kEveryone, 5U, kNobody}) {
      Lookup lookup;
      lookup.guard = guard;
      lookup.n_bits = n_bits;
      lookup.first_mux = static_cast<std::uint32_t>(program.muxes.size());
      program.muxes.push_back({2, 3, 4, 12});
      lookup.last_mux = static_cast<std::uint32_t>(program.muxes.size());
      for (std::uint32_t d = 0; d < n_bits; ++d) {
        lookup.bits[d] = d == 3 ? 12 : static_cast<std::uint32_t>(2 + random() % 10);
      }
      lookup.table = n_entries;
      n_entries += static_cast<std::uint32_t>(lookup.n_entries());
      for (std::size_t d = 0; d < tables.n_digits; ++d) {
        std::vector<std::int32_t> entries(lookup.n_entries());
        for (std::int32_t& entry : entries) entry = static_cast<std::int32_t>(random());
        tables.add(entries);
        for (std::size_t i = 0; i < entries.size(); ++i) {
          CHECK(tables.digit(lookup, d, i) == entries[i]);
        }
      }
      lookup.first_target = static_cast<std::uint32_t>(program.targets.size());
      program.targets.push_back({static_cast<std::uint32_t>(random() % 3), false});
      program.targets.push_back({static_cast<std::uint32_t>(random() % 3), true});
      lookup.last_target = static_cast<std::uint32_t>(program.targets.size());
      program.lookups.push_back(lookup);
    }
  }
  return program;
}

void lookups_agree(std::size_t n_digits) {
  std::mt19937 random(1);
  SliceTables tables{n_digits, 24, {}};
  const SliceProgram program = random_program(random, tables);
  std::vector<Slice> slots(13);
  slots[kEveryone].words.fill(~std::uint64_t{0});
  for (std::size_t s = 2; s < slots.size(); ++s) {
    for (std::uint64_t& word : slots[s].words) word = std::uint64_t{random()} << 32 | random();
  }
  for (const BlockRange range : {BlockRange{0, 256, 256}, BlockRange{64, 96, 128}}) {
    std::vector<std::vector<std::int32_t>> found;
    for (const SliceKernels& unit : all_units()) {
      std::vector<Slice> own = slots;
      std::vector<std::int32_t> rows(n_digits * 3 * range.width);
      unit.sum(program, tables, range, 3 * range.width, own.data(), rows.data());
      found.push_back(rows);
    }
    // By hand: bit by bit.
    std::vector<std::int32_t> rows(n_digits * 3 * range.width);
    std::vector<Slice> own = slots;
    slice_kernels().run(program.muxes_of(program.lookups[0]), own.data());
    const auto bit = [&](std::uint32_t slot, std::size_t i) {
      return own[slot].words[i / 64] >> (i % 64) & 1;
    };
    for (const Lookup& lookup : program.lookups) {
      for (std::size_t i = 0; i < range.n; ++i) {
        if (bit(lookup.guard, range.begin + i) == 0) continue;
        std::size_t leaf = 0;
        for (std::uint32_t d = 0; d < lookup.n_bits; ++d) {
          leaf |= bit(lookup.bits[d], range.begin + i) << d;
        }
        for (std::size_t k = 0; k < n_digits * (lookup.last_target - lookup.first_target); ++k) {
          const std::size_t digit = k % n_digits;
          const Target& target = program.targets[lookup.first_target + k / n_digits];
          const auto entry = static_cast<std::uint32_t>(tables.digit(lookup, digit, leaf));
          std::int32_t& sum = rows[(digit * 3 + target.mask) * range.width + i];
          sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) +
                                          (target.negative ? 0U - entry : entry));
        }
      }
    }
    for (const auto& each : found) CHECK(each == rows);
  }
}

void cuts_agree() {
  std::mt19937 random(2);
  std::vector<Code> codes(kBlock);
  for (const unsigned n_codes : {2U, 256U, 65535U}) {
    for (Code& code : codes) code = static_cast<Code>(random() % n_codes);
    const Code cut = static_cast<Code>(random() % n_codes);
    const std::vector<CutSlot> cuts{{cut, 1}};
    for (const SliceKernels& unit : all_units()) {
      std::vector<Slice> slots(2);
      unit.cut(codes, n_codes <= 256, cuts, slots.data());
      for (std::size_t i = 0; i < kBlock; ++i) {
        CHECK((slots[1].words[i / 64] >> (i % 64) & 1) == (codes[i] >= cut ? 1 : 0));
      }
    }
  }
}

void comparisons_agree() {
  std::mt19937 random(3);
  constexpr std::size_t kWidth = 64;
  constexpr std::size_t kMasks = 7;
  std::vector<std::int32_t> rows(kMasks * kWidth);
  for (std::int32_t& value : rows) value = static_cast<std::int32_t>(random() % 100) - 50;
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs{{0, 3}, {5, 1}, {2, 6}};
  const std::vector<std::uint8_t> matters{0, 1, 0, 1, 1, 1, 1};
  const MaskComparison masks{kMasks, 6, 2, pairs, matters};
  const Limits<std::int32_t> limits{40, 38, true, random() % 2 == 0};
  const auto outcome = [&](DecideRows<std::int32_t> decide) {
    std::vector<std::int32_t> extremes(2 * kMasks * kWidth);
    std::vector<std::uint8_t> flags((kMasks + 1) * kWidth);
    const bool any =
        decide(masks, limits,
               {rows.data(), kWidth, extremes.data(), extremes.data() + kMasks * kWidth,
                flags.data(), flags.data() + kMasks * kWidth});
    CHECK(any);
    return flags;
  };
  const SliceKernels plain = unit_slice_kernels<16>();
  for (const SliceKernels& unit : all_units()) {
    CHECK(outcome(unit.everyone) == outcome(plain.everyone));
    CHECK(outcome(unit.jumps) == outcome(plain.jumps));
    CHECK(outcome(unit.windows) == outcome(plain.windows));
    CHECK(outcome(unit.pairs) == outcome(plain.pairs));
    CHECK(outcome(unit.any_pair) == outcome(plain.any_pair));
  }
}

}  // namespace

int main() {
  for (const std::size_t n_digits : {1U, 3U}) lookups_agree(n_digits);
  cuts_agree();
  comparisons_agree();
  return failures;
}

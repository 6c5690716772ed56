#include "xcount/exact/corner_filter.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "xcount/support/assert.hpp"

namespace xcount {

namespace {

constexpr unsigned kRoundedBits = 60;  // of the rounded range

template <class Value>
unsigned n_bits(const Value& value) {  // of a number >= 0
  if constexpr (std::is_same_v<Value, Int2304>) {
    for (std::size_t i = value.limbs.size(); i-- > 0;) {
      if (value.limbs[i] != 0) {
        return static_cast<unsigned>(64 * i) +
               static_cast<unsigned>(std::bit_width(value.limbs[i]));
      }
    }
    return 0;
  } else {
    unsigned n = 0;
    for (auto rest = static_cast<UInt128>(value); rest != 0; rest >>= 1) ++n;
    return n;
  }
}

// floor(value / 2^shift), modulo 2^64.
template <class Value>
std::int64_t shifted(const Value& value, unsigned shift) {
  if constexpr (std::is_same_v<Value, Int2304>) {
    const std::size_t i = shift / 64;
    const unsigned bits = shift % 64;
    const std::uint64_t sign = value.negative() ? ~std::uint64_t{0} : 0;
    const std::uint64_t high = i + 1 < value.limbs.size() ? value.limbs[i + 1] : sign;
    const std::uint64_t low = value.limbs[i] >> bits;
    return static_cast<std::int64_t>(bits == 0 ? low : low | high << (64 - bits));
  } else {
    return static_cast<std::int64_t>(value >> shift);
  }
}

template <class Value>
Value power_of_two(unsigned n) {
  Value result(1);
  for (; n > 0; --n) result += result;
  return result;
}

template <class Value>
unsigned shift_of(const SumRange<Value>& range) {
  const unsigned n = n_bits(range.span());
  return n > kRoundedBits ? n - kRoundedBits : 0;
}

template <class Value>
std::int64_t error_of(const CornerQuestion<Value>& question) {
  std::size_t n_trees = 0;
  for (const auto* forest : question.forests) n_trees = std::max(n_trees, forest->roots.size());
  return static_cast<std::int64_t>(n_trees / 2) + 1;
}

// Let all thresholds be in units, rounded down. A difference of two rounded sums is off by at most
// 2 * error. Sums themselves stand 1 * error higher than they are, so that none is negative: one of
// at most t is surely at most t, one of more than t + room is surely more, with room = 1 + 2 *
// error; and what is at most t is surely at most t + room here, what is more is more here, too.
using Rounded = Change<std::int64_t>;

Rounded sure(Rounded change, std::int64_t error) {
  const std::int64_t room = 1 + 2 * error;
  if (change.form == ChangeForm::kGap) {
    change.threshold += room;
  } else {
    change.band = room;
    change.sure_above += room;
  }
  return change;
}

Rounded possible(Rounded change, std::int64_t error) {
  const std::int64_t room = 1 + 2 * error;
  if (change.form == ChangeForm::kGap) {
    change.threshold -= 2 * error;
  } else {
    change.threshold += room;
    change.band = -room;
    change.sure_below += room;
  }
  return change;
}

template <class Value>
Rounded in_units(const Change<Value>& change, const SumRange<Value>& range, unsigned shift) {
  const Change<Value> exact = shifted_change(change, range);
  Rounded result(change.form, change.direction, shifted(exact.threshold, shift));
  result.sure_below = shifted(exact.sure_below, shift);
  result.sure_above = shifted(exact.sure_above, shift);
  return result;
}

}  // namespace

template <class Value>
bool can_round(const CornerQuestion<Value>& question, const SumRange<Value>& range) {
  const unsigned shift = shift_of(range);
  const std::int64_t error = error_of(question);
  const auto is_apart = [&](const Change<Value>& change) {
    if (change.form == ChangeForm::kFlip) return true;
    return change.form == ChangeForm::kGap && in_units(change, range, shift).threshold > 2 * error;
  };
  return shift > 0 && std::all_of(question.changes.begin(), question.changes.end(), is_apart);
}

template <class Value>
CornerIntegers<std::int64_t> rounded_integers(const CornerQuestion<Value>& question,
                                              const SumRange<Value>& range) {
  const unsigned shift = shift_of(range);
  const std::int64_t error = error_of(question);
  const auto half = power_of_two<Value>(shift - 1);
  XCOUNT_ASSERT(shift > 0 && error > 0);
  CornerIntegers<std::int64_t> integers;
  integers.value = [&question, shift, half](std::size_t output, NodeIndex leaf) {
    const Value& value = question.forests[output]->values[static_cast<std::size_t>(leaf)];
    return static_cast<std::uint64_t>(shifted(Value(value + half), shift));
  };
  for (const Value& base : question.bases) {
    const std::int64_t constant = shifted(Value(base - range.low + half), shift) + error;
    integers.constants.push_back(static_cast<std::uint64_t>(constant));
  }
  for (const auto make : {sure, possible}) {
    for (const Change<Value>& change : question.changes) {
      integers.changes.push_back(make(in_units(change, range, shift), error));
    }
  }
  integers.span = shifted(range.span(), shift) + 1 + 2 * error;
  return integers;
}

#define XCOUNT_INSTANTIATE(Value)                                                      \
  template bool can_round(const CornerQuestion<Value>&, const SumRange<Value>&);       \
  template CornerIntegers<std::int64_t> rounded_integers(const CornerQuestion<Value>&, \
                                                         const SumRange<Value>&);

XCOUNT_INSTANTIATE(Int128)
XCOUNT_INSTANTIATE(Int2304)

#undef XCOUNT_INSTANTIATE

}  // namespace xcount

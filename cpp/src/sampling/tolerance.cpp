#include "xcount/sampling/tolerance.hpp"

#include <algorithm>
#include <cmath>

namespace xcount {

namespace {

// Far more than rounding can move a probability, or the sum that has a given one; see last_sum.
constexpr double kDoubt = 0x1p-40;

// floor(number * 2^exponent), or the type's infinity if it is beyond that.
template <class Value>
Value floor_of(double number, int exponent) {
  int power = 0;
  const double fraction = std::frexp(number, &power);
  auto digits = static_cast<std::int64_t>(std::ldexp(fraction, 53));  // below 2^53 in size
  const int shift = power - 53 + exponent;
  if (shift < 0) return Value(digits >> std::min(-shift, 63));
  const Value infinity = ValueTraits<Value>::infinity();
  // Below 2^(shift + 53), hence below infinity: what is not is beyond every sum.
  if (shift + 53 > static_cast<int>(64 * ValueTraits<Value>::kLimbs) - 2) {
    return digits < 0 ? -infinity : digits > 0 ? infinity : Value(0);
  }
  if constexpr (requires(Value v) { v << 1; }) {
    return static_cast<Value>(static_cast<Value>(digits) * (Value(1) << shift));
  } else {
    Value result;
    const auto size = static_cast<UInt128>(digits < 0 ? -digits : digits) << (shift % 64);
    const auto limb = static_cast<std::size_t>(shift / 64);
    result.limbs[limb] = static_cast<std::uint64_t>(size);
    const auto above = static_cast<std::uint64_t>(size >> 64);
    if (above != 0) result.limbs[limb + 1] = above;
    return digits < 0 ? -result : result;
  }
}

}  // namespace

template <class Value>
ToleranceRule<Value>::ToleranceRule(const Change<Value>& change, const ProbabilityLink& link)
    : change_(change),
      link_(link),
      up_(change.direction != Direction::kDown),
      down_(change.direction != Direction::kUp) {
  if (change_.form != ChangeForm::kProbability && change_.form != ChangeForm::kSureLargest) return;
  gap_ = ValueTraits<Value>::to_number(change_.threshold) / static_cast<double>(kProbabilityOne);
}

template <class Value>
Tolerance<Value> ToleranceRule<Value>::around(const Value& start) const {
  switch (change_.form) {
    case ChangeForm::kGap:
      return around_gap(start);
    case ChangeForm::kProbability:
      return around_probability(start);
    default:
      return around_flip(start);
  }
}

template <class Value>
std::size_t ToleranceRule<Value>::largest(std::span<const Value> sums) {
  return static_cast<std::size_t>(std::max_element(sums.begin(), sums.end()) - sums.begin());
}

template <class Value>
Tolerance<Value> ToleranceRule<Value>::around_gap(const Value& start) const {
  Tolerance<Value> found;
  if (up_) found.high = found.sure_high = start + change_.threshold;
  if (down_) found.low = found.sure_low = start - change_.threshold;
  return found;
}

template <class Value>
Tolerance<Value> ToleranceRule<Value>::around_flip(const Value& start) const {
  if (up_ && start <= change_.sure_below) return Tolerance<Value>::up_to(change_.threshold);
  if (down_ && start > change_.sure_above) {
    return Tolerance<Value>::from(change_.threshold + Value(1));
  }
  return {};
}

template <class Value>
Tolerance<Value> ToleranceRule<Value>::around_probability(const Value& start) const {
  const double own = 1.0 / (1.0 + std::exp(-argument(start)));
  Tolerance<Value> found;
  if (up_) {
    found.high = last_sum(own + gap_ - kDoubt);
    found.sure_high = last_sum(own + gap_ + kDoubt);
  }
  if (down_) {
    found.low = last_sum(own - gap_ + kDoubt) + Value(1);
    found.sure_low = last_sum(own - gap_ - kDoubt) + Value(1);
  }
  return found;
}

template <class Value>
double ToleranceRule<Value>::chance_at(std::span<const Value> sums, std::size_t output) const {
  double weights = 0.0;
  for (std::size_t j = 0; j < sums.size(); ++j) {
    if (j != output) weights += weight_of(sums[j] - sums[output]);
  }
  return 1.0 / (1.0 + weights);
}

template <class Value>
StartingPoint ToleranceRule<Value>::start_of(std::span<const Value> sums) const {
  if (change_.form != ChangeForm::kSureLargest) return StartingPoint::kCounts;
  const std::size_t best = largest(sums);
  if (!link_.softmax)
    return sums[best] > change_.sure_above ? StartingPoint::kCounts : StartingPoint::kNever;
  const double own = chance_at(sums, best);
  if (own > gap_ + kDoubt) return StartingPoint::kCounts;
  return own < gap_ - kDoubt ? StartingPoint::kNever : StartingPoint::kInDoubt;
}

template <class Value>
Tolerance<Value> ToleranceRule<Value>::around_chance(std::span<const Value> sums) const {
  const double own = chance_at(sums, link_.output);
  const auto at = [&](double chance) {
    return Value(static_cast<std::int64_t>(chance * static_cast<double>(kChanceOne)));
  };
  Tolerance<Value> found;
  if (up_) {
    found.high = at(own + gap_ - kDoubt);
    found.sure_high = at(own + gap_ + kDoubt);
  }
  if (down_) {
    found.low = at(own - gap_ + kDoubt);
    found.sure_low = at(own - gap_ - kDoubt);
  }
  return found;
}

template <class Value>
double ToleranceRule<Value>::argument(const Value& sum) const {
  if constexpr (requires { static_cast<double>(sum); }) {
    return std::ldexp(static_cast<double>(sum) * link_.unit, link_.exponent);
  } else {
    const bool negative = sum < Value(0);
    const double size = ValueTraits<Value>::scaled(negative ? -sum : sum, link_.exponent);
    return (negative ? -size : size) * link_.unit;
  }
}

// The last sum whose probability is at most the given one, up to rounding: an error of the
// logarithm moves the sigmoid by at most |log(q / (1 - q))| * 2^-52 * q * (1 - q), a few units of
// 2^-52.
template <class Value>
Value ToleranceRule<Value>::last_sum(double probability) const {
  const Value infinity = ValueTraits<Value>::infinity();
  if (probability <= 0.0) return -infinity;
  if (probability >= 1.0) return infinity;
  return floor_of<Value>(std::log(probability / (1.0 - probability)) / link_.unit, -link_.exponent);
}

template class ToleranceRule<std::int64_t>;
template class ToleranceRule<Int128>;
template class ToleranceRule<Int2304>;

}  // namespace xcount

// The interval of a start holds just the sums that do not differ from it, for every change and
// width; a probability's interval is in doubt only next to its ends.
#include "xcount/sampling/tolerance.hpp"

#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "check.hpp"

using namespace xcount;
using xcount::test::failures;
using xcount::test::throws;

namespace {

constexpr int kMost = 60;

template <class Value, class Differs>
void is_just_what_differs(const Change<Value>& change, Differs differs) {
  const ToleranceRule<Value> rule(change, {});
  for (int start = -kMost; start <= kMost; ++start) {
    const Tolerance<Value> found = rule.around(Value(start));
    for (int other = -kMost; other <= kMost; ++other) {
      const bool expected = differs(start, other);
      CHECK(found.may_differ(Value(other), Value(other)) == expected);
      CHECK(found.must_differ(Value(other), Value(other)) == expected);
    }
  }
}

template <class Value>
void gaps_and_flips_are_exact() {
  for (const Direction direction : {Direction::kAny, Direction::kUp, Direction::kDown}) {
    const bool up = direction != Direction::kDown;
    const bool down = direction != Direction::kUp;
    is_just_what_differs(Change<Value>(ChangeForm::kGap, direction, Value(7)),
                         [&](int a, int b) { return (up && b - a > 7) || (down && a - b > 7); });
    Change<Value> flip(ChangeForm::kFlip, direction, Value(-3));
    flip.sure_below = Value(-10);
    flip.sure_above = Value(5);
    is_just_what_differs(flip, [&](int a, int b) {
      return (up && a <= -10 && b > -3) || (down && a > 5 && b <= -3);
    });
  }
}

// Sums are multiples of 1/8 here; no difference of two probabilities is within 2^-39 of the gap.
template <class Value>
void probabilities_are_decided_but_for_doubt() {
  Change<Value> change(ChangeForm::kProbability, Direction::kAny, Value(kProbabilityOne / 10));
  const auto p = [](int v) { return 1.0 / (1.0 + std::exp(-v / 8.0)); };
  const ToleranceRule<Value> rule(change, {false, 0, 1.0, -3});
  for (int start = -kMost; start <= kMost; ++start) {
    const Tolerance<Value> found = rule.around(Value(start));
    for (int other = -kMost; other <= kMost; ++other) {
      const bool expected = std::abs(p(other) - p(start)) > 0.1;
      CHECK(found.may_differ(Value(other), Value(other)) == expected);
      CHECK(found.must_differ(Value(other), Value(other)) == expected);
    }
  }
}

// Two neighbours whose probabilities differ by just the gap, up to its rounding: nothing is sure.
void a_tie_is_in_doubt() {
  const double gap = 1.0 / (1.0 + std::exp(-1.0)) - 0.5;
  const auto whole = static_cast<std::int64_t>(gap * static_cast<double>(kProbabilityOne));
  const Change<std::int64_t> change(ChangeForm::kProbability, Direction::kUp, whole);
  const Tolerance<std::int64_t> found =
      ToleranceRule<std::int64_t>(change, {false, 0, 1.0, -50}).around(0);
  const std::int64_t one = std::int64_t{1} << 50;
  CHECK(found.may_differ(one, one) && !found.must_differ(one, one));
  CHECK(!found.may_differ(one - (one >> 30), one - (one >> 30)));
  CHECK(found.must_differ(one + (one >> 30), one + (one >> 30)));
  CHECK(!found.may_differ(-one, -one));  // only neighbours above count
}

// The ends of an interval are as exact next to the largest sums that the type is chosen for.
void large_sums_are_compared_as_well() {
  const auto gap = static_cast<std::int64_t>(0.11 * static_cast<double>(kProbabilityOne));
  const Change<std::int64_t> change(ChangeForm::kProbability, Direction::kAny, gap);
  const ToleranceRule<std::int64_t> rule(change, {false, 0, 1.0, -58});
  const std::int64_t one = std::int64_t{1} << 58;
  CHECK(rule.around(2 * one).must_differ(6 * one, 6 * one));  // 0.881 and 0.998
  CHECK(!rule.around(2 * one).may_differ(4 * one, 4 * one));  // 0.881 and 0.982
  CHECK(rule.around(-2 * one).must_differ(-6 * one, -6 * one));
}

void several_sums_are_led_by_the_first_largest() {
  const std::vector<std::int64_t> sums{3, 9, 9, 1};
  CHECK(ToleranceRule<std::int64_t>::largest(sums) == 1);
  const auto beats = [](std::size_t other, std::int64_t lead) {
    return ToleranceRule<std::int64_t>::lead(other, 1).must_differ(lead, lead);
  };
  CHECK(beats(0, 0) && !beats(0, -1));  // the first of equal ones wins
  CHECK(beats(2, 1) && !beats(2, 0));
}

// Of the sums 0, 0 and 0 each has the chance 1/3; with a lead of log 2, one has 1/2.
void the_chance_of_one_of_several_has_a_tolerance() {
  constexpr auto kUnit = std::int64_t{1} << 40;
  const auto rule_with = [](double gap) {
    const auto threshold = static_cast<std::int64_t>(gap * static_cast<double>(kProbabilityOne));
    const Change<std::int64_t> change(ChangeForm::kProbability, Direction::kUp, threshold);
    return ToleranceRule<std::int64_t>(change, {true, 1, 1.0, -40});
  };
  const std::vector<std::int64_t> sums{5 * kUnit, 5 * kUnit, 5 * kUnit};
  const auto lead = static_cast<std::int64_t>(-std::log(2.0) * static_cast<double>(kUnit));
  const auto rule = rule_with(0.1);
  CHECK(rule.is_of_chance() && rule.compares_sums() && rule.reference(sums) == 1);
  const std::int64_t chance =
      ToleranceRule<std::int64_t>::chance_of(rule.weight_of(lead) + rule.weight_of(lead));
  CHECK(std::abs(2 * chance - ToleranceRule<std::int64_t>::kChanceOne) < 100'000);
  CHECK(rule.around_chance(sums).must_differ(chance, chance));
  CHECK(!rule_with(0.2).around_chance(sums).may_differ(chance, chance));
  CHECK(!rule.around_chance(sums).may_differ(0, 0));  // down is not asked for
}

// A decision that must be sure is the largest of several sums, from where it is sure enough.
void sure_decisions_start_where_they_are_sure() {
  constexpr auto kUnit = std::int64_t{1} << 40;
  const Change<std::int64_t> any(ChangeForm::kLargest, Direction::kAny, 0);
  const std::vector<std::int64_t> none(3);
  CHECK((ToleranceRule<std::int64_t>(any, {}).start_of(none) == StartingPoint::kCounts));
  // Where sums are probabilities, they are integers.
  Change<std::int64_t> sure(ChangeForm::kSureLargest, Direction::kAny, 0);
  sure.sure_above = 7;
  const ToleranceRule<std::int64_t> votes(sure, {});
  CHECK(votes.compares_sums() && !votes.is_of_chance());
  CHECK(votes.start_of(std::vector<std::int64_t>{1, 8, 3}) == StartingPoint::kCounts);
  CHECK(votes.start_of(std::vector<std::int64_t>{1, 7, 3}) == StartingPoint::kNever);
  // Of a softmax, sums of log 2, 0 and 0 have the chances 1/2, 1/4 and 1/4.
  const auto lead = static_cast<std::int64_t>(std::log(2.0) * static_cast<double>(kUnit));
  const auto start_from = [&](double least) {
    sure.threshold = static_cast<std::int64_t>(least * static_cast<double>(kProbabilityOne));
    return ToleranceRule<std::int64_t>(sure, {true, 0, 1.0, -40})
        .start_of(std::vector<std::int64_t>{5 * kUnit, 5 * kUnit + lead, 5 * kUnit});
  };
  CHECK(start_from(0.499) == StartingPoint::kCounts);
  CHECK(start_from(0.5) == StartingPoint::kInDoubt);
  CHECK(start_from(0.501) == StartingPoint::kNever);
}

}  // namespace

int main() {
  gaps_and_flips_are_exact<std::int64_t>();
  gaps_and_flips_are_exact<Int128>();
  gaps_and_flips_are_exact<Int2304>();
  probabilities_are_decided_but_for_doubt<std::int64_t>();
  probabilities_are_decided_but_for_doubt<Int128>();
  probabilities_are_decided_but_for_doubt<Int2304>();
  a_tie_is_in_doubt();
  large_sums_are_compared_as_well();
  several_sums_are_led_by_the_first_largest();
  the_chance_of_one_of_several_has_a_tolerance();
  sure_decisions_start_where_they_are_sure();
  return failures;
}

// Deciding by bounds, and the offsets for which a decision holds, against trying every value.
#include "xcount/trees/gap.hpp"

#include <cstdint>

#include "check.hpp"

using namespace xcount;
using xcount::test::failures;

namespace {

constexpr std::int64_t kFar = 9;

bool exceeds(std::int64_t v, std::int64_t threshold) { return (v < 0 ? -v : v) > threshold; }

template <class Function>
void for_all_bounds(Function function) {
  for (std::int64_t threshold = 0; threshold <= 3; ++threshold) {
    for (std::int64_t least = -6; least <= 6; ++least) {
      for (std::int64_t most = least; most <= 6; ++most) function(threshold, least, most);
    }
  }
}

template <class Value>
void bounds_decide_as_trying_every_value_does() {
  for_all_bounds([](std::int64_t threshold, std::int64_t least, std::int64_t most) {
    const Gap<Value> gap{Value(threshold)};
    bool all = true;
    bool none = true;
    for (std::int64_t v = least; v <= most; ++v) {
      CHECK(gap.is_exceeded(Value(v)) == exceeds(v, threshold));
      (exceeds(v, threshold) ? none : all) = false;
    }
    const Verdict verdict = gap.decide(Value(least), Value(most));
    CHECK(verdict.above + verdict.below + verdict.inside <= 1);
    CHECK(verdict.inside == none);
    CHECK(gap.may_exceed(Value(least), Value(most)) == !none);
    CHECK(gap.must_exceed(Value(least), Value(most)) == verdict.holds());
    // Values of both signs may all exceed the threshold; then bounds alone do not tell.
    CHECK(verdict.holds() == (all && (least > 0 || most < 0)));
  });
}

template <class Value>
void a_direction_counts_one_side_alone() {
  for_all_bounds([](std::int64_t threshold, std::int64_t least, std::int64_t most) {
    const Gap<Value> up(Value(threshold), Direction::kUp);
    const Gap<Value> down(Value(threshold), Direction::kDown);
    CHECK(up.has_direction() && down.has_direction());
    bool some_up = false;
    bool some_down = false;
    for (std::int64_t v = least; v <= most; ++v) {
      CHECK(up.is_exceeded(Value(v)) == (v > threshold));
      CHECK(down.is_exceeded(Value(v)) == (-v > threshold));
      some_up |= v > threshold;
      some_down |= -v > threshold;
    }
    CHECK(up.may_exceed(Value(least), Value(most)) == some_up);
    CHECK(down.may_exceed(Value(least), Value(most)) == some_down);
    CHECK(up.must_exceed(Value(least), Value(most)) == (least > threshold));
    CHECK(down.must_exceed(Value(least), Value(most)) == (-most > threshold));
  });
}

// The interval holds just the offsets for which the verdict is the same.
template <class Value>
void a_verdict_holds_for_its_interval_of_offsets() {
  for_all_bounds([](std::int64_t threshold, std::int64_t min, std::int64_t max) {
    const Gap<Value> gap{Value(threshold)};
    const auto decide = [&](std::int64_t offset) {
      return gap.decide(Value(offset + min), Value(offset + max));
    };
    for (std::int64_t offset = -kFar; offset <= kFar; ++offset) {
      const Verdict verdict = decide(offset);
      if (verdict.is_open()) continue;
      for (const std::int64_t shift : {-2, 0, 3}) {
        OffsetInterval<Value> holds;
        gap.narrow(verdict, Value(min), Value(max), Value(shift), holds);
        for (std::int64_t other = -2 * kFar; other <= 2 * kFar; ++other) {
          const Verdict there = decide(other + shift);
          const bool same = there.above == verdict.above && there.below == verdict.below &&
                            there.inside == verdict.inside;
          CHECK(holds.contains(Value(other)) == same);
        }
      }
    }
  });
}

void intervals_intersect_after_a_shift() {
  OffsetInterval<std::int64_t> holds{-5, 5};
  holds.absorb({0, ValueTraits<std::int64_t>::infinity()}, 2);
  CHECK(holds.low == -2 && holds.high == 5);
  holds.absorb({}, 100);  // everything stays everything, wherever it is moved
  CHECK(holds.low == -2 && holds.high == 5);
  holds.absorb({-10, 3}, -1);
  CHECK(holds.low == -2 && holds.high == 4);
}

}  // namespace

int main() {
  bounds_decide_as_trying_every_value_does<std::int64_t>();
  bounds_decide_as_trying_every_value_does<Int128>();
  bounds_decide_as_trying_every_value_does<Int2304>();
  a_verdict_holds_for_its_interval_of_offsets<std::int64_t>();
  a_verdict_holds_for_its_interval_of_offsets<Int2304>();
  a_direction_counts_one_side_alone<std::int64_t>();
  a_direction_counts_one_side_alone<Int2304>();
  intervals_intersect_after_a_shift();
  return failures;
}

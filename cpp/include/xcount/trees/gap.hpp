// The constraint |v| > threshold, decided by bounds of v.
//
// Every counter decides in this one way (docs/exact.md, "In general", rule 1):
//   least <= v <= most and least >  threshold                       =>  |v| > threshold   (above)
//   least <= v <= most and most  < -threshold                       =>  |v| > threshold   (below)
//   least <= v <= most and -threshold <= least, most <= threshold   =>  |v| <= threshold  (inside)
// With v = offset + rest, min <= rest <= max, each decision is the same for an interval of offsets,
// which these functions compute exactly (docs/exact.md, "Why this is right", "The remembered box").
//
// Where single regions are decided, v = V' - V is the way from a region to its neighbour, and a gap
// may have a direction: only v > threshold (up), or only -v > threshold (down). The exact counter
// has none: directed gaps reach it by a switch (docs/exact.md, "A gap with a direction").
#pragma once

#include <algorithm>

#include "xcount/support/assert.hpp"
#include "xcount/support/value.hpp"
#include "xcount/trees/change.hpp"

namespace xcount {

// The offsets low <= offset <= high for which an answer holds.
template <class Value>
struct OffsetInterval {
  Value low = -ValueTraits<Value>::infinity();
  Value high = ValueTraits<Value>::infinity();

  void raise_low(const Value& value) { low = std::max(low, value); }
  void lower_high(const Value& value) { high = std::min(high, value); }
  // Intersects with the interval that another offset, larger by `shift`, has.
  void absorb(const OffsetInterval& other, const Value& shift) {
    const Value infinity = ValueTraits<Value>::infinity();
    if (other.low > -infinity) raise_low(other.low - shift);
    if (other.high < infinity) lower_high(other.high - shift);
  }
  [[nodiscard]] bool contains(const Value& offset) const { return low <= offset && offset <= high; }
};

// What bounds say of a sum; at most one of the three, none if they leave it open.
struct Verdict {
  bool above, below, inside;

  [[nodiscard]] bool is_open() const { return !above && !below && !inside; }
  [[nodiscard]] bool holds() const { return above || below; }  // |v| > threshold everywhere
};

template <class Value>
class Gap {
 public:
  explicit Gap(const Value& threshold, Direction direction = Direction::kAny)
      : threshold_(threshold),
        up_(direction != Direction::kDown),
        down_(direction != Direction::kUp) {}

  [[nodiscard]] const Value& threshold() const { return threshold_; }
  [[nodiscard]] bool has_direction() const { return !(up_ && down_); }
  [[nodiscard]] bool counts_rises() const { return up_; }
  [[nodiscard]] bool counts_falls() const { return down_; }
  // Whether |v| > threshold, in the gap's direction.
  [[nodiscard]] bool is_exceeded(const Value& v) const { return may_exceed(v, v); }
  // The same for some v with least <= v <= most.
  [[nodiscard]] bool may_exceed(const Value& least, const Value& most) const {
    XCOUNT_ASSERT(least <= most);
    return (up_ && most > threshold_) || (down_ && -least > threshold_);
  }
  // The same for all v with least <= v <= most.
  [[nodiscard]] bool must_exceed(const Value& least, const Value& most) const {
    XCOUNT_ASSERT(least <= most);
    return (up_ && least > threshold_) || (down_ && -most > threshold_);
  }
  [[nodiscard]] Verdict decide(const Value& least, const Value& most) const {
    XCOUNT_ASSERT(least <= most && !has_direction());
    return {least > threshold_, -most > threshold_, -least <= threshold_ && most <= threshold_};
  }

  // For which offsets offset + rest is on this side, given the least (`min`) or the largest (`max`)
  // value of the rest.
  [[nodiscard]] Value first_above(const Value& min) const { return threshold_ - min + Value(1); }
  [[nodiscard]] Value last_not_above(const Value& max) const { return threshold_ - max; }
  [[nodiscard]] Value last_below(const Value& max) const { return -threshold_ - max - Value(1); }
  [[nodiscard]] Value first_not_below(const Value& min) const { return -threshold_ - min; }

  // Narrows the interval to the offsets for which the verdict on offset + shift + rest is the same.
  void narrow(const Verdict& verdict, const Value& min, const Value& max, const Value& shift,
              OffsetInterval<Value>& interval) const {
    if (verdict.above) interval.raise_low(first_above(min) - shift);
    if (verdict.below) interval.lower_high(last_below(max) - shift);
    if (verdict.inside) {
      interval.raise_low(first_not_below(min) - shift);
      interval.lower_high(last_not_above(max) - shift);
    }
  }

 private:
  Value threshold_;
  bool up_, down_;  // which of v > threshold, -v > threshold counts
};

}  // namespace xcount

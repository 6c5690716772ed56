// Which sums a neighbour may have without differing from a region: one concept for every change.
//
// The sums V' that do not differ from a start V are an interval, whatever the change asks:
//   kGap          V - threshold <= V' <= V + threshold; a direction leaves one end open
//   kFlip         V' <= threshold where a flip up starts at V, V' > threshold where one down does,
//                 every V' where none starts
//   kProbability  the V' with |p(V') - p(V)| <= gap, for one sum: p grows with V'
//   kLargest      of several sums, with k the first largest at the start: D_j = V'_j - V'_k <= -1
//                 for j < k, D_j <= 0 for j > k; the start differs iff some D_j is beyond its end
//   kSureLargest  the same, where the start itself is sure enough: see StartingPoint
//   kProbability  of several sums, of which k is asked about: p = 1 / (1 + sum of exp(D_j)) falls
//                 with every D_j = V'_j - V'_k, so that bounds of them bound it; p itself, in units
//                 of 1 / kChanceOne, is the one number that has a tolerance
// In integers, hence exact, but for a probability: its ends are known up to the error of floating
// point, and sums between `high` and `sure_high` (or `sure_low` and `low`) are in doubt:
//   low <= V' <= high                       =>  no change
//   V' < sure_low or V' > sure_high         =>  a change
// docs/approximate.md, "What is sampled", "Single regions".
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "xcount/exact/probability_link.hpp"
#include "xcount/support/value.hpp"
#include "xcount/trees/change.hpp"

namespace xcount {

template <class Value>
struct Tolerance {
  Value low = -ValueTraits<Value>::infinity();
  Value high = ValueTraits<Value>::infinity();
  Value sure_low = -ValueTraits<Value>::infinity();
  Value sure_high = ValueTraits<Value>::infinity();

  // Without doubt.
  static Tolerance exactly(const Value& low, const Value& high) { return {low, high, low, high}; }
  static Tolerance up_to(const Value& high) {
    return exactly(-ValueTraits<Value>::infinity(), high);
  }
  static Tolerance from(const Value& low) { return exactly(low, ValueTraits<Value>::infinity()); }

  // Whether some sum between least and most may differ, and whether all of them surely do.
  [[nodiscard]] bool may_differ(const Value& least, const Value& most) const {
    return least < low || most > high;
  }
  [[nodiscard]] bool must_differ(const Value& least, const Value& most) const {
    return most < sure_low || least > sure_high;
  }
};

// Whether a change from a region counts at all: a decision may have to be sure enough. Of a softmax
// that is known up to the error of floating point.
enum class StartingPoint : std::uint8_t { kCounts, kNever, kInDoubt };

// Makes tolerances of starts, for one change.
template <class Value>
class ToleranceRule {
 public:
  static constexpr std::int64_t kChanceOne = std::int64_t{1} << 50;

  ToleranceRule(const Change<Value>& change, const ProbabilityLink& link);

  // What of the sum V is asked: all of it, or only what masks change.
  [[nodiscard]] bool needs_whole_sums() const { return change_.form != ChangeForm::kGap; }
  [[nodiscard]] bool compares_sums() const {
    return change_.form == ChangeForm::kLargest || change_.form == ChangeForm::kSureLargest ||
           is_of_chance();
  }
  // Whether a change from a start counts, of several sums.
  [[nodiscard]] StartingPoint start_of(std::span<const Value> sums) const;
  // Whether several sums make one number that is asked about.
  [[nodiscard]] bool is_of_chance() const {
    return change_.form == ChangeForm::kProbability && link_.softmax;
  }

  // The tolerance of a start, of one sum.
  [[nodiscard]] Tolerance<Value> around(const Value& start) const;
  // Of several sums: the index of the first largest, and the end for another one's lead over it.
  [[nodiscard]] static std::size_t largest(std::span<const Value> sums);
  [[nodiscard]] static Tolerance<Value> lead(std::size_t other, std::size_t largest) {
    return Tolerance<Value>::up_to(other < largest ? Value(-1) : Value(0));
  }
  // The sum that others are compared with.
  [[nodiscard]] std::size_t reference(std::span<const Value> sums) const {
    return is_of_chance() ? link_.output : largest(sums);
  }
  // The tolerance of a start, of the chance that its sums make.
  [[nodiscard]] Tolerance<Value> around_chance(std::span<const Value> sums) const;
  // What a lead of another sum adds to 1 / p, and the chance that all of them together make.
  [[nodiscard]] double weight_of(const Value& lead) const { return std::exp(argument(lead)); }
  [[nodiscard]] static Value chance_of(double weights) {
    return Value(static_cast<std::int64_t>(kChanceOne / (1.0 + weights)));
  }

 private:
  [[nodiscard]] Tolerance<Value> around_gap(const Value& start) const;
  [[nodiscard]] Tolerance<Value> around_flip(const Value& start) const;
  [[nodiscard]] Tolerance<Value> around_probability(const Value& start) const;
  [[nodiscard]] double chance_at(std::span<const Value> sums, std::size_t output) const;
  [[nodiscard]] double argument(const Value& sum) const;
  [[nodiscard]] Value last_sum(double probability) const;

  Change<Value> change_;
  ProbabilityLink link_;
  bool up_, down_;
  double gap_ = 0.0;  // of a probability; how probable a sure decision is at least
};

}  // namespace xcount

// What a search for the largest change maximises: a change of the margin, or of a probability.
//
// An objective turns upper bounds of the sums of a pair of regions (worst/pair_trees.hpp) into an
// upper bound of the change, its score. A margin's score is the bound of V(target) - V(start)
// itself, an integer. For p(v) = 1 / (1 + exp(-v)) and exponents a at the target, b at the start,
//   a <= A,  b >= B,  a - b <= D   =>   p(a) - p(b) <= p(c + D') - p(c)
// with D' = min(D, A - B) and c the number nearest to -D'/2 with B <= c <= A - D': the difference
// of two points of the sigmoid at a given distance is largest where they lie evenly around 0.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "xcount/worst/pair_trees.hpp"

namespace xcount {

struct MarginObjective {
  static constexpr std::size_t kSums = 1;
  using Score = Bound;
  static constexpr Score kTolerance = 0;

  void round_to(int /*shift*/) {}
  using Sums = std::array<Bound, kSums>;

  [[nodiscard]] Score score(const Sums& sums) const { return sums[kDifferenceSum]; }
  // The change between given sums at the target and at the start, roughly.
  [[nodiscard]] double change(double target, double start) const { return target - start; }
};

struct ProbabilityObjective {
  static constexpr std::size_t kSums = 3;
  using Score = double;
  // More than the rounding of a score: a change that is larger by less than this is not looked for.
  static constexpr Score kTolerance = 1e-12;
  using Sums = std::array<Bound, kSums>;

  double mantissa = 1;  // the exponent that one unit of a sum stands for, times 2^power
  int power = 0;
  double base = 0;   // the exponent of a sum of 0
  double floor = 0;  // changes up to it do not count
  double unit = 1;   // of bounds, which a search rounds to multiples of 2^shift

  void round_to(int shift) { unit = std::ldexp(mantissa, power + shift); }

  static double difference(double a, double b) { return (std::tanh(a / 2) - std::tanh(b / 2)) / 2; }
  [[nodiscard]] Score score(const Sums& sums) const {
    const double highest = base + unit * static_cast<double>(sums[kTargetSum]);
    const double lowest = base - unit * static_cast<double>(sums[kStartSum]);
    const double step =
        std::min(unit * static_cast<double>(sums[kDifferenceSum]), highest - lowest);
    if (step <= 0) return 0;
    const double low = std::min(std::max(-step / 2, lowest), highest - step);
    // Each exponent is rounded a few times; the sigmoid's slope is at most 1/4.
    const double rounding = 1e-15 * (1 + std::abs(highest) + std::abs(lowest) + step);
    return difference(low + step, low) + rounding;
  }
  [[nodiscard]] double change(double target, double start) const {
    return difference(base + unit * target, base + unit * start);
  }
};

}  // namespace xcount

// The link from sums to a probability, and the judge of comparisons that rounding leaves open.
//
// With x_j = V_j * unit * 2^exponent, p = 1 / (1 + exp(-x_k)) or exp(x_k) / sum of exp(x_j). In
// floating point p is known up to a few 2^-52; with Q = p * kProbabilityOne, rounded,
//   |(Q' - Q) - (p' - p) * kProbabilityOne| <= kProbabilityDoubt,
// so that Q' - Q decides p' - p > gap but for a band around the gap, in which a judge decides
// exactly. Proved in docs/corner-sums.md, "Probabilities".
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace xcount {

struct ProbabilityLink {
  bool softmax = false;
  std::size_t output = 0;  // k
  double unit = 1.0;
  int exponent = 0;
};

// Whether p(after) - p(before) exceeds the gap of the change with that number, exactly; of a sure
// decision (ChangeForm::kSureLargest), whether it is sure enough before.
template <class Value>
using ProbabilityJudge = std::function<bool(std::size_t change, std::span<const Value> before,
                                            std::span<const Value> after)>;

}  // namespace xcount

// Sums of more than 64 bits, decided by 64: rounded leaves first, the exact ones for close cases.
//
// With a unit 2^shift, every leaf and constant v is rounded to the nearest v' (|v' - v / unit| <=
// 1/2), so that a sum V' of rounded numbers is off by at most error = n_trees / 2 + 1 units. Each
// change is asked twice of V': in the first half of the changes with room for the error, so that
// what differs there surely differs, and in the second half with the error's help, so that what
// does not differ there surely does not:
//   surely <= truly <= possibly                                  (as sets of regions)
// A block in which both have the same counts is decided; another one is counted again, in full.
// Proved in docs/corner-sums.md, "Rounded leaves".
#pragma once

#include <cstdint>

#include "xcount/exact/corner_plan.hpp"

namespace xcount {

// Whether rounding can decide the changes: not if a gap is within the error of 0 (then nothing is
// ever sure), nor for the largest of several or probabilities.
template <class Value>
[[nodiscard]] bool can_round(const CornerQuestion<Value>& question, const SumRange<Value>& range);

// The rounded question; changes: surely, then possibly.
template <class Value>
[[nodiscard]] CornerIntegers<std::int64_t> rounded_integers(const CornerQuestion<Value>& question,
                                                            const SumRange<Value>& range);

}  // namespace xcount

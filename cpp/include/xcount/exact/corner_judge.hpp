// Probabilities in corner sums: a judge decides what their comparison as integers leaves open.
// Proved in docs/corner-sums.md, "Probabilities".
#pragma once

#include "xcount/exact/corner_plan.hpp"

namespace xcount {

// Lets a plan of the question's exact integers compare probabilities.
template <class T, class Value>
void set_judge(const CornerQuestion<Value>& question, const CornerGround& ground,
               const SumRange<Value>& range, CornerPlan<T>& plan);

}  // namespace xcount

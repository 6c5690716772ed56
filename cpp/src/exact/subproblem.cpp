#include "xcount/exact/subproblem.hpp"

#include <algorithm>

namespace xcount {

namespace {

constexpr std::size_t kLookedAtBytes = std::size_t{64} << 20;  // of a pair that is looked at

}  // namespace

template <class Value, class Values>
SubproblemSolver<Value, Values>::SubproblemSolver(const Forest<Value>& forest,
                                                  const MaskSpace& masks, const Value& threshold,
                                                  Values values)
    : builder_(forest, masks),
      store_(forest),
      values_(std::move(values)),
      gap_(threshold),
      eliminator_(store_, values_, threshold) {}

template <class Value, class Values>
SubproblemSolver<Value, Values>::~SubproblemSolver() = default;

template <class Value, class Values>
std::size_t SubproblemSolver<Value, Values>::bytes() const {
  return store_.bytes() + values_.bytes() + eliminator_.bytes();
}

template <class Value, class Values>
SolutionId SubproblemSolver<Value, Values>::solve(const ExactTask& task,
                                                  const EliminationLimits& limits,
                                                  DiagramRecorder* recorder) {
  if (builder_.is_too_deep()) throw GiveUp::kMemory;
  store_.clear();
  eliminator_.clear();
  n_built_ = 0;
  const std::uint64_t n_walks_before = builder_.n_walks();
  const auto check = [&] {
    if (limits.is_cancelled()) throw GiveUp::kCancelled;
    if (store_.bytes() > limits.max_bytes) throw GiveUp::kMemory;
  };
  std::vector<ResidualSum<Value>> constraints(task.pairs.size());
  for (std::size_t i = 0; i < task.pairs.size(); ++i) {
    check();
    builder_.build(task.pairs[i].first, task.pairs[i].second, store_, constraints[i].residuals,
                   constraints[i].offset, check);
  }
  n_built_ = kStepsPerWalk * (builder_.n_walks() - n_walks_before);
  values_.reset(store_.forest(), store_.features());
  EliminationLimits left = limits;
  left.max_steps -= std::min(left.max_steps, n_built_);
  return eliminator_.solve(constraints, task.combine, left, task.part, recorder);
}

template <class Value, class Values>
bool SubproblemSolver<Value, Values>::may_exceed(const MaskPair& pair, Stop& stop) {
  if (builder_.is_too_deep()) return true;
  store_.clear();
  const auto check = [&] {
    if (stop.is_over()) throw GiveUp::kCancelled;
    if (store_.bytes() > kLookedAtBytes) throw GiveUp::kMemory;
  };
  try {
    return builder_.may_exceed(pair.first, pair.second, gap_, store_, check);
  } catch (const GiveUp&) {
    return true;  // not checked: treat as live
  }
}

template class SubproblemSolver<std::int64_t, CountValues>;
template class SubproblemSolver<Int128, CountValues>;
template class SubproblemSolver<Int2304, CountValues>;
template class SubproblemSolver<std::int64_t, WeightValues>;
template class SubproblemSolver<Int128, WeightValues>;
template class SubproblemSolver<Int2304, WeightValues>;

}  // namespace xcount

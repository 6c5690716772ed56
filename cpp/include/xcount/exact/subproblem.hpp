// One subproblem of the exact counter, solved by one thread.
//
// A task is a list of pairs of masks (m, m') and how they combine; its solutions are the
// combinations x of the other features' cells with |V(x, m) - V(x, m')| > threshold for any (or
// all) of the pairs. The solver builds the difference trees of the pairs, which sum up to V(x, m) -
// V(x, m') for every x, and eliminates their features. From an empty memo, so that
//   (task, limits of steps) determines the answer, whatever was solved before:
// docs/exact.md, "Why this is right", "Threads".
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "xcount/exact/elimination.hpp"
#include "xcount/support/stopping.hpp"
#include "xcount/trees/differences.hpp"

namespace xcount {

using MaskPair = std::pair<MaskIndex, MaskIndex>;

// Count the x for which any (or all) of the pairs differ by more than the threshold; or those of
// them in one part of the space.
struct ExactTask {
  std::vector<MaskPair> pairs;
  Combine combine = Combine::kAny;
  Part part = {};
};

// One thread's tables, used for one task after another.
template <class Value, class Values>
class SubproblemSolver {
 public:
  SubproblemSolver(const Forest<Value>& forest, const MaskSpace& masks, const Value& threshold,
                   Values values);
  ~SubproblemSolver();  // not inline: there are many tables to destroy, in six variants
  SubproblemSolver(const SubproblemSolver&) = delete;
  SubproblemSolver& operator=(const SubproblemSolver&) = delete;

  // Throws GiveUp. What was solved stays readable until the next call.
  SolutionId solve(const ExactTask& task, const EliminationLimits& limits,
                   DiagramRecorder* recorder = nullptr);
  SolutionId whole_part() { return eliminator_.whole_part(); }  // of the task last solved
  // Whether the pair's difference may exceed the threshold; yes if that is too much to check.
  [[nodiscard]] bool may_exceed(const MaskPair& pair, Stop& stop);

  [[nodiscard]] const Values& values() const { return values_; }
  [[nodiscard]] const ResidualStore<Value>& store() const { return store_; }
  // Of the last task: those of building its difference trees, and of the elimination.
  [[nodiscard]] std::uint64_t n_steps() const { return n_built_ + eliminator_.n_steps(); }
  [[nodiscard]] std::uint64_t n_forgotten() const { return eliminator_.n_forgotten(); }
  [[nodiscard]] std::size_t bytes() const;

 private:
  DifferenceBuilder<Value> builder_;
  ResidualStore<Value> store_;
  Values values_;
  Gap<Value> gap_;
  Eliminator<Value, Values> eliminator_;
  std::uint64_t n_built_ = 0;  // steps of building the last task's difference trees
};

}  // namespace xcount

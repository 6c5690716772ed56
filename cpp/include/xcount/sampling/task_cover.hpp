// The cover of one task: the exact counter's search, stopped where parts get small.
//
// Holds a frontier of open states with disjoint boxes. States are split as in
// exact/elimination.hpp, depth first, into parts of at most a least volume; when no larger one is
// left, that is lowered. Whenever a state is not being split,
//   total() = solved() + open() + combinations that surely do not solve,
// as exact numbers of combinations of the cells of the task's features, where open() is what lies
// in the boxes of the frontier: docs/approximate.md, "What is sampled", "Covers".
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "xcount/exact/elimination.hpp"
#include "xcount/support/random.hpp"
#include "xcount/trees/differences.hpp"

namespace xcount {

// Solutions of "any (or all) of these pairs differ by more than the threshold", counted
// `multiplicity` times: once for each mask that has just these pairs.
struct CoverTask {
  std::vector<std::pair<MaskIndex, MaskIndex>> pairs;
  std::uint32_t multiplicity = 1;
  Combine combine = Combine::kAny;
};

template <class Value>
class TaskCover {
 public:
  using Check = typename DifferenceBuilder<Value>::Check;
  using Number = CountValues::Number;

  TaskCover(const Forest<Value>& forest, DifferenceBuilder<Value>& builder, const Value& threshold,
            const CoverTask& task, const Check& check);

  // Splits states until that much work is done (see `work`), nothing is left to split, or it holds
  // that many bytes. What is done does not depend on how the work is divided into calls.
  void refine(std::uint64_t max_work, std::size_t max_bytes, std::uint64_t max_paths = kMaxPaths);
  // Whether memory ended the last refinement: more of it would change nothing.
  [[nodiscard]] bool is_full() const { return is_full_; }
  // Gives back what only makes refining quicker.
  void release_caches();

  [[nodiscard]] Number solved() const { return solved_; }
  [[nodiscard]] Number open() const;
  [[nodiscard]] Number total() const { return values_.number(kAllSolve); }
  [[nodiscard]] Share open_share() const { return now_share_ + later_share_; }
  // Steps and residuals split so far, a measure of time that is the same on every machine.
  [[nodiscard]] std::uint64_t work() const { return work_; }
  [[nodiscard]] std::size_t bytes() const;

  // The states that are open, numbered from 0.
  [[nodiscard]] std::size_t n_open() const { return now_.size() - n_split_ + later_.size(); }
  [[nodiscard]] OpenState<Value> state(std::size_t i) const {
    const std::size_t n_now = now_.size() - n_split_;
    return i < n_now ? now_[n_split_ + i] : later_[i - n_now];
  }

  // Cells drawn for one sample; a feature is drawn when it is first asked for.
  struct Draw {
    std::vector<Stretch> left;   // per feature
    std::vector<bool> is_drawn;  // per feature: then left holds one cell
  };
  // Whether a random combination of the state's box solves.
  [[nodiscard]] bool sample(std::size_t state, Random& random, Draw& draw) const;
  [[nodiscard]] Feature feature(LocalFeature local) const { return store_.features()[local]; }

 private:
  void lower();
  bool split_next(const EliminationLimits& limits);
  [[nodiscard]] Cell draw_cell(LocalFeature feature, Random& random, Draw& draw) const;

  ResidualStore<Value> store_;
  CountValues values_;
  Gap<Value> gap_;
  Combine combine_;
  Eliminator<Value, CountValues> eliminator_;
  Frontier<Value> now_, later_;            // those to be split now, and those left for later
  std::size_t n_split_ = 0;                // the first of `now_`, which are done
  Share now_share_ = 0, later_share_ = 0;  // volumes of the open states
  Share least_ = 1;                        // those of `later_` are not larger
  CountValues::Sum solved_;
  std::uint64_t work_ = 0;
  bool is_full_ = false;
};

}  // namespace xcount

// The cover of one task: best-first elimination that is stopped early.
//
// Features are eliminated one at a time as in exact/elimination.hpp, but always in the state of the
// largest volume, and each into all its cells; equal states reached on different ways are one
// state, with their volumes added. At every moment
//   1 = solved() + open() + volume that surely does not solve,
// as shares of all combinations of cells (up to the rounding of long doubles), where open() is the
// volume of the frontier, the states that are not expanded: docs/approximate.md, "What is sampled",
// "Covers".
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "xcount/support/hash_index.hpp"
#include "xcount/support/random.hpp"
#include "xcount/trees/differences.hpp"
#include "xcount/trees/gap.hpp"
#include "xcount/trees/residual_sweep.hpp"
#include "xcount/trees/residuals.hpp"
#include "xcount/trees/root_scores.hpp"

namespace xcount {

// Volumes are fractions of all combinations of cells; their range is that of a long double, and
// whoever turns them into counts allows for rounding.
using Volume = long double;
using Clock = std::chrono::steady_clock;

// Solutions of "any of these pairs differs by more than the threshold", counted `multiplicity`
// times: once for each mask that has just these pairs.
struct CoverTask {
  std::vector<std::pair<MaskIndex, MaskIndex>> pairs;
  std::uint32_t multiplicity = 1;
};

template <class Value>
class TaskCover {
 public:
  using Check = typename DifferenceBuilder<Value>::Check;

  TaskCover(const Forest<Value>& forest, DifferenceBuilder<Value>& builder, const Value& threshold,
            const CoverTask& task, const Check& check);

  // Expands states until that much work is done (see `work`) or the deadline has passed.
  void refine(std::uint64_t max_work, Clock::time_point deadline);

  [[nodiscard]] Volume solved() const { return solved_; }  // volume that surely solves
  [[nodiscard]] Volume open() const { return open_; }      // volume of the frontier
  [[nodiscard]] std::uint64_t n_expanded() const { return n_expanded_; }
  // Residuals looked at so far, a measure of time that is the same on every machine.
  [[nodiscard]] std::uint64_t work() const { return work_; }
  [[nodiscard]] std::size_t bytes() const;

  // The states of the frontier, ascending, with their volumes.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, Volume>> frontier() const;

  // Cells drawn for one sample; a feature is drawn when it is first asked for.
  struct Draw {
    std::vector<Cell> cells;
    std::vector<std::uint32_t> stamps;
    std::uint32_t stamp = 0;
  };
  // Whether a random combination of the state solves.
  [[nodiscard]] bool sample(std::uint32_t state, Random& random, Draw& draw) const;
  [[nodiscard]] std::size_t n_residuals(std::uint32_t state) const { return states_[state].n_ids; }

  // Calls fix(feature, cell) for cells that lead to the state: those of one way out of many, but
  // what is left to decide is the same for all of them.
  template <class Fix>
  void for_each_fixed(std::uint32_t state, const Fix& fix) const {
    for (; states_[state].parent != kNone; state = states_[state].parent) {
      fix(store_.features()[states_[state].feature], states_[state].cell);
    }
  }

 private:
  // How a state was first met: at this cell of the feature, from this state.
  struct Origin {
    std::uint32_t parent;
    LocalFeature feature;
    Cell cell;
  };
  struct State : Origin {
    std::uint64_t ids;      // start in ids_: residuals of each constraint, separated
    std::uint64_t offsets;  // start in offsets_: one per constraint
    std::uint32_t n_ids;    // with separators
    std::uint32_t n_terms;
    Volume volume;  // 0: not in the frontier
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr ResidualId kSeparator = ~ResidualId{0};

  void expand(std::uint32_t state);
  [[nodiscard]] LocalFeature choose_feature(const State& state);
  void split(const State& state, LocalFeature feature);
  [[nodiscard]] Verdict decide_child(const State& state);
  void add_child(Volume volume, const Origin& origin);
  void add_state(Volume volume, const Origin& origin);
  [[nodiscard]] Cell draw_cell(const Test& test, LocalFeature feature, Random& random,
                               Draw& draw) const;

  ResidualStore<Value> store_;
  Gap<Value> gap_;
  std::vector<State> states_;
  std::vector<ResidualId> ids_;
  std::vector<Value> offsets_;
  HashIndex table_;
  std::vector<std::pair<Volume, std::uint32_t>> heap_;
  Volume solved_ = 0, open_ = 0;
  std::uint64_t n_expanded_ = 0, work_ = 0;
  // Scratch of expand.
  RootScores scores_;
  ResidualSweep<Value> sweep_;
  std::vector<BoundedSum<Value>> sums_;  // of the constraints, where the sweep stands
  std::vector<std::uint32_t> live_;      // the constraints that are still undecided there
  std::vector<ResidualId> key_ids_;
  std::vector<Value> key_offsets_;
};

}  // namespace xcount

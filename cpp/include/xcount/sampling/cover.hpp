// A cover of the solutions: best-first elimination that is stopped early.
//
// For a mask, features are eliminated one at a time as in elimination.hpp, but always in the state
// of the largest volume; equal states reached on different ways are one state, with their volumes
// added. When the work stops, the decided volume is known, and what is left is a list of weighted
// states, the frontier: a sample from the cover is a state drawn by volume, and then cells for the
// features that it still mentions. The more is decided, the larger is the share of the frontier
// that solves.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "xcount/sampling/cover_decider.hpp"
#include "xcount/sampling/sampler.hpp"
#include "xcount/support/hash_index.hpp"
#include "xcount/trees/differences.hpp"
#include "xcount/trees/residuals.hpp"

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

// The cover of one task.
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
  struct State {
    std::uint64_t ids;      // start in ids_: residuals of each constraint, separated
    std::uint64_t offsets;  // start in offsets_: one per constraint
    std::uint32_t n_ids;    // with separators
    std::uint32_t n_terms;
    Volume volume;         // 0: not in the frontier
    std::uint32_t parent;  // where it was first met, at this cell of the feature
    LocalFeature feature;
    Cell cell;
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Term {
    Value offset{}, min{}, max{};
    std::vector<ResidualId> fixed;  // residuals that do not mention the eliminated feature
    Value fixed_min{}, fixed_max{};
  };
  struct Moving {
    std::size_t term;
    std::size_t at, end;  // in runs_
  };
  enum class Verdict { kAll, kNone, kOpen };
  static constexpr ResidualId kSeparator = ~ResidualId{0};

  void expand(std::uint32_t state);
  [[nodiscard]] LocalFeature choose_feature(const State& state);
  void split(const State& state, LocalFeature feature);
  Verdict decide_child();
  void add_child(Volume volume);
  void add_state(Volume volume);
  Cell advance(Cell n_cells);
  [[nodiscard]] Verdict decide(const Value& least, const Value& most) const;

  ResidualStore<Value> store_;
  Value threshold_;
  std::vector<State> states_;
  std::vector<ResidualId> ids_;
  std::vector<Value> offsets_;
  HashIndex table_;
  std::vector<std::pair<Volume, std::uint32_t>> heap_;
  Volume solved_ = 0, open_ = 0;
  std::uint64_t n_expanded_ = 0, work_ = 0;
  // Scratch of expand.
  std::vector<Term> terms_;
  std::size_t n_terms_ = 0;
  std::vector<Run> runs_;
  std::vector<Moving> moving_;
  std::vector<std::uint8_t> open_terms_;
  std::vector<ResidualId> moved_, key_ids_;
  std::vector<Value> key_offsets_;
  std::vector<double> scores_;
  std::uint32_t parent_ = kNone;
  LocalFeature feature_ = 0;
  Cell cell_ = 0;
};

// The covers of several tasks, refined and sampled together.
template <class Value>
class Cover {
 public:
  using Check = typename TaskCover<Value>::Check;

  // `check` is called every now and then, and may end this by an exception. Throws
  // std::length_error where trees are too deep or too large to make differences of.
  Cover(
      const Forest<Value>& forest, const MaskSpace& masks, const Value& threshold,
      const std::vector<CoverTask>& tasks, const Check& check = [] {});
  Cover(Cover&&) = default;  // not copied: tables may be large

  // Does about that much work where the open volume is largest. Unless the time is up first, the
  // outcome does not depend on the number of threads.
  void refine(std::uint64_t work, double max_seconds, unsigned n_threads);

  [[nodiscard]] Volume solved() const;  // times multiplicity, as is everything here
  [[nodiscard]] Volume open() const;
  [[nodiscard]] std::uint64_t n_expanded() const;
  [[nodiscard]] std::uint64_t work() const;
  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] double mean_residuals() const;  // of a frontier state, by volume
  // Seconds that a sample takes, roughly, and the same on every machine.
  [[nodiscard]] double seconds_per_sample() const;

  // Fixes the frontier as what `draw` draws from.
  void freeze();
  [[nodiscard]] Outcomes draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
                              std::uint64_t n, unsigned n_threads, Stop& stop) const;

 private:
  struct Frozen {
    std::uint32_t task, state;
  };
  // Room for the samples of one batch; one per thread.
  struct Thread {
    std::vector<Frozen> drawn;
    std::vector<typename TaskCover<Value>::Draw> draws;          // per task, without deciders
    std::vector<typename CoverDecider<Value>::Workspace> works;  // per task, with deciders
    std::vector<std::size_t> group;
  };
  [[nodiscard]] Thread make_thread() const;
  void draw_batch(Random& random, Thread& thread, std::span<std::uint8_t> hits) const;
  void draw_group(std::uint32_t task, Random& random, Thread& thread,
                  std::span<std::uint8_t> hits) const;

  std::vector<std::unique_ptr<TaskCover<Value>>> covers_;
  std::vector<std::uint32_t> multiplicity_;
  std::vector<CoverDecider<Value>> deciders_;  // per task; none if the tasks are many
  std::vector<Frozen> frozen_;
  std::vector<std::uint64_t> cumulative_;  // per frozen state, up to 2^62
};

}  // namespace xcount

// Counting the cells where sums of residual trees exceed a threshold, by eliminating features.
//
// A state s is a list of constraints |offset + sum of residual trees| > threshold, of which any (or
// all) must hold, and a stretch [begin, end) of the axis of each feature that was narrowed on the
// way and is still mentioned. Its solution has
//   value(s) = |solutions(s)| * product of n_cells[f] over the features f that s does not mention,
// where solutions(s) are combinations of cells of the features that s mentions, each in what is
// left of its axis. Bounds decide what they can; otherwise the axis of one feature is cut in two at
// a guard that stands at the root of a residual (an axis without order: into all its cells), and
//   value(s) = sum over the parts p of value(s in p), scaled to what is left of dropped axes.
// The answer holds for a whole box of offsets (an interval for each constraint) and is kept in a
// memo. Proofs: docs/exact.md, "Why this is right", "The sum over parts", "The remembered box",
// "Parts".
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "xcount/exact/answer_room.hpp"
#include "xcount/exact/diagram_recorder.hpp"
#include "xcount/exact/frontier.hpp"
#include "xcount/exact/limits.hpp"
#include "xcount/exact/small_states.hpp"
#include "xcount/exact/solution_values.hpp"
#include "xcount/trees/gap.hpp"
#include "xcount/trees/residual_sweep.hpp"
#include "xcount/trees/residuals.hpp"
#include "xcount/trees/root_scores.hpp"

namespace xcount {

template <class Value>
struct ResidualSum {
  std::vector<ResidualId> residuals;
  Value offset{};
};

template <class Value, class Values>
class Eliminator {
 public:
  Eliminator(ResidualStore<Value>& store, Values& values, const Value& threshold)
      : store_(store),
        values_(values),
        gap_(threshold),
        small_(store, values, gap_),
        room_(small_, values) {}

  // Throws GiveUp when a limit is reached. `values` must have been reset for store.features().
  // With a part: what is solved there.
  SolutionId solve(const std::vector<ResidualSum<Value>>& constraints, Combine combine,
                   const EliminationLimits& limits, const Part& part = {},
                   DiagramRecorder* recorder = nullptr);
  // The whole part, solved or not, of what was last asked for.
  SolutionId whole_part();
  // Splits an open state and the parts of it that are larger than `least`; adds what solves to
  // `solved`, and leaves the smaller parts that are still undecided in `open`. Throws GiveUp.
  void deepen(const OpenState<Value>& state, Combine combine, const EliminationLimits& limits,
              Share least, Frontier<Value>& open, typename Values::Sum& solved);

  [[nodiscard]] std::uint64_t n_steps() const { return n_steps_; }
  [[nodiscard]] std::uint64_t n_looked_at() const { return n_looked_at_; }  // residuals split
  [[nodiscard]] std::uint64_t n_forgotten() const { return room_.n_forgotten(); }
  [[nodiscard]] std::size_t bytes() const { return room_.bytes() + level_bytes(); }
  void clear();
  void allow_memo(std::size_t bytes) { room_.allow(bytes); }  // for `deepen`
  // Forgets everything, and gives the memory back.
  void release() {
    room_.release();
    std::deque<Level>().swap(levels_);
  }

 private:
  struct Term : BoundedSum<Value> {
    std::uint32_t begin = 0, end = 0;  // residual ids of the constraint in Level::ids
    OffsetInterval<Value> holds;       // the offsets for which the answer holds
  };
  struct Level {
    std::vector<Term> terms;
    std::vector<std::uint32_t> live;  // the terms that are still undecided
    std::vector<ResidualId> ids;
    std::vector<Stretch> narrowed;  // what is left of axes, by feature, for mentioned features
    Share volume = 0;               // while deepening: of the state's box
    // While a feature is eliminated:
    ResidualSweep<Value> sweep;
    Share volume_per_cell = 0;     // of the feature's axis
    std::vector<Stretch> dropped;  // what is left of axes that the child no longer mentions
    std::vector<DiagramRecorder::Edge> edges;
    typename Values::Sum sum;

    [[nodiscard]] std::span<const ResidualId> ids_of(const Term& term) const {
      return {ids.data() + term.begin, term.end - term.begin};
    }
    [[nodiscard]] std::size_t bytes() const;
  };
  // The part of the feature's axis to split, and where to cut it (kEveryCell: everywhere).
  struct Split {
    Stretch stretch;
    Cell cut;
  };
  static constexpr SolutionId kUndecided = ~SolutionId{0};
  static constexpr ResidualId kSeparator = OpenState<Value>::kSeparator;
  static constexpr Cell kEveryCell = -1;

  Level& level(std::size_t depth);
  Level& emptied_root();
  void start(Combine combine, const EliminationLimits& limits);
  void set_root(const std::vector<ResidualSum<Value>>& constraints);
  // Sets `live` and the offsets of decided terms; kUndecided when terms are left.
  SolutionId decide(Level& state) const;
  SolutionId solve_undecided(std::size_t depth);
  void set_root(const OpenState<Value>& state);
  SolutionId deepen_undecided(std::size_t depth);
  [[nodiscard]] SolutionId end(std::size_t depth, SolutionId solution) const;
  SolutionId expand(std::size_t depth);
  void expand_part(std::size_t depth, const Stretch& part);

  [[nodiscard]] Split choose_split(const Level& state, bool alike);
  void split_residuals(Level& state, const Split& split);
  void prepare_child(const Level& state, Level& child) const;
  void fill_ids(Level& state, Level& child) const;
  void narrow(Level& state, Level& child, const Stretch& part, bool ended) const;
  void absorb_bounds(Level& state, const Level& child) const;

  // Whether the state is cheap enough to enumerate.
  [[nodiscard]] bool open_small(const Level& state, std::uint64_t max_paths);
  SolutionId enumerate(Level& state);

  std::uint64_t make_key(const Level& state);
  SolutionId recall(Level& state, std::uint32_t entry);
  void remember(const Level& state, std::uint32_t entry, SolutionId solution);
  void check_limits();
  [[nodiscard]] std::size_t level_bytes() const;
  [[nodiscard]] std::size_t needed_bytes() const;  // what no forgetting makes less
  [[nodiscard]] bool is_well_formed(const Level& state) const;

  ResidualStore<Value>& store_;
  Values& values_;
  Gap<Value> gap_;
  Combine combine_ = Combine::kAny;
  EliminationLimits limits_;
  Part part_;
  bool is_measuring_ = false;  // whole_part: everything counts
  DiagramRecorder* recorder_ = nullptr;
  Frontier<Value>* open_ = nullptr;     // while deepening: where small parts are left
  Share least_ = 0;                     // while deepening: how large parts are split
  std::vector<Stretch> outer_dropped_;  // while deepening: of the box, what is not mentioned

  SmallStates<Value, Values> small_;
  AnswerRoom<Value, Values> room_;
  std::deque<Level> levels_;
  RootScores scores_;
  std::vector<ResidualId> scored_ids_;
  std::vector<ResidualId> key_;  // the key being looked up
  std::uint64_t n_steps_ = 0;
  std::uint64_t n_looked_at_ = 0;
  std::uint64_t n_checks_ = 0;
  StackDepth stack_;
};

}  // namespace xcount

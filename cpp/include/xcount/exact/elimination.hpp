// Counting the cells where sums of residual trees exceed a threshold, by eliminating features.
//
// A state is a list of constraints |offset + sum of residual trees| > threshold, of which any (or
// all) must hold, and what is left of the axes of the features that were narrowed on the way.
// Bounds decide what they can; otherwise the axis of one feature is cut in two at a guard that
// stands at the root of a residual (an axis without order: into all its cells), and the counts of
// the parts are added up. The answer of a state holds for a whole box of offsets (an interval for
// each constraint) and is kept in a memo.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "xcount/exact/offset_memo.hpp"
#include "xcount/exact/small_states.hpp"
#include "xcount/exact/solution_values.hpp"
#include "xcount/trees/residuals.hpp"

namespace xcount {

// A state with at most this many combinations of leaves is enumerated. More hardly gains on the
// benchmark's hard subproblems (benchmarks/variants.py) and loses where the memo does well.
inline constexpr std::uint64_t kMaxPaths = 16384;
// How much dearer a split, with its look-ups in a large memo, is than a step of an enumeration.
inline constexpr std::uint64_t kStepsPerSplit = 40;

// Where a memo starts, with the values of its solutions. A larger one is slower unless it is used.
inline constexpr std::size_t kFirstMemoBytes = std::size_t{2} << 20;

enum class GiveUp { kSteps, kMemory, kCancelled };

struct EliminationLimits {
  // Nodes visited; a split counts as kStepsPerSplit of them.
  std::uint64_t max_steps = ~std::uint64_t{0};
  std::size_t max_bytes = ~std::size_t{0};
  const std::atomic<bool>* cancel = nullptr;
  // The answer is the same whatever these are:
  std::uint64_t max_paths = kMaxPaths;       // of a state that is enumerated
  std::size_t memo_bytes = kFirstMemoBytes;  // of a memo before it is emptied
};

// One of 2^n_bits disjoint parts of a state: bit d of the index says which halves of the split at
// depth d belong to it. What is decided before belongs to the part whose other bits are 0.
struct Part {
  std::uint32_t index = 0;
  std::uint32_t n_bits = 0;

  [[nodiscard]] bool has_half(std::size_t depth, std::size_t half) const {
    return depth >= n_bits || (index >> depth & 1) == (half & 1);
  }
  [[nodiscard]] bool has_end(std::size_t depth) const {
    return depth >= n_bits || index >> depth == 0;
  }
};
inline constexpr std::uint32_t kMaxPartBits = 16;

// Where solved states are kept as a decision diagram, when somebody wants one.
struct DiagramRecorder {
  struct Edge {
    Cell end;  // the part ends before this cell and starts where the previous one ends
    SolutionId child;
    double share;  // of the whole space: what this part contributes to its node
  };
  struct Node {
    LocalFeature feature;
    Cell begin;  // where the first part starts
    std::uint32_t first_edge, n_edges;
  };
  std::vector<Node> nodes;  // nodes[id - 2] belongs to solution id
  std::vector<Edge> edges;
};

template <class Value>
struct ResidualSum {
  std::vector<ResidualId> residuals;
  Value offset{};
};

template <class Value, class Values>
class Eliminator {
 public:
  Eliminator(ResidualStore<Value>& store, Values& values, Value threshold)
      : store_(store), values_(values), threshold_(threshold), small_(store, values, threshold) {}

  // Throws GiveUp when a limit is reached. `values` must have been reset for store.features().
  // With a part: what is solved there.
  SolutionId solve(const std::vector<ResidualSum<Value>>& constraints, Combine combine,
                   const EliminationLimits& limits, const Part& part = {},
                   DiagramRecorder* recorder = nullptr);
  // The whole part, solved or not, of what was last asked for.
  SolutionId whole_part();

  [[nodiscard]] std::uint64_t n_steps() const { return n_steps_; }
  [[nodiscard]] std::uint64_t n_forgotten() const { return n_forgotten_; }
  [[nodiscard]] std::size_t bytes() const;
  void clear();

 private:
  struct Term {
    std::uint32_t begin = 0, end = 0;  // residual ids of the constraint in Level::ids
    Value offset{}, min{}, max{};      // min, max: of the sum of the residuals, without the offset
    Value low{}, high{};               // the answer holds for low <= offset <= high
  };
  // A residual that mentions the eliminated feature, and where the sweep over its cells stands.
  struct Moving {
    std::uint32_t term;
    std::uint32_t at, end;  // in Level::runs
  };
  struct Level {
    std::vector<Term> terms;
    std::vector<std::uint32_t> live;  // the terms that are still undecided
    std::vector<ResidualId> ids;
    std::vector<Stretch> narrowed;  // what is left of axes, by feature, for mentioned features
    // While a feature is eliminated:
    std::vector<ResidualId> fixed;  // residuals that do not mention it, term after term
    std::vector<std::uint32_t> fixed_ends;
    std::vector<Value> fixed_min, fixed_max;
    std::vector<Run> runs;
    std::vector<Moving> moving;
    std::vector<ResidualId> moved;
    std::vector<Stretch> dropped;  // what is left of axes that the child no longer mentions
    std::vector<DiagramRecorder::Edge> edges;
    typename Values::Sum sum;
  };
  static constexpr SolutionId kUndecided = ~SolutionId{0};
  static constexpr ResidualId kSeparator = ~ResidualId{0};

  Level& level(std::size_t depth);
  // Sets `live` and the bounds of decided terms; kUndecided when terms are left.
  SolutionId decide(Level& state) const;
  SolutionId solve_undecided(std::size_t depth);
  [[nodiscard]] SolutionId end(std::size_t depth, SolutionId solution) const;
  SolutionId expand(std::size_t depth);
  // The part of the feature's axis to split, and where to cut it (kEveryCell: everywhere).
  struct Split {
    Stretch stretch;
    Cell cut;
  };
  static constexpr Cell kEveryCell = -1;

  [[nodiscard]] Split choose_split(const Level& state, bool alike);
  void split_residuals(Level& state, const Split& split);
  void prepare_child(const Level& state, Level& child) const;
  void fill_ids(Level& state, Level& child) const;
  void narrow(Level& state, Level& child, const Stretch& part, bool ended) const;
  void absorb_bounds(Level& state, const Level& child) const;
  [[nodiscard]] static Cell next_part(const Level& state, Cell end);
  static void advance(Level& state, Cell cell);

  [[nodiscard]] bool open_small(const Level& state);  // whether it is cheap enough to enumerate
  SolutionId enumerate(Level& state);

  std::uint64_t make_key(const Level& state);
  SolutionId recall(Level& state, std::uint32_t entry);
  void remember(const Level& state, std::uint32_t entry, SolutionId solution);
  void record(const Stretch& stretch, Level& state);
  void check_limits();
  [[nodiscard]] bool has_room() const;
  [[nodiscard]] bool fits() const;
  // Lets the memo grow, or empties it in the middle of a solution; false where that does not help.
  [[nodiscard]] bool make_room();
  [[nodiscard]] std::size_t used() const;
  void forget();
  [[nodiscard]] std::size_t needed_bytes() const;  // what no forgetting makes less

  ResidualStore<Value>& store_;
  Values& values_;
  Value threshold_;
  Combine combine_ = Combine::kAny;
  EliminationLimits limits_;
  Part part_;
  bool is_measuring_ = false;  // whole_part: everything counts
  DiagramRecorder* recorder_ = nullptr;

  SmallStates<Value, Values> small_;
  std::deque<Level> levels_;
  struct Score {
    double total = 0.0, widest = 0.0;
    Cell cut = 0;
  };
  std::vector<Score> scores_;
  std::vector<LocalFeature> scored_;
  std::vector<ResidualId> scored_ids_;
  std::vector<ResidualId> key_;  // the key being looked up
  OffsetMemo<Value> memo_;
  std::size_t memo_bytes_ = 0;  // what the memo may hold at present, with the values of solutions
  std::uint64_t n_forgotten_ = 0;  // how often it was emptied
  std::uint64_t n_steps_ = 0;
  std::uint64_t n_checks_ = 0;
  std::uintptr_t stack_base_ = 0;
};

}  // namespace xcount

// Best-first search for the largest change between two regions that differ in sensitive features.
//
// The open boxes (worst/pair_box.hpp) and the best pair found so far keep the invariant
//   low() <= largest change <= high(),   high() = max(low(), largest score of an open box):
// a box is dropped only if its score, an upper bound of all of its pairs, is at most low(). The box
// with the largest score is split next (worst/box_splitter.hpp): docs/largest-change.md, "How it is
// found".
//
// Boxes are evaluated in batches of a fixed size against the same low(), and their outcomes are
// taken in order: all numbers and pairs are the same for any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "xcount/support/stopping.hpp"
#include "xcount/worst/box_splitter.hpp"
#include "xcount/worst/climb.hpp"
#include "xcount/worst/objective.hpp"
#include "xcount/worst/pair_box.hpp"
#include "xcount/worst/pair_trees.hpp"
#include "xcount/worst/reached_leaves.hpp"

namespace xcount {

template <class Value, class Objective>
class PairSearch {
 public:
  using Score = typename Objective::Score;
  using Sums = typename Objective::Sums;

  static constexpr std::size_t kBatch = 16;

  // The two regions of a pair, as cells of all features; features that no tree with a sensitive
  // test asks about have cell 0.
  struct Pair {
    std::vector<Cell> start, target;
  };

  // roots: for each box to search, the runs of the sensitive features, start and target in turn.
  // floor: changes up to it do not count.
  PairSearch(const Forest<Value>& forest, std::vector<Feature> sensitive,
             std::optional<std::int64_t> distance, const Objective& objective,
             const std::vector<PairBox>& roots, const Value& floor, std::uint64_t seed);

  // Evaluates boxes until so many are done, memory or time are over, or none is open. With
  // `until_found`, also ends when a pair above the floor is found.
  void advance(std::uint64_t max_boxes, unsigned n_threads, std::size_t max_bytes, bool until_found,
               Stop& stop);

  [[nodiscard]] bool is_done() const { return open_.empty(); }
  [[nodiscard]] bool is_full() const { return is_full_; }
  [[nodiscard]] bool has_pair() const { return pair_.has_value(); }
  [[nodiscard]] const std::optional<Pair>& pair() const { return pair_; }
  // V(target) - V(start) of the best pair; the floor if there is none.
  [[nodiscard]] const Value& difference() const { return bar_.difference; }
  // Bounds of the largest change; of a margin in units of 2^shift, low rounded down.
  [[nodiscard]] Score low() const { return bar_.score; }
  [[nodiscard]] Score high() const;
  [[nodiscard]] int shift() const { return trees_.shift(); }
  [[nodiscard]] std::uint64_t n_boxes() const { return n_boxes_; }
  [[nodiscard]] std::size_t n_open() const { return open_.size(); }
  [[nodiscard]] std::size_t bytes() const;

 private:
  using Leaves = ReachedLeaves<Value, Objective::kSums>;

  struct Node {
    Score score;
    std::uint64_t number;
    std::size_t root;
    PairBox box;
    std::shared_ptr<const Leaves> leaves;  // of the box, or of one around it

    // The order of the heap: the largest score first, the older box among equals.
    friend bool operator<(const Node& a, const Node& b) {
      return a.score != b.score ? a.score < b.score : a.number > b.number;
    }
  };
  using Child = typename SplitBox<Value, Objective>::Child;
  struct Outcome {
    std::vector<Child> children;
    std::shared_ptr<const Leaves> leaves;
    std::optional<PairPoint> point;  // a pair to evaluate
  };
  class Evaluator;

  void start(const std::vector<PairBox>& roots);
  void climb_from_roots();
  void try_point(const PairPoint& point);
  [[nodiscard]] Pair pair_of(const PairPoint& point) const;
  void push(Score score, std::size_t root, PairBox box, std::shared_ptr<const Leaves> leaves);
  void prune();

  const Forest<Value>& forest_;
  PairTrees<Value> trees_;
  PairReach reach_;
  Objective objective_;
  std::vector<PairBox> roots_;
  std::uint64_t seed_;
  std::vector<Node> open_;  // a heap
  std::vector<std::unique_ptr<Evaluator>> evaluators_;
  std::optional<Pair> pair_;
  Bar<Value, Objective> bar_;  // the best pair's change, or the floor
  std::uint64_t n_boxes_ = 0, next_number_ = 0;
  LeafKeeper<Leaves> keeper_;
  bool is_full_ = false;

 public:
  ~PairSearch();
  PairSearch(const PairSearch&) = delete;
  PairSearch& operator=(const PairSearch&) = delete;
};

extern template class PairSearch<std::int64_t, MarginObjective>;
extern template class PairSearch<Int128, MarginObjective>;
extern template class PairSearch<Int2304, MarginObjective>;
extern template class PairSearch<std::int64_t, ProbabilityObjective>;
extern template class PairSearch<Int128, ProbabilityObjective>;
extern template class PairSearch<Int2304, ProbabilityObjective>;

}  // namespace xcount

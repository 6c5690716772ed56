// Boxes of pairs of regions that hold all pairs whose change is more than a threshold.
//
// Invariant: every pair with V(target) - V(start) > threshold, within the distance, lies in an open
// box or in a settled one, all of whose pairs change by more. So the regions that count (the
// starts, the targets, or both: as the direction says) lie in the boxes' projections:
//   sensitive masks at x <= sum over the boxes that hold x of their masks.
// The largest open boxes are split first (worst/box_splitter.hpp), in batches of a fixed size,
// whose outcomes are taken in order: the cover is the same for any number of threads.
// docs/approximate.md, "What is sampled", "Boxes of pairs".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "xcount/support/stopping.hpp"
#include "xcount/trees/gap.hpp"
#include "xcount/worst/box_splitter.hpp"
#include "xcount/worst/objective.hpp"
#include "xcount/worst/pair_box.hpp"
#include "xcount/worst/pair_trees.hpp"
#include "xcount/worst/reached_leaves.hpp"

namespace xcount {

template <class Value>
class PairCover {
 public:
  static constexpr std::size_t kBatch = 16;

  // Throws std::length_error if the trees are too large.
  PairCover(const Forest<Value>& forest, std::vector<Feature> sensitive,
            std::optional<std::int64_t> distance, const Value& threshold, Direction direction);
  ~PairCover();
  PairCover(const PairCover&) = delete;
  PairCover& operator=(const PairCover&) = delete;

  // Splits boxes until so much work is done in all, nothing is open, or memory or time are over.
  void refine(std::uint64_t work, unsigned n_threads, std::size_t max_bytes, Stop& stop);

  [[nodiscard]] std::size_t n_open() const { return open_.size(); }
  // Whether the last refinement ended because there was no more room.
  [[nodiscard]] bool is_full() const { return is_full_; }
  // What was looked at so far: a measure of time that is the same on every machine.
  [[nodiscard]] std::uint64_t work() const { return work_; }
  [[nodiscard]] std::size_t bytes() const;

  // The boxes' projections: the axes of the common features, the first and the last cell of each
  // box on each of them, and how many masks count in it.
  struct Axis {
    Feature feature = 0;
    Cell n_cells = 1;
  };
  struct Projection {
    std::vector<Axis> axes;
    std::vector<Cell> runs;
    std::vector<std::uint32_t> n_masks;
  };
  [[nodiscard]] Projection projection() const;

 private:
  using Objective = MarginObjective;
  using Leaves = ReachedLeaves<Value, Objective::kSums>;

  struct Node {
    long double volume;
    std::uint64_t number;
    Bound score;
    PairBox box;
    std::shared_ptr<const Leaves> leaves;  // of the box, or of one around it

    // The order of the heap: the largest volume first, the older box among equals.
    friend bool operator<(const Node& a, const Node& b) {
      return a.volume != b.volume ? a.volume < b.volume : a.number > b.number;
    }
  };

  void push(Bound score, PairBox box, std::shared_ptr<const Leaves> leaves);
  void settle(PairBox box);
  void take(Node& node, SplitBox<Value, Objective>& found);
  [[nodiscard]] long double volume(const PairBox& box) const;
  [[nodiscard]] std::uint64_t n_masks(const PairBox& box) const;

  PairTrees<Value> trees_;
  PairReach reach_;
  Objective objective_;
  Direction direction_;
  Bar<Value, Objective> bar_;
  std::vector<Node> open_;  // a heap
  std::vector<PairBox> settled_;
  std::vector<std::unique_ptr<BoxSplitter<Value, Objective>>> splitters_;  // per thread
  LeafKeeper<Leaves> keeper_;
  std::uint64_t work_ = 0, next_number_ = 0, n_masks_ = 0;
  bool is_full_ = false;
};

extern template class PairCover<std::int64_t>;
extern template class PairCover<Int128>;
extern template class PairCover<Int2304>;

}  // namespace xcount

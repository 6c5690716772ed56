// What is split off a box holds no pair beyond the bar, and scores are upper bounds.
#include "xcount/worst/box_splitter.hpp"

#include <random>

#include "check.hpp"
#include "random_world.hpp"

using namespace xcount;
using xcount::test::failures;
using xcount::test::random_world;
using xcount::test::worlds;

namespace {

template <class Value>
struct Search {
  using Splitter = BoxSplitter<Value, MarginObjective>;

  explicit Search(const Forest<Value>& forest)
      : trees(forest, {0, 3}, false),
        reach(forest, trees.sensitive(), trees.start_of(0), std::nullopt),
        splitter(trees, reach, objective) {}

  // Calls visit(pair, change) for all pairs of a box.
  template <class Visit>
  void for_each_pair(const PairBox& box, const Visit& visit) const {
    PairPoint point;
    for (const CellRun& run : box) point.push_back(run.low);
    while (true) {
      visit(point, change(point));
      std::size_t v = 0;
      while (v < box.size() && point[v] == box[v].high) point[v] = box[v].low, ++v;
      if (v == box.size()) return;
      ++point[v];
    }
  }
  [[nodiscard]] Value change(const PairPoint& point) const {
    std::vector<Cell> start(4), target(4);
    for (std::size_t v = 0; v < point.size(); ++v) {
      const PairVariable& own = trees.variables()[v];
      const auto feature = static_cast<std::size_t>(own.feature);
      if (own.role != Role::kTarget) start[feature] = point[v];
      if (own.role != Role::kStart) target[feature] = point[v];
    }
    return trees.forest().sum(target) - trees.forest().sum(start);
  }

  PairTrees<Value> trees;
  PairReach reach;
  MarginObjective objective;
  Splitter splitter;
};

bool holds(const PairBox& box, const PairPoint& point) {
  for (std::size_t v = 0; v < box.size(); ++v) {
    if (!box[v].has(point[v])) return false;
  }
  return true;
}

template <class Value>
void check_split(Search<Value>& search, const PairBox& box, Bound most, const Value& threshold,
                 const ReachedLeaves<Value, 1>& around, int depth) {
  const Bar<Value, MarginObjective> bar{search.trees.rounded_down(threshold), threshold};
  const auto split = search.splitter.split(box, most, around, bar);
  const auto again = search.splitter.split(box, most, around, bar);
  CHECK(split.work > 0 && split.work == again.work);
  search.for_each_pair(box, [&](const PairPoint& point, const Value& change) {
    const bool beyond = threshold < change;
    if (split.fate == Fate::kConstant || split.is_above) CHECK(beyond);
    if (split.fate == Fate::kBelow) CHECK(!beyond);
    if (split.fate != Fate::kOpen || !beyond) return;
    int n_holders = 0;
    for (const auto& child : split.children) {
      if (!holds(child.box, point)) continue;
      ++n_holders;
      CHECK(search.trees.rounded_down(change) <= child.score);
    }
    CHECK(n_holders == 1);
  });
  if (depth == 0) return;
  for (const auto& child : split.children) {
    check_split(search, child.box, child.score, threshold, *split.leaves, depth - 1);
  }
}

template <class Value>
void no_pair_beyond_the_bar_is_lost() {
  std::mt19937 random(23);
  for (int i = 0; i < worlds(4); ++i) {
    const auto forest = random_world(random, 4, 3).build<Value>();
    Search<Value> search(forest);
    const auto leaves = ReachedLeaves<Value, 1>::all(search.trees);
    check_split<Value>(search, leaves->box, Bound{1} << 40, Value(4), *leaves, 4);
  }
}

}  // namespace

int main() {
  no_pair_beyond_the_bar_is_lost<std::int64_t>();
  no_pair_beyond_the_bar_is_lost<Int128>();
  return failures;
}

// Residual trees against evaluating them cell by cell.
#include "xcount/trees/residuals.hpp"

#include <algorithm>
#include <map>

#include "check.hpp"
#include "residual_trees.hpp"

using namespace xcount;
using namespace xcount::test;

namespace {

using Store = ResidualStore<std::int64_t>;
const std::vector<Feature> kAll{0, 1, 2, kMissing, kCategory};

void equal_trees_are_one_node() {
  const Forest<std::int64_t> forest = axes_alone();
  Store store(forest);
  const ResidualId a = store.leaf(1);
  const ResidualId b = store.leaf(-1);
  CHECK(a == store.leaf(1) && a != b);
  const ResidualId node = store.node({0, 1, false}, a, b);
  CHECK(node == store.node({0, 1, false}, a, b));
  CHECK(node != store.node({0, 1, false}, b, a) && node != store.node({0, 2, false}, a, b));
  CHECK(store.node({kMissing, 1, false}, a, b) != store.node({kMissing, 1, true}, a, b));
  CHECK(store.node({1, 1, false}, a, a) == a);  // a test that decides nothing is no node
  store.clear();
  CHECK(store.size() == 0 && store.features().empty());
}

// Bounds are attained or not, but never passed; and names of features are neither lost nor made up.
void nodes_know_what_stands_below_them() {
  const Forest<std::int64_t> forest = axes_alone();
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    Store store(forest);
    const ResidualId id = random_tree(store, random, 1 + i % 4, kAll);
    std::int64_t least = 100;
    std::int64_t most = -100;
    std::uint64_t support = 0;
    std::uint32_t n_leaves = 0;
    std::vector<ResidualId> open{id};
    while (!open.empty()) {
      const auto& node = store[open.back()];
      const bool is_leaf = store.is_leaf(open.back());
      CHECK(is_leaf || (node.low != node.high && std::max(node.low, node.high) < open.back()));
      open.pop_back();
      if (is_leaf) {
        least = std::min(least, node.min);
        most = std::max(most, node.min);
        ++n_leaves;
        continue;
      }
      support |= std::uint64_t{1} << node.feature;
      CHECK(store.features()[node.feature] == node.test.feature);
      open.push_back(node.low);
      open.push_back(node.high);
    }
    CHECK(store[id].min == least && store[id].max == most);
    CHECK(store[id].support == support && store[id].n_leaves == n_leaves);
  }
}

// In every cell of a feature, what the residual becomes has the residual's own values, and asks the
// feature no more.
void cofactors_are_the_residual_in_each_cell() {
  const Forest<std::int64_t> forest = axes_alone();
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i) {
    Store store(forest);
    const ResidualId id = random_tree(store, random, 1 + i % 4, kAll);
    for (LocalFeature f = 0; f < store.features().size(); ++f) {
      const std::span<const Run> found = store.cofactors(id, f);
      const std::vector<Run> runs(found.begin(), found.end());
      CHECK(runs[0].start == 0);
      for (std::size_t r = 0; r < runs.size(); ++r) {
        CHECK(!store.mentions(runs[r].node, f));
        CHECK(r == 0 || (runs[r - 1].start < runs[r].start && runs[r - 1].node != runs[r].node));
      }
      const auto feature = static_cast<std::size_t>(store.features()[f]);
      for_each_region(forest, [&](std::span<const Cell> region) {
        const auto run = std::find_if(runs.rbegin(), runs.rend(),
                                      [&](const Run& r) { return r.start <= region[feature]; });
        CHECK(value_at(store, run->node, region) == value_at(store, id, region));
      });
    }
  }
}

// On the side that is kept nothing changes, and no test asks about the other.
void restricted_residuals_agree_where_they_are_kept() {
  const Forest<std::int64_t> forest = axes_alone();
  std::mt19937 random(4);
  for (int i = 0; i < 100; ++i) {
    Store store(forest);
    const ResidualId id = random_tree(store, random, 1 + i % 4, {0, 1, 2});
    for (LocalFeature f = 0; f < store.features().size(); ++f) {
      const auto feature = static_cast<std::size_t>(store.features()[f]);
      for (Cell cut = 1; cut < forest.axes[feature].n_cells; ++cut) {
        const ResidualId halves[2] = {store.restrict(id, f, cut, false),
                                      store.restrict(id, f, cut, true)};
        for_each_region(forest, [&](std::span<const Cell> region) {
          const ResidualId half = halves[region[feature] < cut ? 1 : 0];
          CHECK(value_at(store, half, region) == value_at(store, id, region));
        });
        CHECK(store.restrict(halves[1], f, cut, true) == halves[1]);
        CHECK(store.restrict(halves[0], f, cut, false) == halves[0]);
      }
    }
  }
}

// A cache of restrictions of an earlier subproblem must not answer for a later one.
void a_cleared_store_remembers_nothing() {
  const Forest<std::int64_t> forest = axes_alone();
  Store store(forest);
  for (const bool first : {true, false}) {
    store.clear();
    const ResidualId low = store.leaf(first ? 1 : 5);
    const ResidualId high = store.leaf(first ? 2 : 6);
    const ResidualId inner = store.node({1, first ? 1 : 2, false}, low, high);
    const ResidualId id = store.node({0, 1, false}, inner, low);
    const LocalFeature f = store[inner].feature;
    for_each_region(forest, [&](std::span<const Cell> region) {
      const ResidualId half = store.restrict(id, f, 2, region[1] < 2);
      CHECK(value_at(store, half, region) == value_at(store, id, region));
    });
  }
}

}  // namespace

int main() {
  equal_trees_are_one_node();
  nodes_know_what_stands_below_them();
  cofactors_are_the_residual_in_each_cell();
  restricted_residuals_agree_where_they_are_kept();
  a_cleared_store_remembers_nothing();
  return failures;
}

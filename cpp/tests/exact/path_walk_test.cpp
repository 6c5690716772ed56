// Walks through all combinations of leaves, against trying every region.
#include "xcount/exact/path_walk.hpp"

#include "small_world.hpp"

using namespace xcount;
using namespace xcount::test;

namespace {

void walks_count_every_region_and_know_for_which_offsets() {
  const Forest<std::int64_t> forest = axes_alone();
  std::mt19937 random(9);
  for (int i = 0; i < 150; ++i) {
    ResidualStore<std::int64_t> store(forest);
    const SmallState state = random_state(store, random);
    CountValues values;
    values.reset(forest, store.features());
    PathWalk<std::int64_t, CountValues> walk(store, values, Gap<std::int64_t>(state.threshold));
    walk.open();
    for (std::uint32_t t = 0; t < state.terms.size(); ++t) {
      walk.add_term(state.offsets[t]);
      for (const ResidualId id : state.terms[t]) walk.add_residual(id, t);
    }
    CHECK(walk.narrow(state.narrowed));
    const SolutionId solution = walk.run(state.combine);
    const std::uint64_t expected = state.count(store, state.offsets);
    CHECK(regions_of(store, values, solution) == expected);
    CHECK(walk.n_steps() > 0);
    check_intervals(store, state, walk.terms(), expected);
  }
}

// One constraint: trees over {0, 1} are walked, a tree over {2} comes as the distribution of its
// sum.
void tails_count_as_walks_do() {
  const Forest<std::int64_t> forest = axes_alone();
  std::mt19937 random(10);
  for (int i = 0; i < 150; ++i) {
    ResidualStore<std::int64_t> store(forest);
    SmallState state;
    const auto walked = random_trees(store, random, 2, 2, {0, 1});
    const auto tail = random_trees(store, random, 1, 1, {2});
    state.terms = {walked};
    state.terms[0].insert(state.terms[0].end(), tail.begin(), tail.end());
    state.offsets = {static_cast<std::int64_t>(random() % 9) - 4};
    state.narrowed = random_narrowing(store, state.terms[0], random);
    CountValues values;
    values.reset(forest, store.features());
    GroupSums<std::int64_t, CountValues> groups(store, values);
    groups.open();
    groups.add(tail[0], 0);
    const std::vector<const ResidualGroup*> all{&groups.groups()[0]};
    PathWalk<std::int64_t, CountValues> walk(store, values, Gap<std::int64_t>(state.threshold));
    walk.open();
    walk.add_term(state.offsets[0]);
    walk.add_tail(0, groups[groups.find(all, state.narrowed)]);
    for (const ResidualId id : walked) walk.add_residual(id, 0);
    CHECK(walk.narrow(state.narrowed));
    const std::uint64_t expected = state.count(store, state.offsets);
    CHECK(regions_of(store, values, walk.run(Combine::kAny)) == expected);
    check_intervals(store, state, walk.terms(), expected);
  }
}

}  // namespace

int main() {
  walks_count_every_region_and_know_for_which_offsets();
  tails_count_as_walks_do();
  return failures;
}

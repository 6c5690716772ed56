// Small states, with and without tails, against trying every region.
#include "xcount/exact/small_states.hpp"

#include "small_world.hpp"

using namespace xcount;
using namespace xcount::test;

namespace {

void small_states_count_every_region() {
  const Forest<std::int64_t> forest = axes_alone();
  std::mt19937 random(11);
  int n_solved = 0;
  for (int i = 0; i < 300; ++i) {
    ResidualStore<std::int64_t> store(forest);
    const SmallState state = random_state(store, random);
    CountValues values;
    values.reset(forest, store.features());
    SmallStates<std::int64_t, CountValues> small(store, values, Gap<std::int64_t>(state.threshold));
    small.open();
    for (std::size_t t = 0; t < state.terms.size(); ++t) {
      small.add_term(state.offsets[t], state.terms[t]);
    }
    // Few paths: only what is cheap is walked, and tails make more of it cheap.
    if (!small.prepare(state.narrowed, i % 2 == 0 ? 16 : 4096)) continue;
    ++n_solved;
    const std::uint64_t expected = state.count(store, state.offsets);
    CHECK(regions_of(store, values, small.run(state.combine)) == expected);
    check_intervals(store, state, small.terms(), expected);
  }
  CHECK(n_solved > 150 && n_solved < 300);
}

void states_without_order_are_left_to_splitting() {
  const Forest<std::int64_t> forest = axes_alone();
  ResidualStore<std::int64_t> store(forest);
  const ResidualId a = store.leaf(0);
  const std::vector<ResidualId> ids{store.node({kMissing, 1, true}, a, store.leaf(5))};
  CountValues values;
  values.reset(forest, store.features());
  SmallStates<std::int64_t, CountValues> small(store, values, Gap<std::int64_t>(2));
  small.open();
  small.add_term(0, ids);
  CHECK(!small.prepare({}, 4096));
}

}  // namespace

int main() {
  small_states_count_every_region();
  states_without_order_are_left_to_splitting();
  return failures;
}

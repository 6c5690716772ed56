// A state of a few constraints on ordered features, solved by trying every region.
#pragma once

#include "check.hpp"
#include "residual_trees.hpp"
#include "xcount/exact/path_walk.hpp"

namespace xcount::test {

struct SmallState {
  std::vector<std::vector<ResidualId>> terms;
  std::vector<std::int64_t> offsets;
  std::vector<Stretch> narrowed;
  std::int64_t threshold = 2;
  Combine combine = Combine::kAny;

  // How many regions solve it, with these offsets.
  [[nodiscard]] std::uint64_t count(const ResidualStore<std::int64_t>& store,
                                    const std::vector<std::int64_t>& at) const {
    std::uint64_t n = 0;
    for_each_region(store.forest(), [&](std::span<const Cell> region) {
      if (!is_within(store, narrowed, region)) return;
      std::size_t n_held = 0;
      for (std::size_t t = 0; t < terms.size(); ++t) {
        n_held += std::abs(at[t] + sum_at(store, terms[t], region)) > threshold ? 1 : 0;
      }
      if (combine == Combine::kAny ? n_held > 0 : n_held == terms.size()) ++n;
    });
    return n;
  }
};

inline SmallState random_state(ResidualStore<std::int64_t>& store, std::mt19937& random) {
  SmallState state;
  state.terms.resize(1 + random() % 3);
  std::vector<ResidualId> all;
  for (auto& ids : state.terms) {
    const Feature first = static_cast<Feature>(random() % 3);
    ids = random_trees(store, random, 1 + random() % 2, 2, {first, (first + 1) % 3});
    const auto more =
        random_trees(store, random, random() % 2, 1, {static_cast<Feature>(random() % 3)});
    ids.insert(ids.end(), more.begin(), more.end());
    std::sort(ids.begin(), ids.end());
    all.insert(all.end(), ids.begin(), ids.end());
    state.offsets.push_back(static_cast<std::int64_t>(random() % 9) - 4);
  }
  state.narrowed = random_narrowing(store, all, random);
  state.threshold = static_cast<std::int64_t>(random() % 5);
  state.combine = random() % 2 == 0 ? Combine::kAny : Combine::kAll;
  return state;
}

// The regions that a solution stands for: its value, times the cells of features that the store
// does not know.
inline std::uint64_t regions_of(const ResidualStore<std::int64_t>& store, const CountValues& values,
                                SolutionId id) {
  std::uint64_t count = values.value(id)[0];
  const auto& known = store.features();
  for (std::size_t f = 0; f < store.forest().axes.size(); ++f) {
    if (std::find(known.begin(), known.end(), static_cast<Feature>(f)) != known.end()) continue;
    count *= static_cast<std::uint64_t>(store.forest().axes[f].n_cells);
  }
  return count;
}

// The answer holds wherever its intervals of offsets say so: tried one constraint at a time, at
// both ends and in the middle.
template <class Terms>
void check_intervals(const ResidualStore<std::int64_t>& store, const SmallState& state,
                     const Terms& found, std::uint64_t count) {
  for (std::size_t t = 0; t < state.terms.size(); ++t) {
    CHECK(found[t].holds.contains(state.offsets[t]));
    for (std::int64_t offset = state.offsets[t] - 12; offset <= state.offsets[t] + 12; ++offset) {
      if (!found[t].holds.contains(offset)) continue;
      std::vector<std::int64_t> moved = state.offsets;
      moved[t] = offset;
      CHECK(state.count(store, moved) == count);
    }
  }
}

}  // namespace xcount::test

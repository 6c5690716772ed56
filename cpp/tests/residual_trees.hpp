// Residual trees made at random, and what they are worth cell by cell: the slow, obvious way.
#pragma once

#include <functional>
#include <random>
#include <span>
#include <vector>

#include "random_world.hpp"
#include "xcount/exact/solution_values.hpp"
#include "xcount/trees/residuals.hpp"

namespace xcount::test {

// Features 0, 1 and 2 are ordered; 3 is ordered but for a missing cell, its last; 4 is a category.
inline constexpr Feature kMissing = 3;
inline constexpr Feature kCategory = 4;

// A forest of axes alone, with some sets of the category's cells to test.
inline Forest<std::int64_t> axes_alone() {
  World world({3, 4, 2, 4, 4}, {-1, -1, -1, 3, -1});
  world.ordered[kCategory] = 0;
  for (const std::uint8_t bits : {0b0101, 0b0010, 0b1110}) {
    for (int cell = 0; cell < 4; ++cell) {
      world.membership.push_back(static_cast<std::uint8_t>(bits >> cell & 1));
    }
  }
  return world.build<std::int64_t>();
}

inline Test random_test(const Topology& forest, std::mt19937& random, Feature feature) {
  if (feature == kCategory)
    return {feature, -1 - 4 * static_cast<std::int32_t>(random() % 3), false};
  const Axis& axis = forest.axis(feature);
  const Cell n_ordered = axis.missing_cell >= 0 ? axis.missing_cell : axis.n_cells;
  const auto cut = static_cast<std::int32_t>(1 + random() % static_cast<unsigned>(n_ordered - 1));
  return {feature, cut, axis.missing_cell >= 0 && random() % 2 == 0};
}

// A tree over the given features, leaves from -range to range.
inline ResidualId random_tree(ResidualStore<std::int64_t>& store, std::mt19937& random, int depth,
                              const std::vector<Feature>& features, int range = 3) {
  if (depth == 0) {
    return store.leaf(
        static_cast<std::int64_t>(random() % (2U * static_cast<unsigned>(range) + 1)) - range);
  }
  const Test test = random_test(store.forest(), random, features[random() % features.size()]);
  const ResidualId low = random_tree(store, random, depth - 1, features, range);
  const ResidualId high = random_tree(store, random, depth - 1, features, range);
  return store.node(test, low, high);
}

// Trees that are no leaves, ascending.
inline std::vector<ResidualId> random_trees(ResidualStore<std::int64_t>& store,
                                            std::mt19937& random, std::size_t n, int depth,
                                            const std::vector<Feature>& features, int range = 3) {
  std::vector<ResidualId> ids;
  while (ids.size() < n) {
    const ResidualId id = random_tree(store, random, depth, features, range);
    if (!store.is_leaf(id)) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

// The leaf at a region, a cell for each of the forest's features.
inline std::int64_t value_at(const ResidualStore<std::int64_t>& store, ResidualId id,
                             std::span<const Cell> region) {
  while (!store.is_leaf(id)) {
    const auto& node = store[id];
    const Cell cell = region[static_cast<std::size_t>(node.test.feature)];
    id = store.forest().goes_left(node.test, cell) ? node.low : node.high;
  }
  return store[id].min;
}

inline std::int64_t sum_at(const ResidualStore<std::int64_t>& store,
                           std::span<const ResidualId> ids, std::span<const Cell> region) {
  std::int64_t sum = 0;
  for (const ResidualId id : ids) sum += value_at(store, id, region);
  return sum;
}

inline void for_each_region(const Topology& forest,
                            const std::function<void(std::span<const Cell>)>& visit) {
  std::vector<Cell> region(forest.axes.size(), 0);
  while (true) {
    visit(region);
    std::size_t f = 0;
    while (f < region.size() && ++region[f] == forest.axes[f].n_cells) region[f++] = 0;
    if (f == region.size()) return;
  }
}

// Whether the region is within what is left of the axes.
inline bool is_within(const ResidualStore<std::int64_t>& store, std::span<const Stretch> narrowed,
                      std::span<const Cell> region) {
  return std::all_of(narrowed.begin(), narrowed.end(), [&](const Stretch& stretch) {
    const Cell cell = region[static_cast<std::size_t>(store.features()[stretch.feature])];
    return stretch.begin <= cell && cell < stretch.end;
  });
}

// Stretches, by feature, of some of the ordered features that the residuals mention.
inline std::vector<Stretch> random_narrowing(const ResidualStore<std::int64_t>& store,
                                             std::span<const ResidualId> ids,
                                             std::mt19937& random) {
  std::vector<Stretch> narrowed;
  for (LocalFeature f = 0; f < store.features().size(); ++f) {
    const bool mentioned =
        std::any_of(ids.begin(), ids.end(), [&](ResidualId id) { return store.mentions(id, f); });
    if (!mentioned || !store.has_order(f) || random() % 2 == 0) continue;
    const Cell n_cells = store.forest().axis(store.features()[f]).n_cells;
    const auto begin = static_cast<Cell>(random() % static_cast<unsigned>(n_cells));
    const auto width = static_cast<Cell>(1 + random() % static_cast<unsigned>(n_cells - begin));
    narrowed.push_back({f, begin, begin + width});
  }
  return narrowed;
}

}  // namespace xcount::test

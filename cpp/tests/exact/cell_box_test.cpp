// Boxes of cells: the ends of a walk are disjoint and together all that is left of the axes.
#include "xcount/exact/cell_box.hpp"

#include <functional>

#include "check.hpp"
#include "residual_trees.hpp"

using namespace xcount;
using namespace xcount::test;

namespace {

using Store = ResidualStore<std::int64_t>;
using Box = CellBox<std::int64_t, CountValues>;

// The volume of each leaf that a walk through one tree ends at, against counting regions.
void a_walk_divides_the_volume_among_its_ends() {
  const Forest<std::int64_t> forest = axes_alone();
  std::mt19937 random(6);
  for (int i = 0; i < 200; ++i) {
    Store store(forest);
    const std::vector<ResidualId> ids = random_trees(store, random, 1, 1 + i % 4, {0, 1, 2}, 9);
    CountValues values;
    values.reset(forest, store.features());
    const std::vector<Stretch> narrowed = random_narrowing(store, ids, random);
    Box box(store, values);
    box.open();
    CHECK(box.add(ids, narrowed));
    std::uint64_t total = 0;
    std::uint64_t by_value[19] = {};
    const std::function<void(ResidualId, std::uint64_t)> walk = [&](ResidualId id,
                                                                    std::uint64_t volume) {
      if (!store.is_leaf(id)) return box.branch(store[id], volume, walk);
      total += volume;
      by_value[store[id].min + 9] += volume;
    };
    walk(ids[0], box.volume());
    CHECK(total == box.volume());
    // Regions of the whole space, each box's cells times the cells that the box says nothing of.
    std::uint64_t free = 1;
    for (std::size_t f = 0; f < forest.axes.size(); ++f) {
      const bool is_mentioned = std::any_of(
          box.mentioned().begin(), box.mentioned().end(),
          [&](LocalFeature l) { return store.features()[l] == static_cast<Feature>(f); });
      if (!is_mentioned) free *= static_cast<std::uint64_t>(forest.axes[f].n_cells);
    }
    std::uint64_t expected[19] = {};
    for_each_region(forest, [&](std::span<const Cell> region) {
      if (is_within(store, narrowed, region)) ++expected[value_at(store, ids[0], region) + 9];
    });
    for (int v = 0; v < 19; ++v) CHECK(by_value[v] * free == expected[v]);
  }
}

void axes_without_order_are_refused() {
  const Forest<std::int64_t> forest = axes_alone();
  Store store(forest);
  const ResidualId a = store.leaf(0);
  const ResidualId b = store.leaf(1);
  CountValues values;
  for (const Feature feature : {kMissing, kCategory}) {
    const std::vector<ResidualId> ids{
        store.node({feature, feature == kCategory ? -1 : 1, false}, a, b)};
    values.reset(forest, store.features());
    Box box(store, values);
    box.open();
    CHECK(!box.add(ids, {}));
  }
}

}  // namespace

int main() {
  a_walk_divides_the_volume_among_its_ends();
  axes_without_order_are_refused();
  return failures;
}

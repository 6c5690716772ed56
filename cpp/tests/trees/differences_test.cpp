// Difference trees against V at both masks, region by region.
#include "xcount/trees/differences.hpp"

#include "check.hpp"
#include "residual_trees.hpp"

using namespace xcount;
using namespace xcount::test;

namespace {

void differences_are_those_of_the_forest_everywhere() {
  for (unsigned seed = 0; seed < 25; ++seed) {
    std::mt19937 random(seed);
    const World world = random_world(random, 3, 3);
    const Forest<std::int64_t> forest = world.build<std::int64_t>();
    const MaskSpace masks(forest, {static_cast<Feature>(seed % 2 == 0 ? 0 : 3)}, std::nullopt);
    DifferenceBuilder<std::int64_t> builder(forest, masks);
    const MaskIndex a = static_cast<MaskIndex>(random() % static_cast<unsigned>(masks.size()));
    const MaskIndex b = (a + 1) % masks.size();
    ResidualStore<std::int64_t> store(forest);
    std::vector<ResidualId> roots;
    std::int64_t offset = 0;
    builder.build(a, b, store, roots, offset, [] {});
    std::int64_t largest = 0;
    for_each_region(forest, [&](std::span<const Cell> region) {
      std::vector<Cell> at(region.begin(), region.end());
      masks.write_cells(a, at);
      const std::int64_t first = forest.sum(at);
      masks.write_cells(b, at);
      const std::int64_t difference = first - forest.sum(at);
      CHECK(offset + sum_at(store, roots, region) == difference);
      largest = std::max(largest, std::abs(difference));
    });
    for (const ResidualId root : roots) CHECK(!store.is_leaf(root));
    // Ranges add up to at least what is attained.
    if (largest > 0) CHECK(builder.may_exceed(a, b, Gap<std::int64_t>(largest - 1), store, [] {}));
    CHECK(!builder.may_exceed(a, b, Gap<std::int64_t>(1'000), store, [] {}));
  }
}

}  // namespace

int main() {
  differences_are_those_of_the_forest_everywhere();
  return failures;
}

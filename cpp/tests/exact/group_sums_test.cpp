// Groups and the distributions of their sums, against counting regions.
#include "xcount/exact/group_sums.hpp"

#include <cmath>
#include <map>

#include "check.hpp"
#include "residual_trees.hpp"

using namespace xcount;
using namespace xcount::test;

namespace {

using Store = ResidualStore<std::int64_t>;
using Groups = GroupSums<std::int64_t, CountValues>;

void groups_share_no_feature_and_hold_every_residual() {
  const Forest<std::int64_t> forest = axes_alone();
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    Store store(forest);
    const auto ids = random_trees(store, random, 1 + random() % 6, 1 + i % 2, {0, 1, 2, 3, 4});
    CountValues values;
    values.reset(forest, store.features());
    Groups groups(store, values);
    groups.open();
    for (std::size_t k = 0; k < ids.size(); ++k) groups.add(ids[k], k % 2);
    std::vector<ResidualId> found;
    std::uint64_t seen = 0;
    for (const ResidualGroup& group : groups.groups()) {
      CHECK((seen & group.support) == 0);
      seen |= group.support;
      double paths = 1.0;
      for (const ResidualId id : group.ids) {
        CHECK((store[id].support & ~group.support) == 0);
        paths *= store[id].n_leaves;
      }
      CHECK(paths == group.paths);
      found.insert(found.end(), group.ids.begin(), group.ids.end());
    }
    std::sort(found.begin(), found.end());
    CHECK(found == ids);
  }
}

// Sums of groups over features {0, 1} and {2}: how many combinations give which sum. Small sums are
// added up in a table, large ones in a list.
void distributions_count_every_combination() {
  const Forest<std::int64_t> forest = axes_alone();
  std::mt19937 random(8);
  for (int i = 0; i < 200; ++i) {
    const int range = i % 2 == 0 ? 3 : 1'000'000'000;
    Store store(forest);
    std::vector<ResidualId> ids = random_trees(store, random, 2, 2, {0, 1}, range);
    const auto others = random_trees(store, random, 1, 1, {2}, range);
    ids.insert(ids.end(), others.begin(), others.end());
    std::sort(ids.begin(), ids.end());
    CountValues values;
    values.reset(forest, store.features());
    Groups groups(store, values);
    groups.open();
    for (const ResidualId id : ids) groups.add(id, 0);
    std::vector<const ResidualGroup*> all;
    for (const ResidualGroup& group : groups.groups()) all.push_back(&group);
    const std::vector<Stretch> narrowed = random_narrowing(store, ids, random);
    const std::uint32_t number = groups.find(all, narrowed);
    CHECK(number != Groups::kNone);
    const std::uint64_t n_steps = groups.n_steps();
    CHECK(groups.find(all, narrowed) == number && groups.n_steps() == n_steps);  // remembered
    const auto found = groups[number];

    std::map<std::int64_t, std::uint64_t> expected;
    std::uint64_t n_regions = 0;
    for_each_region(forest, [&](std::span<const Cell> region) {
      if (!is_within(store, narrowed, region)) return;
      ++expected[sum_at(store, ids, region)];
      ++n_regions;
    });
    const std::uint64_t free = n_regions / found.before.back();
    CHECK(found.sums.size() == expected.size() && free * found.before.back() == n_regions);
    std::size_t k = 0;
    std::uint64_t before = 0;
    for (const auto& [sum, count] : expected) {
      CHECK(found.sums[k] == sum && found.before[k] * free == before);
      CHECK(found.from[k] * free == n_regions - before);
      before += count;
      ++k;
    }
    CHECK(found.from[k] == 0);
    CHECK(std::abs(std::exp2(found.log2_volume) - static_cast<double>(found.before.back())) < 1e-6);
  }
}

void groups_without_order_have_no_distribution() {
  const Forest<std::int64_t> forest = axes_alone();
  Store store(forest);
  const ResidualId a = store.leaf(0);
  const ResidualId id = store.node({kCategory, -1, false}, a, store.leaf(1));
  CountValues values;
  values.reset(forest, store.features());
  Groups groups(store, values);
  groups.open();
  groups.add(id, 0);
  const std::vector<const ResidualGroup*> all{&groups.groups()[0]};
  CHECK(groups.find(all, {}) == Groups::kNone);
  CHECK(groups.find(all, {}) == Groups::kNone);  // and that is remembered, too
}

}  // namespace

int main() {
  groups_share_no_feature_and_hold_every_residual();
  distributions_count_every_combination();
  groups_without_order_have_no_distribution();
  return failures;
}

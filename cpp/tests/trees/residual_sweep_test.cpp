// Sweeps over the parts of an axis against evaluating the constraints cell by cell.
#include "xcount/trees/residual_sweep.hpp"

#include "check.hpp"
#include "residual_trees.hpp"

using namespace xcount;
using namespace xcount::test;

namespace {

using Store = ResidualStore<std::int64_t>;

// In each part, offset + residuals is the constraint's sum at every region of the part, and the
// bounds are the sums of the residuals' own.
void check_part(Store& store, ResidualSweep<std::int64_t>& sweep,
                const std::vector<std::vector<ResidualId>>& terms, Feature feature, Cell begin,
                Cell end) {
  std::vector<BoundedSum<std::int64_t>> sums(terms.size());
  for (std::size_t t = 0; t < terms.size(); ++t) sums[t].offset = static_cast<std::int64_t>(10 * t);
  sweep.bound(store, sums);
  for (std::size_t t = 0; t < terms.size(); ++t) {
    std::vector<ResidualId> ids;
    sweep.append_ids(store, t, ids);
    CHECK(std::is_sorted(ids.begin(), ids.end()));
    std::int64_t min = 0;
    std::int64_t max = 0;
    for (const ResidualId id : ids) {
      CHECK(!store.is_leaf(id));
      min += store[id].min;
      max += store[id].max;
    }
    CHECK(min == sums[t].min && max == sums[t].max);
    for_each_region(store.forest(), [&](std::span<const Cell> region) {
      const Cell cell = region[static_cast<std::size_t>(feature)];
      if (cell < begin || cell >= end) return;
      CHECK(sums[t].offset + sum_at(store, ids, region) ==
            static_cast<std::int64_t>(10 * t) + sum_at(store, terms[t], region));
    });
  }
}

void parts_are_disjoint_and_have_the_sums_of_the_whole() {
  const Forest<std::int64_t> forest = axes_alone();
  std::mt19937 random(5);
  ResidualSweep<std::int64_t> sweep;
  for (int i = 0; i < 60; ++i) {
    Store store(forest);
    std::vector<std::vector<ResidualId>> terms(1 + random() % 3);
    for (auto& ids : terms) {
      ids = random_trees(store, random, 1 + random() % 4, 2, {0, 1, 2, kMissing, kCategory});
    }
    const auto f = static_cast<LocalFeature>(random() % store.features().size());
    sweep.open();
    for (const auto& ids : terms) {
      sweep.add_term(store, ids, [&](ResidualId id, std::vector<Run>& runs) {
        if (!store.mentions(id, f)) return;
        const auto all = store.cofactors(id, f);
        runs.insert(runs.end(), all.begin(), all.end());
      });
    }
    const Feature feature = store.features()[f];
    const Cell n_cells = forest.axis(feature).n_cells;
    for (Cell cell = 0; cell < n_cells;) {
      const Cell next = sweep.next(n_cells);
      CHECK(cell < next && next <= n_cells);
      check_part(store, sweep, terms, feature, cell, next);
      sweep.advance(next);
      cell = next;
    }
  }
}

}  // namespace

int main() {
  parts_are_disjoint_and_have_the_sums_of_the_whole();
  return failures;
}

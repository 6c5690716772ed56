// A box holds a pair within reach iff trimming says so, and trimming keeps all such pairs.
#include "xcount/worst/pair_box.hpp"

#include <random>

#include "check.hpp"
#include "example_forest.hpp"

using namespace xcount;
using xcount::test::ExampleArrays;
using xcount::test::failures;

namespace {

// f0: four ordered cells and a missing one; f1: three unordered cells.
Forest<std::int64_t> mixed_forest() {
  ExampleArrays arrays;
  arrays.n_cells = {5, 3};
  arrays.missing_cell = {4, -1};
  arrays.ordered = {1, 0};
  for (auto& feature : arrays.feature) feature = feature < 0 ? -1 : 0;
  return arrays.build<std::int64_t>();
}

void trimming_keeps_the_pairs_within_reach() {
  const Forest<std::int64_t> forest = mixed_forest();
  const std::vector<Feature> sensitive{0, 1};
  std::mt19937 random(3);
  const auto run = [&](unsigned n) {
    const auto a = static_cast<Cell>(random() % n), b = static_cast<Cell>(random() % n);
    return CellRun{std::min(a, b), std::max(a, b)};
  };
  for (int i = 0; i < 300; ++i) {
    const PairReach reach(forest, sensitive, 0, 1 + static_cast<std::int64_t>(random() % 4));
    const PairBox box{run(5), run(5), run(3), run(3)};
    PairBox trimmed = box;
    const bool found = reach.trim(trimmed);
    int n_pairs = 0;
    for (Cell a = box[0].low; a <= box[0].high; ++a) {
      for (Cell b = box[1].low; b <= box[1].high; ++b) {
        for (Cell c = box[2].low; c <= box[2].high; ++c) {
          for (Cell d = box[3].low; d <= box[3].high; ++d) {
            if (!reach.allows({a, b, c, d})) continue;
            ++n_pairs;
            CHECK(found && trimmed[0].has(a) && trimmed[1].has(b));
            CHECK(found && trimmed[2].has(c) && trimmed[3].has(d));
          }
        }
      }
    }
    CHECK(found == (n_pairs > 0));
    if (!found) continue;
    PairPoint point(4);
    reach.set_nearest(trimmed, point);
    CHECK(reach.allows(point));
    for (std::size_t v = 0; v < 4; ++v) CHECK(box[v].has(point[v]));
  }
}

void without_a_limit_every_pair_is_within_reach() {
  const Forest<std::int64_t> forest = mixed_forest();
  const std::vector<Feature> sensitive{0};
  const PairReach reach(forest, sensitive, 0, std::nullopt);
  PairBox box{{0, 0}, {3, 4}};
  CHECK(reach.trim(box));
  CHECK((box == PairBox{{0, 0}, {3, 4}}));
  CHECK(reach.allows({0, 3}));
}

}  // namespace

int main() {
  trimming_keeps_the_pairs_within_reach();
  without_a_limit_every_pair_is_within_reach();
  return failures;
}

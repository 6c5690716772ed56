// The choice of a split against scores added up by hand.
#include "xcount/trees/root_scores.hpp"

#include <random>
#include <vector>

#include "check.hpp"

using namespace xcount;
using xcount::test::failures;

namespace {

struct Root {
  std::uint32_t feature;
  Cell cut;
  double range;
};

// The slow, obvious choice.
RootScores::Choice choose(const std::vector<Root>& roots, std::uint32_t n_features) {
  RootScores::Choice best{0, 0, -1.0};
  for (std::uint32_t f = 0; f < n_features; ++f) {
    double total = 0.0;
    double widest = 0.0;
    Cell cut = 0;
    for (const Root& root : roots) {
      if (root.feature != f) continue;
      total += root.range;
      if (root.range > widest || (root.range == widest && root.cut < cut)) cut = root.cut;
      widest = std::max(widest, root.range);
    }
    if (total > best.total) best = {f, cut, total};
  }
  return best;
}

void the_widest_feature_is_chosen_and_cut_where_its_widest_tree_asks() {
  std::mt19937 random(1);
  RootScores scores;
  scores.resize(4);
  for (int i = 0; i < 2'000; ++i) {  // one after the other: a choice forgets what led to it
    std::vector<Root> roots(1 + random() % 6);
    for (Root& root : roots) {
      root = {static_cast<std::uint32_t>(random() % 4), static_cast<Cell>(random() % 5),
              static_cast<double>(1 + random() % 3)};
      scores.add(root.feature, root.cut, root.range);
    }
    const auto found = scores.choose();
    const auto expected = choose(roots, 4);
    CHECK(found.feature == expected.feature && found.cut == expected.cut);
    CHECK(found.total == expected.total);
  }
}

}  // namespace

int main() {
  the_widest_feature_is_chosen_and_cut_where_its_widest_tree_asks();
  return failures;
}

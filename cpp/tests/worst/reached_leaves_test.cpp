// The list of all leaves holds every leaf once, and a keeper keeps lists up to its limit only.
#include "xcount/worst/reached_leaves.hpp"

#include <memory>
#include <random>

#include "check.hpp"
#include "random_world.hpp"

using namespace xcount;
using xcount::test::failures;
using xcount::test::random_world;

namespace {

using Leaves = ReachedLeaves<std::int64_t, 1>;

void all_leaves_are_listed() {
  std::mt19937 random(3);
  const auto forest = random_world(random, 5, 3).build<std::int64_t>();
  const PairTrees<std::int64_t> trees(forest, {0, 3}, false);
  const auto leaves = Leaves::all(trees);
  CHECK(leaves->box.size() == trees.variables().size());
  CHECK(leaves->factor.size() == trees.factors().size());
  for (std::size_t i = 0; i < leaves->factor.size(); ++i) {
    CHECK(leaves->first[i + 1] - leaves->first[i] == trees.factors()[i].n_leaves());
    CHECK(leaves->leaf[leaves->first[i]] == 0);
  }
  CHECK(leaves->first.back() == leaves->leaf.size());
}

void a_keeper_counts_what_is_alive() {
  LeafKeeper<Leaves> keeper;
  const auto list = [] {
    auto leaves = std::make_unique<Leaves>();
    leaves->leaf.assign(1000, 7);
    return leaves;
  };
  keeper.set_limit(3 * list()->bytes() / 2);
  auto first = keeper.keep(list());
  CHECK(first != nullptr && keeper.bytes() == list()->bytes());
  CHECK(keeper.keep(list()) == nullptr);
  first.reset();
  CHECK(keeper.bytes() == 0);
  CHECK(keeper.keep(list()) != nullptr);
}

}  // namespace

int main() {
  all_leaves_are_listed();
  a_keeper_counts_what_is_alive();
  return failures;
}

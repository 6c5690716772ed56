// The leaves of a factor divide all pairs of regions among them, and add up to the change.
#include "xcount/worst/pair_trees.hpp"

#include <random>

#include "check.hpp"
#include "random_world.hpp"

using namespace xcount;
using xcount::test::failures;
using xcount::test::random_world;
using xcount::test::World;
using xcount::test::worlds;

namespace {

// The value of a factor at a pair; checks that exactly one leaf holds it.
template <class Value>
Bound value_at(const PairTrees<Value>& trees, const Factor<Value>& factor,
               const std::vector<Cell>& start, const std::vector<Cell>& target) {
  int n_found = 0;
  Bound found = 0;
  for (std::size_t leaf = 0; leaf < factor.n_leaves(); ++leaf) {
    bool holds = true;
    for (const Segments& segments : factor.segments) {
      const PairVariable& variable = trees.variables()[segments.variable];
      const auto& region = variable.role == Role::kTarget ? target : start;
      const Cell cell = region[static_cast<std::size_t>(variable.feature)];
      const std::size_t s = segments.of_cell[static_cast<std::size_t>(cell)];
      const std::uint64_t word = factor.column(segments.first_column + s / 64)[leaf];
      holds = holds && ((word >> (s % 64)) & 1) != 0;
    }
    if (!holds) continue;
    ++n_found;
    found = factor.values[leaf];
  }
  CHECK(n_found == 1);
  return found;
}

template <class Value>
void check_sums(const World& world, std::mt19937& random, std::size_t max_leaves) {
  const Forest<Value> forest = world.build<Value>();
  const PairTrees<Value> trees(forest, {1, 3}, true, max_leaves);
  CHECK(trees.shift() == 0);
  for (int i = 0; i < 20; ++i) {
    std::vector<Cell> start;
    for (const Axis& axis : forest.axes) {
      start.push_back(static_cast<Cell>(random() % static_cast<unsigned>(axis.n_cells)));
    }
    std::vector<Cell> target = start;
    target[1] = static_cast<Cell>(random() % 90);
    target[3] = static_cast<Cell>(random() % 5);
    std::array<Bound, 3> sums{};
    for (const Factor<Value>& factor : trees.factors()) {
      sums[factor.sum] += value_at(trees, factor, start, target);
    }
    const Value before = forest.sum(start), after = forest.sum(target);
    CHECK(Value(sums[kDifferenceSum]) == after - before);
    CHECK(Value(sums[kTargetSum]) == after);
    CHECK(Value(sums[kStartSum]) == Value{} - before);
  }
}

void factors_add_up_to_the_change() {
  std::mt19937 random(1);
  for (int i = 0; i < worlds(30); ++i) {
    const World world = random_world(random, 3, 4);
    check_sums<std::int64_t>(world, random, PairTrees<std::int64_t>::kMaxLeaves);
    check_sums<Int128>(world, random, 4);  // most trees are two factors
  }
}

void leaves_fall() {
  std::mt19937 random(2);
  const Forest<std::int64_t> forest = random_world(random, 5, 4).build<std::int64_t>();
  const PairTrees<std::int64_t> trees(forest, {1}, false);
  for (const Factor<std::int64_t>& factor : trees.factors()) {
    CHECK(std::is_sorted(factor.values.rbegin(), factor.values.rend()));
  }
}

void wide_values_are_rounded_up() {
  World world({2});
  const std::int32_t root = world.add(0, 1, 0, false);
  const std::int32_t low = world.add(-1, 0, 1, false), high = world.add(-1, 0, -5, false);
  world.set_children(root, low, high);
  world.roots.push_back(root);
  Forest<Int128> forest = world.build<Int128>();
  forest.values[1] = (Int128{1} << 90) + 1;
  const PairTrees<Int128> trees(forest, {0}, false);
  CHECK(trees.shift() > 0);
  const Factor<Int128>& factor = trees.factors().front();
  for (std::size_t leaf = 0; leaf < factor.n_leaves(); ++leaf) {
    const Int128 bound = Int128{factor.values[leaf]} << trees.shift();
    CHECK(bound >= factor.exact[leaf]);
    CHECK(bound - factor.exact[leaf] < (Int128{1} << trees.shift()));
  }
}

}  // namespace

int main() {
  factors_add_up_to_the_change();
  leaves_fall();
  wide_values_are_rounded_up();
  return failures;
}

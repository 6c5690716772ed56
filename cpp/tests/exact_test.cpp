// The exact counter against enumeration: all tiny worlds, random larger ones, and its threads.
#include "xcount/exact.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "check.hpp"
#include "example_forest.hpp"
#include "xcount/brute.hpp"

using namespace xcount;
using xcount::test::ExampleArrays;
using xcount::test::failures;

namespace {

constexpr std::uint64_t kAnySteps = ~std::uint64_t{0};
constexpr std::size_t kAnyBytes = ~std::size_t{0};

// A forest that grows node by node.
struct World : ExampleArrays {
  World(std::vector<std::int32_t> cells, std::vector<std::int32_t> missing) {
    n_cells = std::move(cells);
    missing_cell = std::move(missing);
    ordered.assign(n_cells.size(), 1);
    for (auto* column : {&roots, &feature, &cut, &left, &right}) column->clear();
    missing_left.clear();
    values.clear();
  }
  explicit World(std::vector<std::int32_t> cells)
      : World(cells, std::vector<std::int32_t>(cells.size(), -1)) {}

  std::int32_t add(std::int32_t f, std::int32_t c, std::int64_t value, bool missing_goes_left) {
    feature.push_back(f);
    cut.push_back(c);
    values.push_back(value);
    missing_left.push_back(missing_goes_left ? 1 : 0);
    left.push_back(-1);
    right.push_back(-1);
    return static_cast<std::int32_t>(feature.size() - 1);
  }
  void set_children(std::int32_t node, std::int32_t low, std::int32_t high) {
    left[static_cast<std::size_t>(node)] = low;
    right[static_cast<std::size_t>(node)] = high;
  }
};

// A tree as data: a leaf, or a test with two subtrees.
struct Shape {
  std::int32_t feature = -1, cut = 0;
  std::int64_t value = 0;
  std::vector<Shape> children;
};

std::int32_t plant(World& world, const Shape& shape) {
  const std::int32_t node = world.add(shape.feature, shape.cut, shape.value, false);
  if (!shape.children.empty()) {
    const std::int32_t low = plant(world, shape.children[0]);
    const std::int32_t high = plant(world, shape.children[1]);
    world.set_children(node, low, high);
  }
  return node;
}

// All trees of at most this depth with these tests and the leaves -1, 0 and 1.
std::vector<Shape> all_trees(int depth, const std::vector<std::array<std::int32_t, 2>>& tests) {
  std::vector<Shape> trees;
  for (const std::int64_t value : {-1, 0, 1}) trees.push_back({-1, 0, value, {}});
  if (depth == 0) return trees;
  const std::vector<Shape> below = all_trees(depth - 1, tests);
  for (const auto& [feature, cut] : tests) {
    for (const Shape& low : below) {
      for (const Shape& high : below) trees.push_back({feature, cut, 0, {low, high}});
    }
  }
  return trees;
}

std::uint64_t scaled(const std::vector<std::uint64_t>& count,
                     const std::vector<std::uint64_t>& total, std::uint64_t n_combinations) {
  CHECK(total[0] > 0 && n_combinations % total[0] == 0);
  return count[0] * (n_combinations / total[0]);
}

// Counts every mask as "any neighbour differs", and compares with enumeration.
template <class Value>
void compare(const Forest<Value>& forest, const MaskSpace& masks, std::int64_t gap,
             std::uint64_t max_paths) {
  const BruteForce<Value> brute(forest, masks, Value(gap));
  const std::vector<std::uint64_t> expected = brute.count(0, brute.n_combinations(), 1);
  SubproblemSolver<Value, CountValues> solver(forest, masks, Value(gap), CountValues{});
  for (MaskIndex mask = 0; mask < masks.size(); ++mask) {
    ExactTask task;
    for (const MaskIndex other : masks.neighbours(mask)) task.pairs.push_back({mask, other});
    const SolutionId solution = solver.solve(task, {kAnySteps, kAnyBytes, nullptr, max_paths});
    const auto count = solver.values().value(solution);
    const auto total = solver.values().value(kAllSolve);
    CHECK(scaled({count.begin(), count.end()}, {total.begin(), total.end()},
                 brute.n_combinations()) == expected[static_cast<std::size_t>(mask)]);
  }
}

void compare_all_questions(const World& world, bool deep) {
  const Forest<std::int64_t> forest = world.build<std::int64_t>();
  const std::vector<std::vector<Feature>> choices{{0}, {1}, {0, 1}};
  for (const std::vector<Feature>& sensitive : choices) {
    for (const std::optional<std::int64_t> distance :
         {std::optional<std::int64_t>(1), std::optional<std::int64_t>()}) {
      const MaskSpace masks(forest, sensitive, distance);
      for (const std::int64_t gap : {0, 1, 2}) {
        if (deep && (sensitive.size() == 2 || (gap != 1 && !distance))) continue;
        compare(forest, masks, gap, deep ? kMaxPaths : 0);
      }
    }
  }
}

// Two features of three cells each: all pairs of stumps, and all single trees of depth 2; the
// latter also beside some stumps.
void tiny_worlds_are_counted_exhaustively() {
  const std::vector<std::array<std::int32_t, 2>> tests{{0, 1}, {0, 2}, {1, 1}, {1, 2}};
  const std::vector<Shape> stumps = all_trees(1, tests);
  for (std::size_t i = 0; i < stumps.size(); ++i) {
    for (std::size_t j = i; j < stumps.size(); ++j) {
      World world({3, 3});
      for (const Shape& tree : {stumps[i], stumps[j]}) {
        const std::int32_t root = plant(world, tree);
        world.roots.push_back(root);
      }
      compare_all_questions(world, false);
    }
  }
  std::size_t turn = 0;
  for (const Shape& tree : all_trees(2, tests)) {
    World world({3, 3});
    world.roots.push_back(0);
    plant(world, tree);
    if (turn % 3 == 0) {
      const std::int32_t root = plant(world, stumps[turn / 3 % stumps.size()]);
      world.roots.push_back(root);
    }
    ++turn;
    compare_all_questions(world, true);
  }
}

// Random trees on axes with missing cells, set tests, and more than 64 cells.
World random_world(std::mt19937& random, int n_trees, int depth) {
  World world({3, 90, 4, 5}, {-1, random() % 2 == 0 ? 89 : -1, 3, -1});
  world.ordered[3] = 0;
  const auto grow = [&](auto&& self, int levels) -> std::int32_t {
    if (levels == 0) return world.add(-1, 0, static_cast<std::int64_t>(random() % 7) - 3, false);
    const auto feature = static_cast<std::int32_t>(random() % 4);
    const std::int32_t n_cells = world.n_cells[static_cast<std::size_t>(feature)];
    std::int32_t cut = 1 + static_cast<std::int32_t>(random() % static_cast<unsigned>(n_cells - 1));
    if (feature == 3 || (feature == 1 && random() % 4 == 0)) {
      cut = -1 - static_cast<std::int32_t>(world.membership.size());
      for (std::int32_t cell = 0; cell < n_cells; ++cell) {
        world.membership.push_back(random() % 2 == 0 ? 1 : 0);
      }
    } else if (world.missing_cell[static_cast<std::size_t>(feature)] >= 0) {
      cut = std::min(cut, n_cells - 1);
    }
    const std::int32_t node = world.add(feature, cut, 0, random() % 2 == 0);
    const std::int32_t low = self(self, levels - 1);
    const std::int32_t high = self(self, levels - 1);
    world.set_children(node, low, high);
    return node;
  };
  for (int i = 0; i < n_trees; ++i) {
    const std::int32_t root = grow(grow, depth);
    world.roots.push_back(root);
  }
  return world;
}

template <class Value>
void random_worlds_are_counted_as_by_enumeration() {
  std::mt19937 random(7);
  for (int i = 0; i < 30; ++i) {
    const World world = random_world(random, 2 + i % 4, 3);
    const Forest<Value> forest = world.build<Value>();
    const std::optional<std::int64_t> distance =
        i % 3 == 0 ? std::nullopt : std::optional<std::int64_t>(i % 3);
    const MaskSpace masks(forest, i % 2 == 0 ? std::vector<Feature>{0} : std::vector<Feature>{0, 3},
                          distance);
    compare(forest, masks, i % 5, i % 2 == 0 ? 0 : kMaxPaths);
  }
}

// What one pair and the overlap of two pairs count, and that their inclusion-exclusion fits.
void overlaps_and_unions_add_up() {
  std::mt19937 random(11);
  for (int i = 0; i < 20; ++i) {
    const World world = random_world(random, 4, 3);
    const Forest<std::int64_t> forest = world.build<std::int64_t>();
    const MaskSpace masks(forest, {0}, 1);
    SubproblemSolver<std::int64_t, CountValues> solver(forest, masks, 2, CountValues{});
    const std::uint64_t n_combinations =
        BruteForce<std::int64_t>(forest, masks, 2).n_combinations();
    const auto count = [&](std::vector<MaskPair> pairs, Combine combine) {
      const SolutionId id = solver.solve({std::move(pairs), combine}, {kAnySteps, kAnyBytes});
      const auto value = solver.values().value(id);
      const auto total = solver.values().value(kAllSolve);
      return scaled({value.begin(), value.end()}, {total.begin(), total.end()}, n_combinations);
    };
    const std::uint64_t both = count({{0, 1}, {1, 2}}, Combine::kAll);
    const std::uint64_t either = count({{0, 1}, {1, 2}}, Combine::kAny);
    CHECK(count({{0, 1}}, Combine::kAny) + count({{1, 2}}, Combine::kAny) == both + either);
  }
}

void sums_at_the_edge_of_64_bits_do_not_wrap() {
  // Leaves of 2^60 - 1 and its negative in one tree: the largest that a 64-bit forest may hold.
  constexpr std::int64_t kLargest = (std::int64_t{1} << 60) - 1;
  World world({2, 3});
  const Shape low{1, 1, 0, {{-1, 0, kLargest, {}}, {-1, 0, -kLargest, {}}}};
  const Shape high{1, 2, 0, {{-1, 0, -kLargest, {}}, {-1, 0, kLargest, {}}}};
  world.roots.push_back(0);
  plant(world, {0, 1, 0, {low, high}});
  const std::int32_t root = plant(world, {0, 1, 0, {high, low}});
  world.roots.push_back(root);
  const Forest<std::int64_t> forest = world.build<std::int64_t>();
  const MaskSpace masks(forest, {0}, 1);
  for (const std::int64_t gap : {std::int64_t{0}, kLargest, 2 * kLargest, 4 * kLargest + 1}) {
    compare(forest, masks, std::min(gap, (std::int64_t{1} << 62) - 1), 0);
    compare(forest, masks, std::min(gap, (std::int64_t{1} << 62) - 1), kMaxPaths);
  }
}

std::vector<ExactTask> all_pairs(const MaskSpace& masks) {
  std::vector<ExactTask> tasks;
  for (MaskIndex mask = 0; mask < masks.size(); ++mask) {
    for (const MaskIndex other : masks.neighbours(mask)) tasks.push_back({{{mask, other}}});
  }
  return tasks;
}

void threads_start_stop_and_start_again() {
  std::mt19937 random(13);
  const World world = random_world(random, 30, 5);
  const Forest<std::int64_t> forest = world.build<std::int64_t>();
  const MaskSpace masks(forest, {0, 3}, std::nullopt);
  using Counter = ExactCounter<std::int64_t, CountValues>;
  Counter counter(forest, masks, 4, CountValues{});
  CHECK(counter.wait(0.0));  // nothing to wait for yet
  const std::vector<ExactTask> tasks = all_pairs(masks);
  const ExactLimits limits{kAnySteps, kAnyBytes, 3};
  for (int i = 0; i < 5; ++i) {  // cancelled at once, or in the middle
    counter.start(tasks, limits);
    if (i % 2 == 1) (void)counter.wait(0.001 * i);
    counter.cancel();
    CHECK(counter.wait(0.0));
    for (const TaskResult& result : counter.results()) {
      CHECK(result.status != TaskStatus::kSteps && result.status != TaskStatus::kMemory);
    }
  }
  std::vector<std::vector<std::uint64_t>> counts[2];
  for (const unsigned n_threads : {1U, 4U}) {
    counter.start(tasks, {kAnySteps, kAnyBytes, n_threads});
    while (!counter.wait(0.01)) continue;
    CHECK(counter.n_done() == tasks.size());
    for (const TaskResult& result : counter.results()) {
      CHECK(result.status == TaskStatus::kSolved);
      counts[n_threads / 4].push_back(result.count);
    }
  }
  CHECK(counts[0] == counts[1]);
  counter.start(tasks, limits);
  // Destroyed while its threads work: they stop first.
}

void limits_are_kept_and_said() {
  std::mt19937 random(17);
  const World world = random_world(random, 30, 5);
  const Forest<std::int64_t> forest = world.build<std::int64_t>();
  const MaskSpace masks(forest, {0}, 1);
  ExactCounter<std::int64_t, CountValues> counter(forest, masks, 4, CountValues{});
  const auto status = [&](const ExactLimits& limits) {
    counter.start({{{{0, 1}}}}, limits);
    while (!counter.wait(0.01)) continue;
    return counter.results()[0].status;
  };
  CHECK(status({100, kAnyBytes, 1, 0}) == TaskStatus::kSteps);
  CHECK(status({kAnySteps, 1000, 1, 0}) == TaskStatus::kMemory);
  CHECK(status({kAnySteps, kAnyBytes, 1, 0}) == TaskStatus::kSolved);
}

}  // namespace

int main() {
  tiny_worlds_are_counted_exhaustively();
  random_worlds_are_counted_as_by_enumeration<std::int64_t>();
  random_worlds_are_counted_as_by_enumeration<Int128>();
  random_worlds_are_counted_as_by_enumeration<Int2304>();
  overlaps_and_unions_add_up();
  sums_at_the_edge_of_64_bits_do_not_wrap();
  threads_start_stop_and_start_again();
  limits_are_kept_and_said();
  return failures;
}

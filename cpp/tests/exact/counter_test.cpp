// The exact counter against enumeration: all tiny worlds, and random larger ones.
#include "xcount/exact/counter.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "check.hpp"
#include "random_world.hpp"
#include "xcount/exact/brute.hpp"

using namespace xcount;
using xcount::test::failures;
using xcount::test::random_world;
using xcount::test::World;
using xcount::test::worlds;

namespace {

constexpr std::uint64_t kAnySteps = ~std::uint64_t{0};
constexpr std::size_t kAnyBytes = ~std::size_t{0};

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

template <class Value>
void random_worlds_are_counted_as_by_enumeration() {
  std::mt19937 random(7);
  for (int i = 0; i < worlds(30); ++i) {
    const World world = random_world(random, 2 + i % 4, 3);
    const Forest<Value> forest = world.build<Value>();
    const std::optional<std::int64_t> distance =
        i % 3 == 0 ? std::nullopt : std::optional<std::int64_t>(i % 3);
    const MaskSpace masks(forest, i % 2 == 0 ? std::vector<Feature>{0} : std::vector<Feature>{0, 3},
                          distance);
    compare(forest, masks, i % 5, i % 2 == 0 ? 0 : kMaxPaths);
  }
}

// Trees that share only the sensitive feature: their sums are counted by distributions.
template <class Value>
void independent_groups_are_counted_as_by_enumeration() {
  std::mt19937 random(23);
  const auto leaf = [&] {
    return Shape{-1, 0, static_cast<std::int64_t>(random() % 2001) - 1000, {}};
  };
  const auto test = [&](std::int32_t feature, Shape low, Shape high) {
    const auto cut = static_cast<std::int32_t>(1 + random() % 2);
    return Shape{feature, cut, 0, {std::move(low), std::move(high)}};
  };
  for (int i = 0; i < worlds(12); ++i) {
    World world(std::vector<std::int32_t>(9, 3));
    for (std::int32_t feature = 1; feature < 9; ++feature) {
      const std::int32_t other = feature % 4 == 0 ? feature - 1 : feature;
      const Shape low = test(feature, test(other, leaf(), leaf()), leaf());
      const std::int32_t root = plant(world, test(0, low, test(feature, leaf(), leaf())));
      world.roots.push_back(root);
    }
    const Forest<Value> forest = world.build<Value>();
    const MaskSpace masks(forest, {0}, i % 2 == 0 ? std::nullopt : std::optional<std::int64_t>(1));
    compare(forest, masks, 500 * (i % 5), kMaxPaths);
  }
}

// What one pair and the overlap of two pairs count, and that their inclusion-exclusion fits.
void overlaps_and_unions_add_up() {
  std::mt19937 random(11);
  for (int i = 0; i < worlds(20); ++i) {
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

// A memo of next to nothing, and one that only grows.
void a_memo_that_is_emptied_changes_no_answer() {
  std::uint64_t n_forgotten = 0;
  for (unsigned seed = 0; seed < unsigned{worlds(20)}; ++seed) {
    std::mt19937 random(seed);
    const World world = random_world(random, 30, 5);
    const Forest<std::int64_t> forest = world.build<std::int64_t>();
    const MaskSpace masks(forest, {0}, 1);
    const ExactTask task{{{0, 1}}};
    SubproblemSolver<std::int64_t, CountValues> small(forest, masks, 4, CountValues{});
    SubproblemSolver<std::int64_t, CountValues> large(forest, masks, 4, CountValues{});
    const SolutionId found = small.solve(task, {kAnySteps, kAnyBytes, nullptr, 0, 1});
    const SolutionId expected = large.solve(task, {kAnySteps, kAnyBytes, nullptr, 0, kAnyBytes});
    CHECK(std::ranges::equal(small.values().value(found), large.values().value(expected)));
    CHECK(large.n_forgotten() == 0);
    n_forgotten += small.n_forgotten();
  }
  CHECK(n_forgotten > 0);
}

void parts_add_up() {
  for (unsigned seed = 0; seed < unsigned{worlds(60)}; ++seed) {
    std::mt19937 random(seed);
    const World world = random_world(random, 3 + seed % 20, 2 + seed % 4);
    const Forest<std::int64_t> forest = world.build<std::int64_t>();
    const MaskSpace masks(forest, {0}, 1);
    if (masks.size() < 2) continue;
    const EliminationLimits limits{kAnySteps, kAnyBytes, nullptr, seed % 3 == 0 ? kMaxPaths : 4};
    SubproblemSolver<std::int64_t, CountValues> solver(forest, masks, 1, CountValues{});
    const auto value = [&](SolutionId id) {
      CHECK(solver.values().value(id).size() == 1);
      return solver.values().value(id)[0];
    };
    const auto count = [&](const Part& part) {
      return value(solver.solve({{{0, 1}}, Combine::kAny, part}, limits));
    };
    const std::uint64_t whole = count({});
    const std::uint64_t everything = value(kAllSolve);
    for (const std::uint32_t n_bits : {1U, 3U, 6U}) {
      std::uint64_t n_solved = 0;
      std::uint64_t n_all = 0;
      for (std::uint32_t part = 0; part < 1U << n_bits; ++part) {
        const std::uint64_t solved = count({part, n_bits});
        const std::uint64_t size = value(solver.whole_part());
        CHECK(solved <= size);
        n_solved += solved;
        n_all += size;
      }
      CHECK(n_solved == whole);
      CHECK(n_all == everything);
    }
  }
}

// Weights of all cells, some of them 0, as running sums from 0 to 1; and each cell's own.
struct RandomWeights {
  std::vector<std::vector<long double>> cumulative;
  std::vector<std::vector<double>> of_cell;

  RandomWeights(const Topology& forest, std::mt19937& random) {
    for (const Axis& axis : forest.axes) {
      std::vector<long double> sums{0.0L};
      for (Cell cell = 0; cell < axis.n_cells; ++cell) {
        sums.push_back(sums.back() + (cell == 0 ? 1 : random() % 4));
      }
      const long double total = sums.back();
      for (long double& sum : sums) sum /= total;
      of_cell.emplace_back();
      for (std::size_t c = 0; c + 1 < sums.size(); ++c) {
        of_cell.back().push_back(static_cast<double>(sums[c + 1] - sums[c]));
      }
      cumulative.push_back(std::move(sums));
    }
  }
};

// The weight of the x for which the masks of the pair differ by more than the gap, x by x.
double weight_by_enumeration(const Forest<std::int64_t>& forest, const MaskSpace& masks,
                             const MaskPair& pair, std::int64_t gap, const RandomWeights& weights) {
  double total = 0.0;
  std::vector<Cell> region(forest.axes.size(), 0);
  const auto visit = [&](auto&& self, std::size_t f, double weight) -> void {
    if (f == region.size()) {
      masks.write_cells(pair.first, region);
      const std::int64_t first = forest.sum(region);
      masks.write_cells(pair.second, region);
      if (std::abs(first - forest.sum(region)) > gap) total += weight;
      return;
    }
    if (masks.is_sensitive(static_cast<Feature>(f))) return self(self, f + 1, weight);
    for (Cell cell = 0; cell < forest.axes[f].n_cells; ++cell) {
      region[f] = cell;
      self(self, f + 1, weight * weights.of_cell[f][static_cast<std::size_t>(cell)]);
    }
  };
  visit(visit, 0, 1.0);
  return total;
}

// A weighted counter gives the weight of the solutions in each part, and of the part itself.
void weights_of_parts_add_up() {
  for (unsigned seed = 0; seed < unsigned{worlds(30)}; ++seed) {
    std::mt19937 random(seed);
    const World world = random_world(random, 3 + seed % 8, 2 + seed % 3);
    const Forest<std::int64_t> forest = world.build<std::int64_t>();
    const MaskSpace masks(forest, {0}, 1);
    const RandomWeights weights(forest, random);
    const MaskPair pair{0, 1};
    ExactCounter<std::int64_t, WeightValues> counter(forest, masks, 1,
                                                     WeightValues(weights.cumulative));
    const double expected = weight_by_enumeration(forest, masks, pair, 1, weights);
    for (const std::uint32_t n_bits : {0U, 1U, 3U, 6U}) {
      std::vector<ExactTask> tasks;
      for (std::uint32_t part = 0; part < 1U << n_bits; ++part) {
        tasks.push_back({{pair}, Combine::kAny, {part, n_bits}});
      }
      counter.start(tasks, {kAnySteps, kAnyBytes, 2, seed % 3 == 0 ? kMaxPaths : 4});
      while (!counter.wait(0.01)) continue;
      double solved = 0.0;
      double all = 0.0;
      for (const auto& result : counter.results()) {
        CHECK(result.status == TaskStatus::kSolved && result.total == 1.0);
        CHECK(0.0 <= result.count && result.count <= result.size + 1e-12);
        solved += result.count;
        all += result.size;
      }
      CHECK(std::abs(solved - expected) < 1e-12 && std::abs(all - 1.0) < 1e-12);
    }
  }
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
  independent_groups_are_counted_as_by_enumeration<std::int64_t>();
  independent_groups_are_counted_as_by_enumeration<Int128>();
  overlaps_and_unions_add_up();
  sums_at_the_edge_of_64_bits_do_not_wrap();
  a_memo_that_is_emptied_changes_no_answer();
  parts_add_up();
  weights_of_parts_add_up();
  limits_are_kept_and_said();
  return failures;
}

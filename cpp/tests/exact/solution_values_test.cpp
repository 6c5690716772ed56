// Counts of any size against 128-bit arithmetic, and weights against plain products.
#include "xcount/exact/solution_values.hpp"

#include <numeric>

#include "check.hpp"
#include "random_world.hpp"

using namespace xcount;
using namespace xcount::test;

namespace {

UInt128 read(const CountValues& values, SolutionId id) {
  UInt128 result = 0;
  const CountValues::Number limbs = values.number(id);
  for (std::size_t i = limbs.size(); i-- > 0;) {
    CHECK(i < 2 || limbs[i] == 0);
    result = (result << 64) | limbs[i];
  }
  return result;
}

std::vector<Feature> all_features(std::size_t n) {
  std::vector<Feature> features(n);
  std::iota(features.begin(), features.end(), Feature{0});
  return features;
}

// Random sums of solutions, narrowed along some features, tracked beside in 128 bits. A solution
// may be narrowed along what it is free of alone.
void counts_are_exact() {
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::int32_t> cells(1 + random() % 12);
    UInt128 everything = 1;
    for (std::int32_t& n : cells) {
      n = static_cast<std::int32_t>(1 + random() % 900);
      everything *= static_cast<UInt128>(n);
    }
    const Forest<std::int64_t> forest = World(cells).build<std::int64_t>();
    CountValues values;
    values.reset(forest, all_features(cells.size()));
    CHECK(read(values, kNoneSolve) == 0 && read(values, kAllSolve) == everything);
    CHECK(values.share(kAllSolve) == 1.0 && values.share(kNoneSolve) == 0.0);
    SolutionId last = kAllSolve;
    UInt128 expected = everything;
    for (std::uint32_t f = 0; f < cells.size(); ++f) {
      CountValues::Sum sum;
      values.start(sum);
      const auto begin = static_cast<Cell>(random() % static_cast<unsigned>(cells[f]));
      const Stretch part{f, begin, cells[f]};
      values.add(sum, last, std::vector<Stretch>{part});
      values.add(sum, kNoneSolve, std::vector<Stretch>{part});
      last = values.finish(sum);
      const auto n_cells = static_cast<UInt128>(cells[f]);
      expected = expected / n_cells * static_cast<UInt128>(cells[f] - begin);
      CHECK(read(values, last) == expected);
      const double share = static_cast<double>(expected) / static_cast<double>(everything);
      CHECK(std::abs(values.share(last) - share) <= 1e-12 * share);
    }
    values.forget();
    CHECK(values.size() == 2 && read(values, kAllSolve) == everything);
  }
}

// The volume of a box over some features stands for that many combinations, times the others.
void volumes_become_counts() {
  const Forest<std::int64_t> forest = World({3, 5, 7, 11}).build<std::int64_t>();
  CountValues values;
  values.reset(forest, all_features(4));
  CHECK(read(values, values.finish(CountValues::Total{6}, std::vector<std::uint32_t>{0, 2})) ==
        6 * 5 * 11);
  CHECK(values.finish(CountValues::Total{0}, std::vector<std::uint32_t>{1}) == kNoneSolve);
  const Stretch stretch{2, 1, 6};
  CHECK(values.volume(stretch) == 5 && values.before(15, stretch, 3) == 6);
  CHECK(values.weight(stretch) == 5.0 / 7.0);
}

// Beyond 64 bits: a box of 2^100 cells, of which 2^90 + 3 solve.
void wide_volumes_become_counts() {
  const Forest<std::int64_t> forest =
      World(std::vector<std::int32_t>(5, 1 << 20)).build<std::int64_t>();
  CountValues values;
  values.reset(forest, all_features(5));
  const UInt128 volume = (UInt128{1} << 90) + 3;
  CHECK(read(values, values.finish(volume, std::vector<std::uint32_t>{0, 1, 2, 3, 4})) == volume);
}

void weights_multiply_and_add_up() {
  const Forest<std::int64_t> forest = World({2, 3}).build<std::int64_t>();
  WeightValues values({{0.0L, 0.25L, 1.0L}, {0.0L, 0.5L, 0.5L, 1.0L}});
  values.reset(forest, all_features(2));
  CHECK(values.number(kNoneSolve) == 0.0 && values.number(kAllSolve) == 1.0);
  CHECK(values.weight({0, 1, 2}) == 0.75 && values.weight({1, 1, 2}) == 0.0);
  WeightValues::Sum sum;
  values.start(sum);
  values.add(sum, kAllSolve, std::vector<Stretch>{{0, 0, 1}, {1, 0, 2}});
  values.add(sum, kAllSolve, std::vector<Stretch>{{0, 1, 2}});
  CHECK(values.number(values.finish(sum)) == 0.125 + 0.75);
  CHECK(values.before(0.5, {0, 0, 2}, 1) == 0.125);
  CHECK(values.before(0.0, {1, 1, 2}, 2) == 0.0);  // nothing of nothing, not a quotient 0 / 0
}

}  // namespace

int main() {
  counts_are_exact();
  volumes_become_counts();
  wide_volumes_become_counts();
  weights_multiply_and_add_up();
  return failures;
}

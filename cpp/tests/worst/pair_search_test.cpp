// The search finds the largest change that comparing all pairs of regions finds.
#include "xcount/worst/pair_search.hpp"

#include <cmath>
#include <random>

#include "check.hpp"
#include "random_world.hpp"

using namespace xcount;
using xcount::test::failures;
using xcount::test::random_world;
using xcount::test::World;
using xcount::test::worlds;

namespace {

constexpr std::size_t kBytes = std::size_t{1} << 28;
constexpr std::uint64_t kAll = std::uint64_t{1} << 40;

// Calls visit(start, target) for all pairs of regions that differ in features 0 and 3 only, within
// the distance.
template <class Visit>
void for_each_pair(const Topology& forest, std::int64_t distance, Visit visit) {
  for (Cell b = 0; b < 90; ++b) {
    for (Cell c = 0; c < 4; ++c) {
      for (Cell start = 0; start < 15; ++start) {
        for (Cell target = 0; target < 15; ++target) {
          const Cell from0 = start / 5, from3 = start % 5, to0 = target / 5, to3 = target % 5;
          if (std::abs(from0 - to0) + (from3 != to3 ? 1 : 0) > distance) continue;
          visit(std::vector<Cell>{from0, b, c, from3}, std::vector<Cell>{to0, b, c, to3});
        }
      }
    }
  }
  static_cast<void>(forest);
}

const std::vector<PairBox> kEverywhere{{{0, 2}, {0, 2}, {0, 4}, {0, 4}}};

template <class Value>
void check_margin(const World& world, std::int64_t distance) {
  const Forest<Value> forest = world.build<Value>();
  Value largest{};
  for_each_pair(forest, distance, [&](const auto& start, const auto& target) {
    const Value change = forest.sum(target) - forest.sum(start);
    if (largest < change) largest = change;
  });
  std::optional<typename PairSearch<Value, MarginObjective>::Pair> first;
  for (const unsigned n_threads : {1U, 3U}) {
    PairSearch<Value, MarginObjective> search(forest, {0, 3}, distance, {}, kEverywhere, Value{},
                                              7);
    Stop stop;
    while (!search.is_done()) {
      search.advance(32, n_threads, kBytes, false, stop);
      CHECK(search.difference() <= largest);
      CHECK(largest <= Value(search.high()));
    }
    CHECK(search.difference() == largest);
    CHECK(search.has_pair() == (Value{} < largest));
    if (!search.pair()) continue;
    CHECK(forest.sum(search.pair()->target) - forest.sum(search.pair()->start) == largest);
    CHECK(!first || first->start == search.pair()->start);
    first = search.pair();
  }
}

void the_largest_change_is_found() {
  std::mt19937 random(5);
  for (int i = 0; i < worlds(12); ++i) {
    const World world = random_world(random, 4, 4);
    check_margin<std::int64_t>(world, 1 + static_cast<std::int64_t>(random() % 3));
    check_margin<Int128>(world, 10);
  }
}

void the_largest_change_of_a_probability_is_found() {
  std::mt19937 random(6);
  for (int i = 0; i < worlds(8); ++i) {
    const Forest<std::int64_t> forest = random_world(random, 4, 3).build<std::int64_t>();
    const double base = static_cast<double>(random() % 7) - 3;
    double largest = 0;
    for_each_pair(forest, 10, [&](const auto& start, const auto& target) {
      const double a = base + 0.5 * static_cast<double>(forest.sum(target));
      const double b = base + 0.5 * static_cast<double>(forest.sum(start));
      largest = std::max(largest, 1 / (1 + std::exp(-a)) - 1 / (1 + std::exp(-b)));
    });
    PairSearch<std::int64_t, ProbabilityObjective> search(
        forest, {0, 3}, std::nullopt, ProbabilityObjective{1.0, -1, base}, kEverywhere, 0, 7);
    Stop stop;
    search.advance(kAll, 1, kBytes, false, stop);
    CHECK(search.is_done());
    CHECK(std::abs(search.low() - largest) < 1e-11);
  }
}

void nothing_above_the_floor_is_proved() {
  std::mt19937 random(8);
  const Forest<std::int64_t> forest = random_world(random, 4, 4).build<std::int64_t>();
  Stop stop;
  using Search = PairSearch<std::int64_t, MarginObjective>;
  Search all(forest, {0, 3}, std::nullopt, {}, kEverywhere, 0, 1);
  all.advance(kAll, 1, kBytes, false, stop);
  Search none(forest, {0, 3}, std::nullopt, {}, kEverywhere, all.difference(), 1);
  none.advance(kAll, 1, kBytes, true, stop);
  CHECK(none.is_done() && !none.has_pair());
  Search some(forest, {0, 3}, std::nullopt, {}, kEverywhere, all.difference() - 1, 1);
  some.advance(kAll, 1, kBytes, true, stop);
  CHECK(some.has_pair() && some.difference() == all.difference());
}

void memory_ends_the_search_with_bounds() {
  std::mt19937 random(9);
  const Forest<std::int64_t> forest = random_world(random, 6, 4).build<std::int64_t>();
  PairSearch<std::int64_t, MarginObjective> search(forest, {0, 3}, std::nullopt, {}, kEverywhere, 0,
                                                   1);
  Stop stop;
  search.advance(kAll, 1, 1, false, stop);
  CHECK(search.is_full());
  CHECK(search.low() <= search.high());
}

}  // namespace

int main() {
  the_largest_change_is_found();
  the_largest_change_of_a_probability_is_found();
  nothing_above_the_floor_is_proved();
  memory_ends_the_search_with_bounds();
  return failures;
}

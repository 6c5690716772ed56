// The boxes hold all pairs that comparing all pairs of regions finds, whenever the refinement
// stops.
#include "xcount/worst/pair_cover.hpp"

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

template <class Value>
using Projection = typename PairCover<Value>::Projection;

// The masks of the boxes around the cells that features 1 and 2 have.
template <class Value>
std::uint64_t masks_around(const Projection<Value>& boxes, Cell b, Cell c) {
  std::uint64_t found = 0;
  for (std::size_t box = 0; box < boxes.n_masks.size(); ++box) {
    bool holds = true;
    for (std::size_t a = 0; a < boxes.axes.size(); ++a) {
      const Cell* run = &boxes.runs[2 * (box * boxes.axes.size() + a)];
      const Cell own = boxes.axes[a].feature == 1 ? b : c;
      holds = holds && run[0] <= own && own <= run[1];
    }
    if (holds) found += boxes.n_masks[box];
  }
  return found;
}

// How many of the 15 masks of features 0 and 3 count at these cells.
template <class Value>
std::uint64_t sensitive_masks(const Forest<Value>& forest, Cell b, Cell c, std::int64_t distance,
                              const Value& threshold, Direction direction) {
  std::uint64_t found = 0;
  for (Cell own = 0; own < 15; ++own) {
    bool counts = false;
    for (Cell other = 0; other < 15; ++other) {
      const Cell far = std::abs(own / 5 - other / 5) + (own % 5 != other % 5 ? 1 : 0);
      if (far > distance) continue;
      const Value rise = forest.sum(std::vector<Cell>{other / 5, b, c, other % 5}) -
                         forest.sum(std::vector<Cell>{own / 5, b, c, own % 5});
      const bool up = threshold < rise, down = threshold < Value{} - rise;
      counts =
          counts || (up && direction != Direction::kDown) || (down && direction != Direction::kUp);
    }
    found += counts ? 1 : 0;
  }
  return found;
}

template <class Value>
void check_cover(const World& world, std::int64_t distance, Direction direction) {
  const Forest<Value> forest = world.build<Value>();
  const Value threshold(5);
  PairCover<Value> cover(forest, {0, 3}, distance, threshold, direction);
  Stop stop;
  for (const std::uint64_t work : {std::uint64_t{0}, std::uint64_t{3000}, kAll}) {
    cover.refine(work, 2, kBytes, stop);
    const auto boxes = cover.projection();
    std::uint64_t found = 0, around = 0;
    for (Cell b = 0; b < 90; ++b) {
      for (Cell c = 0; c < 4; ++c) {
        const auto own = sensitive_masks<Value>(forest, b, c, distance, threshold, direction);
        const auto held = masks_around<Value>(boxes, b, c);
        CHECK(own <= held);
        found += own;
        around += held > 0 ? 1 : 0;
      }
    }
    CHECK(found > 0 || work < kAll || boxes.n_masks.empty());
    // Refined to the end, a box holds only cells at which some mask counts.
    if (work == kAll) CHECK(cover.n_open() == 0 && around <= found);
  }
}

void all_changes_beyond_the_threshold_are_held() {
  std::mt19937 random(15);
  for (int i = 0; i < worlds(6); ++i) {
    const World world = random_world(random, 4, 4);
    for (const Direction direction : {Direction::kAny, Direction::kUp, Direction::kDown}) {
      check_cover<std::int64_t>(world, 10, direction);
    }
    check_cover<std::int64_t>(world, 1, Direction::kAny);
    check_cover<Int128>(world, 2, Direction::kUp);
  }
}

void threads_make_no_difference() {
  std::mt19937 random(16);
  const auto forest = random_world(random, 8, 5).build<std::int64_t>();
  std::vector<Cell> first;
  for (const unsigned n_threads : {1U, 3U}) {
    PairCover<std::int64_t> cover(forest, {0, 3}, std::nullopt, 8, Direction::kAny);
    Stop stop;
    cover.refine(20'000, n_threads, kBytes, stop);
    CHECK(cover.n_open() > 1);
    if (first.empty()) first = cover.projection().runs;
    CHECK(first == cover.projection().runs);
  }
}

void no_memory_and_no_time_leave_the_cover_whole() {
  std::mt19937 random(17);
  const auto forest = random_world(random, 6, 4).build<std::int64_t>();
  PairCover<std::int64_t> cover(forest, {0, 3}, std::nullopt, 5, Direction::kAny);
  Stop stop;
  cover.refine(kAll, 1, 1, stop);
  CHECK(cover.is_full() && cover.n_open() == 1 && cover.work() == 0);
  Stop at_once(0.0);
  cover.refine(kAll, 1, kBytes, at_once);
  CHECK(!cover.is_full() && cover.n_open() == 1);
  CHECK(cover.bytes() > 0);
}

}  // namespace

int main() {
  all_changes_beyond_the_threshold_are_held();
  threads_make_no_difference();
  no_memory_and_no_time_leave_the_cover_whole();
  return failures;
}

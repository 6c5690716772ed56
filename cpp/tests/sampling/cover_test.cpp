// Covers against enumeration: what is decided is decided right, and samples have the right mean.
#include "xcount/sampling/cover.hpp"

#include <cmath>

#include "check.hpp"
#include "residual_trees.hpp"

using namespace xcount;
using namespace xcount::test;

namespace {

// The share of the combinations of non-sensitive cells that solve the task.
double share_of(const Forest<std::int64_t>& forest, const MaskSpace& masks, std::int64_t gap,
                const CoverTask& task) {
  std::uint64_t n_all = 0;
  std::uint64_t n_solved = 0;
  for_each_region(forest, [&](std::span<const Cell> region) {
    std::vector<Cell> at(region.begin(), region.end());
    const auto value = [&](MaskIndex mask) {
      masks.write_cells(mask, at);
      return forest.sum(at);
    };
    ++n_all;
    for (const auto& [a, b] : task.pairs) {
      if (std::abs(value(a) - value(b)) <= gap) continue;
      ++n_solved;
      break;
    }
  });
  return static_cast<double>(n_solved) / static_cast<double>(n_all);
}

struct Question {
  explicit Question(unsigned seed) : forest(make(seed)), masks(forest, {0}, 1) {}
  static Forest<std::int64_t> make(unsigned seed) {
    std::mt19937 random(seed);
    return random_world(random, 5, 3).build<std::int64_t>();
  }
  Forest<std::int64_t> forest;
  MaskSpace masks;
};

// However far it is refined: solved <= share <= solved + open, and at the end nothing is open.
void what_is_decided_bounds_the_share() {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Question question(seed);
    const std::vector<CoverTask> tasks{{{{0, 1}}, 2}, {{{0, 1}, {1, 2}}, 1}};
    double expected = 0.0;
    for (const CoverTask& task : tasks) {
      expected += task.multiplicity * share_of(question.forest, question.masks, 2, task);
    }
    Cover<std::int64_t> cover(question.forest, question.masks, 2, tasks);
    auto open = static_cast<double>(cover.open());
    for (int i = 0; i < 50 && cover.open() > 0; ++i) {
      const auto solved = static_cast<double>(cover.solved());
      open = static_cast<double>(cover.open());
      CHECK(solved <= expected + 1e-9 && expected <= solved + open + 1e-9);
      cover.refine(i < 10 ? 20 : 100'000, 60.0, 1);
      CHECK(static_cast<double>(cover.open()) <= open + 1e-9);
    }
    CHECK(cover.open() == 0);
    CHECK(std::abs(static_cast<double>(cover.solved()) - expected) < 1e-9);
  }
}

// The mean of samples from the frontier, whoever decides them: with many tasks it is the residuals,
// with few it is the trees. Five standard deviations: one miss in two million such tests.
void samples_have_the_mean_of_the_frontier() {
  for (const std::size_t n_copies : {std::size_t{1}, std::size_t{20}}) {
    for (unsigned seed = 0; seed < 6; ++seed) {
      const Question question(seed);
      const CoverTask task{{{0, 1}, {1, 2}}, 1};
      Cover<std::int64_t> cover(question.forest, question.masks, 2,
                                std::vector<CoverTask>(n_copies, task));
      cover.refine(40 * n_copies, 60.0, 1);
      if (!(cover.open() > 0)) continue;
      cover.freeze();
      const double copies = static_cast<double>(n_copies);
      const double share = share_of(question.forest, question.masks, 2, task) * copies;
      const double expected =
          (share - static_cast<double>(cover.solved())) / static_cast<double>(cover.open());
      Stop never;
      const Outcomes drawn = cover.draw(seed, 1, 0, 100, 2, never);
      const double n = 100.0 * 256.0;
      const double mean = static_cast<double>(drawn.histogram[1]) / n;
      CHECK(std::abs(mean - expected) < 5.0 * std::sqrt(0.25 / n));
    }
  }
}

}  // namespace

int main() {
  what_is_decided_bounds_the_share();
  samples_have_the_mean_of_the_frontier();
  return failures;
}

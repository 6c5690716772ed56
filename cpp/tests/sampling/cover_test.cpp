// Covers against enumeration: what is decided is decided right, and samples have the right mean.
#include "xcount/sampling/cover.hpp"

#include <cmath>

#include "check.hpp"
#include "residual_trees.hpp"

using namespace xcount;
using namespace xcount::test;

namespace {

constexpr std::size_t kNoLimit = std::size_t{1} << 60;

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
    std::size_t n_held = 0;
    for (const auto& [a, b] : task.pairs) n_held += std::abs(value(a) - value(b)) > gap ? 1 : 0;
    ++n_all;
    n_solved += (task.combine == Combine::kAny ? n_held > 0 : n_held == task.pairs.size()) ? 1 : 0;
  });
  return static_cast<double>(n_solved) / static_cast<double>(n_all);
}

// What is surely solved and what is open, as shares times multiplicity.
struct Known {
  double solved = 0.0, open = 0.0;
};

Known known(const Cover<std::int64_t>& cover, const std::vector<CoverTask>& tasks) {
  Known sum;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto total = static_cast<double>(cover.task(i).total()[0]);  // of few features: one limb
    sum.solved += tasks[i].multiplicity * static_cast<double>(cover.task(i).solved()[0]) / total;
    sum.open += tasks[i].multiplicity * static_cast<double>(cover.task(i).open()[0]) / total;
  }
  return sum;
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
// With small states enumerated, and without.
void what_is_decided_bounds_the_share() {
  for (unsigned seed = 0; seed < unsigned{worlds(40)}; ++seed) {
    const Question question(seed);
    const std::vector<CoverTask> tasks{{{{0, 1}}, 2, Combine::kAny},
                                       {{{0, 1}, {1, 2}}, 1, Combine::kAny},
                                       {{{0, 1}, {1, 2}}, 3, Combine::kAll}};
    double expected = 0.0;
    for (const CoverTask& task : tasks) {
      expected += task.multiplicity * share_of(question.forest, question.masks, 2, task);
    }
    Cover<std::int64_t> cover(question.forest, question.masks, 2, tasks);
    const std::uint64_t max_paths = seed % 2 == 0 ? 0 : 16;
    Known last = known(cover, tasks);
    for (int i = 0; i < 2000 && cover.n_open() > 0; ++i) {
      cover.refine(i < 10 ? 20 : 100'000, kNoLimit, 1, max_paths);
      const Known now = known(cover, tasks);
      CHECK(now.solved <= expected + 1e-9 && expected <= now.solved + now.open + 1e-9);
      CHECK(now.solved >= last.solved && now.solved + now.open <= last.solved + last.open + 1e-9);
      last = now;
    }
    CHECK(cover.n_open() == 0 && last.open == 0.0);
    CHECK(std::abs(last.solved - expected) < 1e-9);
  }
}

// What is done does not depend on how the work is divided into calls.
void slices_leave_no_trace() {
  const Question question(3);
  DifferenceBuilder<std::int64_t> builder(question.forest, question.masks);
  const CoverTask task{{{0, 1}, {1, 2}}};
  TaskCover<std::int64_t> whole(question.forest, builder, 2, task, [] {});
  TaskCover<std::int64_t> sliced(question.forest, builder, 2, task, [] {});
  whole.refine(3'000, kNoLimit, 0);
  while (sliced.work() < whole.work()) sliced.refine(1, kNoLimit, 0);
  CHECK(whole.n_open() > 0 && sliced.work() == whole.work());
  CHECK(sliced.solved() == whole.solved() && sliced.open() == whole.open());
}

// A cover that may hold no more than it holds stays as it is, and says so.
void memory_is_kept() {
  const Question question(3);
  const std::vector<CoverTask> tasks{{{{0, 1}, {1, 2}}}};
  Cover<std::int64_t> cover(question.forest, question.masks, 2, tasks);
  cover.refine(2'000, kNoLimit, 1, 0);
  const Known before = known(cover, tasks);
  CHECK(!cover.is_full() && before.open > 0.0);
  cover.refine(100'000, cover.bytes() / 2, 1, 0);
  CHECK(cover.is_full() && known(cover, tasks).open == before.open);
  cover.refine(1'000'000'000, kNoLimit, 1, 0);
  CHECK(cover.n_open() == 0);
}

// The mean of samples from the frontier, whoever decides them: with many tasks it is the residuals,
// with few it is the trees. Five standard deviations: one miss in two million such tests.
void samples_have_the_mean_of_the_frontier() {
  for (const std::size_t n_copies : {std::size_t{1}, std::size_t{20}}) {
    for (unsigned seed = 0; seed < unsigned{worlds(12)}; ++seed) {
      const Question question(seed);
      const CoverTask task{{{0, 1}, {1, 2}}, 1, seed % 2 == 0 ? Combine::kAny : Combine::kAll};
      const std::vector<CoverTask> tasks(n_copies, task);
      Cover<std::int64_t> cover(question.forest, question.masks, 2, tasks);
      cover.refine(200 * n_copies, kNoLimit, 1, 0);
      if (cover.n_open() == 0) continue;
      cover.freeze();
      const double copies = static_cast<double>(n_copies);
      const double share = share_of(question.forest, question.masks, 2, task) * copies;
      const Known found = known(cover, tasks);
      const double expected = (share - found.solved) / found.open;
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
  slices_leave_no_trace();
  memory_is_kept();
  samples_have_the_mean_of_the_frontier();
  return failures;
}

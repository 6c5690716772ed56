// Everything that runs on several threads, on several threads: the same as on one. Built with the
// thread sanitizer, this is what it watches.
#include <numeric>

#include "check.hpp"
#include "random_world.hpp"
#include "xcount/exact/brute.hpp"
#include "xcount/exact/corner_sums.hpp"
#include "xcount/exact/counter.hpp"
#include "xcount/population/mixture.hpp"
#include "xcount/sampling/cover.hpp"
#include "xcount/sampling/region_sampler.hpp"
#include "xcount/sampling/sampler.hpp"
#include "xcount/support/parallel.hpp"

using namespace xcount;
using xcount::test::failures;
using xcount::test::random_world;
using xcount::test::throws;
using xcount::test::World;

namespace {

constexpr std::uint64_t kAnySteps = ~std::uint64_t{0};
constexpr std::size_t kAnyBytes = ~std::size_t{0};
constexpr unsigned kThreads = 4;

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
    for (const auto& result : counter.results()) {
      CHECK(result.status != TaskStatus::kSteps && result.status != TaskStatus::kMemory);
    }
  }
  std::vector<std::vector<std::uint64_t>> counts[2];
  for (const unsigned n_threads : {1U, 4U}) {
    counter.start(tasks, {kAnySteps, kAnyBytes, n_threads});
    while (!counter.wait(0.01)) continue;
    CHECK(counter.n_done() == tasks.size());
    for (const auto& result : counter.results()) {
      CHECK(result.status == TaskStatus::kSolved);
      counts[n_threads / 4].push_back(result.count);
    }
  }
  CHECK(counts[0] == counts[1]);
  counter.start(tasks, limits);
  // Destroyed while its threads work: they stop first.
}

// What every test below asks about.
struct Question {
  explicit Question(unsigned seed)
      : forest(make_world(seed).build<std::int64_t>()), masks(forest, {0, 3}, 2) {}

  static World make_world(unsigned seed) {
    std::mt19937 random(seed);
    return random_world(random, 12, 4);
  }

  [[nodiscard]] MaskQuestion all_masks() const {
    MaskQuestion question;
    question.unresolved.resize(static_cast<std::size_t>(masks.size()));
    std::iota(question.unresolved.begin(), question.unresolved.end(), MaskIndex{0});
    return question;
  }

  Forest<std::int64_t> forest;
  MaskSpace masks;
  std::int64_t gap = 9;
};

void pairs_are_looked_at_on_threads() {
  const Question question(3);
  ExactCounter<std::int64_t, CountValues> counter(question.forest, question.masks, 20,
                                                  CountValues{});
  std::vector<MaskPair> pairs;
  for (const ExactTask& task : all_pairs(question.masks)) pairs.push_back(task.pairs[0]);
  Stop never;
  CHECK(pairs.size() > 16 * kThreads);
  CHECK(counter.live(pairs, 1, never) == counter.live(pairs, kThreads, never));
  Stop at_once(0.0);
  const std::vector<std::uint8_t> unchecked = counter.live(pairs, kThreads, at_once);
  CHECK(std::accumulate(unchecked.begin(), unchecked.end(), std::size_t{0}) == pairs.size());
}

void samples_are_drawn_on_threads() {
  const Question question(5);
  const Sampler<std::int64_t> sampler(question.forest, question.masks, question.gap,
                                      question.all_masks());
  Stop never;
  const Outcomes one = sampler.draw(1, 2, 3, 40, 1, never);
  const Outcomes many = sampler.draw(1, 2, 3, 40, kThreads, never);
  CHECK(one.histogram == many.histogram && one.hits == many.hits);
  // One sampler serves several draws at a time.
  std::vector<Outcomes> outcomes(kThreads);
  parallel(kThreads, kThreads, [&](std::size_t i) {
    Stop mine;
    outcomes[i] = sampler.draw(1, 2, 3, 40, 2, mine);
  });
  for (const Outcomes& other : outcomes) CHECK(one.hits == other.hits);
}

void single_regions_are_drawn_on_threads() {
  const Question question(5);
  RegionQuestion<std::int64_t> asked;
  asked.forests = {&question.forest};
  asked.bases = {0};
  asked.sensitive = {0, 3};
  asked.distance = 2;
  asked.change = {ChangeForm::kGap, Direction::kAny, question.gap};
  const RegionSampler<std::int64_t> sampler(asked);
  Stop never;
  const RegionOutcomes one = sampler.draw(1, 2, 3, 40, 1, never);
  const RegionOutcomes many = sampler.draw(1, 2, 3, 40, kThreads, never);
  CHECK(one.outcomes.hits == many.outcomes.hits && one.upper.hits == many.upper.hits);
  CHECK(one.n_open == many.n_open);
}

void a_stop_is_asked_for_by_its_maker_and_obeyed_by_all() {
  const Question question(5);
  const Sampler<std::int64_t> sampler(question.forest, question.masks, question.gap,
                                      question.all_masks());
  const auto caller = std::this_thread::get_id();
  Stop stop(1e9, [&] {
    CHECK(std::this_thread::get_id() == caller);
    return true;
  });
  CHECK(sampler.draw(1, 2, 3, 100'000, kThreads, stop).hits.empty());
}

void covers_are_refined_and_sampled_on_threads() {
  const Question question(7);
  const auto refined = [&](unsigned n_threads) {
    std::vector<CoverTask> tasks;
    for (const ExactTask& task : all_pairs(question.masks)) tasks.push_back({task.pairs});
    Cover<std::int64_t> cover(question.forest, question.masks, question.gap, tasks);
    for (int i = 0; i < 3; ++i) {
      cover.refine(4'000, std::size_t{1} << 30, n_threads, 0);
    }
    cover.freeze();
    return cover;
  };
  const Cover<std::int64_t> one = refined(1);
  const Cover<std::int64_t> many = refined(kThreads);
  CHECK(one.n_open() > 0 && one.n_open() == many.n_open() && one.work() == many.work());
  for (std::size_t i = 0; i < one.n_tasks(); ++i) {
    CHECK(one.task(i).solved() == many.task(i).solved());
    CHECK(one.task(i).open() == many.task(i).open());
  }
  Stop never;
  const Outcomes expected = one.draw(4, 5, 6, 20, 1, never);
  CHECK(expected.hits == many.draw(4, 5, 6, 20, kThreads, never).hits);
}

void enumeration_runs_on_threads() {
  const Question question(9);
  const BruteForce<std::int64_t> brute(question.forest, question.masks, question.gap);
  const std::uint64_t end = std::min<std::uint64_t>(brute.n_combinations(), 300);
  CHECK(brute.count(0, end, 1) == brute.count(0, end, kThreads));
}

void regions_are_visited_on_threads() {
  const Question question(11);
  const Forest<std::int64_t>* forest = &question.forest;
  const std::int64_t base = 0;
  const Change<std::int64_t> changes[] = {{ChangeForm::kGap, Direction::kAny, question.gap},
                                          {ChangeForm::kFlip, Direction::kUp, 0}};
  CornerQuestion<std::int64_t> asked;
  asked.forests = {&forest, 1};
  asked.bases = {&base, 1};
  const MaskSpace masks(question.forest, {0}, 2);
  asked.masks = &masks;
  asked.changes = changes;
  asked.block_bytes = 1;  // the smallest there are
  Stop never;
  const std::unique_ptr<CornerSums> sums = make_corner_sums(asked, never);
  CHECK(sums->n_blocks() >= kThreads);
  const CornerCounts one = sums->count(0, sums->n_blocks(), 1, never);
  const CornerCounts many = sums->count(0, sums->n_blocks(), kThreads, never);
  CHECK(one.n_finished == sums->n_blocks() && one.counts == many.counts);
  CHECK(std::accumulate(one.counts.begin(), one.counts.end(), std::uint64_t{0}) > 0);
}

void mixtures_are_fitted_on_threads() {
  std::mt19937 random(15);
  std::vector<std::int32_t> cells(6'000);
  for (std::int32_t& cell : cells) cell = static_cast<std::int32_t>(random() % 3);
  Stop never;
  Mixture one(cells, {3, 3, 3}, 4, 0.5, 3);
  Mixture many(cells, {3, 3, 3}, 4, 0.5, 3);
  for (int i = 0; i < 3; ++i) CHECK(one.step(1, never) == many.step(kThreads, never));
  CHECK(one.probabilities() == many.probabilities());
}

void what_a_thread_throws_reaches_the_caller() {
  for (const unsigned n_threads : {1U, kThreads}) {
    std::atomic<int> n_done{0};
    CHECK(throws<std::bad_alloc>([&] {
      parallel(1'000, n_threads, [&](std::size_t i) {
        if (i == 5) throw std::bad_alloc();
        ++n_done;
      });
    }));
    CHECK(n_done < 1'000);
  }
}

}  // namespace

int main() {
  threads_start_stop_and_start_again();
  pairs_are_looked_at_on_threads();
  samples_are_drawn_on_threads();
  single_regions_are_drawn_on_threads();
  a_stop_is_asked_for_by_its_maker_and_obeyed_by_all();
  covers_are_refined_and_sampled_on_threads();
  enumeration_runs_on_threads();
  regions_are_visited_on_threads();
  mixtures_are_fitted_on_threads();
  what_a_thread_throws_reaches_the_caller();
  return failures;
}

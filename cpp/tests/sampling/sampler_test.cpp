// The sampler decides figure 1 right, draws the same on any number of threads, and refuses
// nonsense.
#include "xcount/sampling/sampler.hpp"

#include <numeric>

#include "check.hpp"
#include "example_forest.hpp"
#include "xcount/sampling/cover.hpp"

using namespace xcount;
using xcount::test::ExampleArrays;
using xcount::test::failures;
using xcount::test::throws;

namespace {

MaskQuestion all_masks(MaskIndex n) {
  MaskQuestion question;
  question.unresolved.resize(static_cast<std::size_t>(n));
  std::iota(question.unresolved.begin(), question.unresolved.end(), MaskIndex{0});
  return question;
}

template <class Value>
void figure_1_is_decided_cell_by_cell() {
  const Forest<Value> forest = ExampleArrays().build<Value>();
  const MaskSpace masks(forest, {0}, 1);
  const Sampler<Value> sampler(forest, masks, Value(80), all_masks(3));
  const std::vector<Cell> regions{0, 0, 0, 1, 0, 2};  // f1 in its three cells
  const std::vector<std::uint8_t> flags = sampler.decide(regions);
  CHECK(flags.size() == 9);
  CHECK(std::accumulate(flags.begin(), flags.end(), 0) == 2);
}

void draws_do_not_depend_on_threads() {
  const auto forest = ExampleArrays().build<std::int64_t>();
  const MaskSpace masks(forest, {0}, 1);
  const Sampler<std::int64_t> sampler(forest, masks, 80, all_masks(3));
  Stop never;
  const Outcomes one = sampler.draw(7, 1, 0, 20, 1, never);
  const Outcomes three = sampler.draw(7, 1, 0, 20, 3, never);
  CHECK(one.histogram == three.histogram);
  CHECK(one.hits == three.hits);
  const Outcomes later = sampler.draw(7, 1, 10, 10, 2, never);
  CHECK(std::equal(later.hits.begin(), later.hits.end(), one.hits.begin() + 10 * 256));
  const auto n = std::accumulate(one.histogram.begin(), one.histogram.end(), std::uint64_t{0});
  CHECK(n == 20 * Sampler<std::int64_t>::kBatch);
}

// Minutes of batches: only being stopped ends them.
void a_long_draw_ends_when_it_is_asked_to() {
  const auto forest = ExampleArrays().build<std::int64_t>();
  const MaskSpace masks(forest, {0}, 1);
  const Sampler<std::int64_t> sampler(forest, masks, 80, all_masks(3));
  int n_asked = 0;
  Stop second_time(1e9, [&] { return ++n_asked == 2; });
  CHECK(sampler.draw(7, 1, 0, 3'000'000, 3, second_time).hits.empty());
  CHECK(n_asked == 2);
  Stop at_once(0.0);
  CHECK(sampler.draw(7, 1, 0, 3'000'000, 3, at_once).hits.empty());
}

void numbers_below_n_are_uniform() {
  Random random(1, 2, 3);
  std::vector<int> seen(5);
  for (int i = 0; i < 50'000; ++i) ++seen[random.below(5)];
  for (const int n : seen) CHECK(n > 9'500 && n < 10'500);
}

void masks_that_do_not_exist_are_refused() {
  const auto forest = ExampleArrays().build<std::int64_t>();
  const MaskSpace masks(forest, {0}, 1);
  CHECK(throws<std::invalid_argument>(
      [&] { Sampler<std::int64_t>(forest, masks, 80, all_masks(4)); }));
}

template <class Value>
void a_cover_refined_to_the_end_counts_figure_1() {
  const Forest<Value> forest = ExampleArrays().build<Value>();
  const MaskSpace masks(forest, {0}, 1);
  std::vector<CoverTask> tasks;
  tasks.push_back({{{0, 1}}, 1});
  tasks.push_back({{{0, 1}, {1, 2}}, 1});
  tasks.push_back({{{1, 2}}, 1});
  Cover<Value> cover(forest, masks, Value(80), tasks);
  cover.refine(1'000'000, std::size_t{1} << 30, 2);
  CHECK(cover.n_open() == 0);
  // Of three cells of f1, one solves the first two tasks and none the last.
  CHECK(cover.task(0).solved()[0] == 1 && cover.task(0).total()[0] == 3);
  CHECK(cover.task(1).solved()[0] == 1 && cover.task(2).solved()[0] == 0);
  cover.freeze();
  Stop never;
  CHECK(
      throws<std::invalid_argument>([&] { static_cast<void>(cover.draw(0, 0, 0, 1, 1, never)); }));
}

}  // namespace

int main() {
  figure_1_is_decided_cell_by_cell<std::int64_t>();
  figure_1_is_decided_cell_by_cell<Int128>();
  figure_1_is_decided_cell_by_cell<Int2304>();
  draws_do_not_depend_on_threads();
  a_long_draw_ends_when_it_is_asked_to();
  numbers_below_n_are_uniform();
  masks_that_do_not_exist_are_refused();
  a_cover_refined_to_the_end_counts_figure_1<std::int64_t>();
  a_cover_refined_to_the_end_counts_figure_1<Int2304>();
  return failures;
}

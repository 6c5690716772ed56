// Single regions of figure 1 are decided right, draws are the same on any number of threads, and a
// search that is given up says so.
#include "xcount/sampling/region_sampler.hpp"

#include <algorithm>

#include "check.hpp"
#include "example_forest.hpp"

using namespace xcount;
using xcount::test::ExampleArrays;
using xcount::test::failures;
using xcount::test::throws;

namespace {

std::vector<Cell> all_regions() {
  std::vector<Cell> regions;
  for (Cell f0 = 0; f0 < 3; ++f0) {
    for (Cell f1 = 0; f1 < 3; ++f1) regions.insert(regions.end(), {f0, f1});
  }
  return regions;
}

std::ptrdiff_t count(const std::vector<std::uint8_t>& answers, Answer answer) {
  return std::count(answers.begin(), answers.end(), static_cast<std::uint8_t>(answer));
}

template <class Value>
void figure_1_is_decided_region_by_region() {
  const Forest<Value> forest = ExampleArrays().build<Value>();
  const RegionSampler<Value> sampler(forest, {0}, 1, Value(80));
  const std::vector<std::uint8_t> answers = sampler.decide(all_regions());
  CHECK(count(answers, Answer::kSensitive) == 2);
  CHECK(count(answers, Answer::kNot) == 7);
}

void a_search_without_a_budget_leaves_regions_open() {
  const auto forest = ExampleArrays().build<std::int64_t>();
  const RegionSampler<std::int64_t> sampler(forest, {0}, 1, 80, 0);
  const std::vector<std::uint8_t> answers = sampler.decide(all_regions());
  CHECK(count(answers, Answer::kOpen) > 0);
  CHECK(count(answers, Answer::kSensitive) <= 2);
  Stop never;
  const RegionOutcomes found = sampler.draw(1, 0, 0, 4, 2, never);
  CHECK(found.n_open > 0);
  CHECK(found.outcomes.histogram[1] <= found.upper.histogram[1]);
}

void draws_do_not_depend_on_threads() {
  const auto forest = ExampleArrays().build<std::int64_t>();
  const RegionSampler<std::int64_t> sampler(forest, {0}, std::nullopt, 80);
  Stop never;
  const RegionOutcomes one = sampler.draw(7, 1, 0, 20, 1, never);
  const RegionOutcomes three = sampler.draw(7, 1, 0, 20, 3, never);
  CHECK(one.outcomes.histogram == three.outcomes.histogram);
  CHECK(one.outcomes.hits == three.outcomes.hits);
  Stop at_once(0.0);
  CHECK(sampler.draw(7, 1, 0, 20, 3, at_once).outcomes.hits.empty());
}

void nonsense_is_refused() {
  const auto forest = ExampleArrays().build<std::int64_t>();
  using Sampling = RegionSampler<std::int64_t>;
  CHECK(throws<std::invalid_argument>([&] { Sampling(forest, {2}, 1, 80); }));
  CHECK(throws<std::invalid_argument>([&] { Sampling(forest, {0}, 0, 80); }));
}

}  // namespace

int main() {
  figure_1_is_decided_region_by_region<std::int64_t>();
  figure_1_is_decided_region_by_region<Int128>();
  figure_1_is_decided_region_by_region<Int2304>();
  a_search_without_a_budget_leaves_regions_open();
  draws_do_not_depend_on_threads();
  nonsense_is_refused();
  return failures;
}

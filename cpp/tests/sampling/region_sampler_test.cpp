// Single regions of figure 1 are decided right for every change, draws are the same on any number
// of threads, and a search that is given up says so.
#include "xcount/sampling/region_sampler.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "check.hpp"
#include "example_forest.hpp"

using namespace xcount;
using xcount::test::ExampleArrays;
using xcount::test::failures;
using xcount::test::throws;

namespace {

Stop never;

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
RegionQuestion<Value> question_about(const Forest<Value>& forest, const Change<Value>& change,
                                     std::optional<std::int64_t> distance = 1) {
  RegionQuestion<Value> question;
  question.forests = {&forest};
  question.bases = {Value(0)};
  question.sensitive = {0};
  question.distance = distance;
  question.change = change;
  return question;
}

template <class Value>
RegionQuestion<Value> gap_question(const Forest<Value>& forest,
                                   std::optional<std::int64_t> distance = 1) {
  return question_about(forest, Change<Value>(ChangeForm::kGap, Direction::kAny, Value(80)),
                        distance);
}

template <class Value>
void figure_1_is_decided_region_by_region() {
  const Forest<Value> forest = ExampleArrays().build<Value>();
  const RegionSampler<Value> sampler(gap_question(forest));
  const std::vector<std::uint8_t> answers = sampler.decide(all_regions(), never);
  CHECK(count(answers, Answer::kSensitive) == 2);
  CHECK(count(answers, Answer::kNot) == 7);
}

void a_search_without_a_budget_leaves_regions_open() {
  const auto forest = ExampleArrays().build<std::int64_t>();
  const RegionSampler<std::int64_t> sampler(gap_question(forest), 0);
  const std::vector<std::uint8_t> answers = sampler.decide(all_regions(), never);
  CHECK(count(answers, Answer::kOpen) > 0);
  CHECK(count(answers, Answer::kSensitive) <= 2);
  const RegionOutcomes found = sampler.draw(1, 0, 0, 4, 2, never);
  CHECK(found.n_open > 0);
  CHECK(found.outcomes.histogram[1] <= found.upper.histogram[1]);
}

void draws_do_not_depend_on_threads() {
  const auto forest = ExampleArrays().build<std::int64_t>();
  const RegionSampler<std::int64_t> sampler(gap_question(forest, std::nullopt));
  const RegionOutcomes one = sampler.draw(7, 1, 0, 20, 1, never);
  const RegionOutcomes three = sampler.draw(7, 1, 0, 20, 3, never);
  CHECK(one.outcomes.histogram == three.outcomes.histogram);
  CHECK(one.outcomes.hits == three.outcomes.hits);
  Stop at_once(0.0);
  CHECK(sampler.draw(7, 1, 0, 20, 3, at_once).outcomes.hits.empty());
}

// What is done when somebody ends it are the first samples, in order.
void draws_that_are_ended_are_the_first_ones() {
  const auto forest = ExampleArrays().build<std::int64_t>();
  const RegionSampler<std::int64_t> sampler(gap_question(forest, std::nullopt));
  constexpr std::uint64_t kBatches = 4000;
  Stop soon(std::numeric_limits<double>::infinity(), [] { return true; });
  const std::vector<std::uint8_t> hits = sampler.draw(7, 1, 0, kBatches, 2, soon).outcomes.hits;
  const std::vector<std::uint8_t> all = sampler.draw(7, 1, 0, kBatches, 2, never).outcomes.hits;
  CHECK(hits.size() <= all.size());
  CHECK(std::equal(hits.begin(), hits.end(), all.begin()));
}

void a_trial_of_a_budget_says_what_it_leaves_open() {
  const auto forest = ExampleArrays().build<std::int64_t>();
  RegionSampler<std::int64_t> sampler(gap_question(forest));
  const auto nothing = sampler.try_budget(0, 1, 0, 100, 2, never);
  const auto enough = sampler.try_budget(1000, 1, 0, 100, 2, never);
  CHECK(nothing.n_samples == 100 && nothing.n_open > 0 && nothing.n_nodes == 0);
  CHECK(enough.n_samples == 100 && enough.n_open == 0 && enough.n_nodes > 0);
  sampler.set_budget(0);
  CHECK(sampler.draw(1, 0, 0, 1, 1, never).n_open > 0);
}

// Every region and neighbour of a small world, by definition.
template <class Value>
void every_change_is_decided_as_defined() {
  const Forest<Value> forest = ExampleArrays().build<Value>();
  const std::vector<Cell> regions = all_regions();
  const std::vector<Value> sums =
      RegionSampler<Value>(
          question_about(forest, Change<Value>(ChangeForm::kFlip, Direction::kAny, Value(0))))
          .sums(regions);
  const auto sigmoid = [](const Value& v) {
    const bool negative = v < Value(0);
    const double size = ValueTraits<Value>::to_number(negative ? Value(0) - v : v);
    return 1.0 / (1.0 + std::exp((negative ? size : -size) * 0.01));
  };
  const auto differs = [&](const Change<Value>& change, const Value& a, const Value& b) {
    const bool up = change.direction != Direction::kDown;
    const bool down = change.direction != Direction::kUp;
    const Value& t = change.threshold;
    if (change.form == ChangeForm::kGap) return (up && b - a > t) || (down && a - b > t);
    if (change.form == ChangeForm::kFlip) {
      return (up && a <= change.sure_below && b > t) || (down && a > change.sure_above && b <= t);
    }
    const double moved = sigmoid(b) - sigmoid(a);
    return (up && moved > 0.125) || (down && -moved > 0.125);
  };
  for (const ChangeForm form : {ChangeForm::kGap, ChangeForm::kFlip, ChangeForm::kProbability}) {
    for (const Direction direction : {Direction::kAny, Direction::kUp, Direction::kDown}) {
      for (const std::int64_t distance : {1, 2}) {
        Change<Value> change(form, direction, Value(form == ChangeForm::kGap ? 24 : -12));
        if (form == ChangeForm::kFlip) change.sure_below = Value(-15);
        if (form == ChangeForm::kProbability) change.threshold = Value(kProbabilityOne / 8);
        RegionQuestion<Value> question = question_about(forest, change, distance);
        question.link = {false, 0, 0.64, -6};  // 0.01
        const std::vector<std::uint8_t> answers =
            RegionSampler<Value>(question).decide(regions, never);
        for (std::size_t f0 = 0; f0 < 3; ++f0) {
          for (std::size_t f1 = 0; f1 < 3; ++f1) {
            bool expected = false;
            for (std::size_t other = 0; other < 3; ++other) {
              const auto step = std::abs(static_cast<long>(f0) - static_cast<long>(other));
              if (step == 0 || step > distance) continue;
              expected = expected || differs(change, sums[f0 * 3 + f1], sums[other * 3 + f1]);
            }
            const Answer answer = expected ? Answer::kSensitive : Answer::kNot;
            CHECK(answers[f0 * 3 + f1] == static_cast<std::uint8_t>(answer));
          }
        }
      }
    }
  }
}

// The model against a constant: it is the largest where it is at least that, so that the largest
// changes just where a flip at the number below does.
void the_largest_of_several_is_compared() {
  const auto forest = ExampleArrays().build<std::int64_t>();
  ExampleArrays zeros;
  zeros.values.assign(zeros.values.size(), 0);
  const auto constant = zeros.build<std::int64_t>();
  std::ptrdiff_t total = 0;
  for (const std::int64_t base : {-76, -75, -15, -10, 0, 10, 70, 71}) {
    const Change<std::int64_t> flip(ChangeForm::kFlip, Direction::kAny, base - 1);
    const auto expected = RegionSampler(question_about(forest, flip)).decide(all_regions(), never);
    auto question =
        question_about(forest, Change<std::int64_t>(ChangeForm::kLargest, Direction::kAny, 0));
    question.forests = {&forest, &constant};
    question.bases = {0, base};
    CHECK(RegionSampler(question).decide(all_regions(), never) == expected);
    // From where one of them is above 10 alone.
    question.change.form = ChangeForm::kSureLargest;
    question.change.sure_above = 10;
    const auto sure = RegionSampler(question).decide(all_regions(), never);
    const auto sums = RegionSampler(question).sums(all_regions());
    for (std::size_t i = 0; i < sure.size(); ++i) {
      const bool starts = std::max(sums[2 * i], sums[2 * i + 1]) > 10;
      CHECK(sure[i] == (starts ? expected[i] : static_cast<std::uint8_t>(Answer::kNot)));
    }
    total += count(expected, Answer::kSensitive);
  }
  CHECK(total > 10);
}

void the_nearest_partner_is_found() {
  const auto forest = ExampleArrays().build<std::int64_t>();
  const RegionSampler<std::int64_t> sampler(gap_question(forest, std::nullopt));
  for (Cell f0 = 0; f0 < 3; ++f0) {
    const std::vector<Cell> region{f0, 0};
    const std::vector<Cell> found = sampler.partner(region, never);
    const bool is_sensitive = sampler.decide(region, never)[0] == 1;
    CHECK(found.empty() != is_sensitive);
    if (f0 == 0) CHECK(found == std::vector<Cell>{1});
  }
}

void nonsense_is_refused() {
  const auto forest = ExampleArrays().build<std::int64_t>();
  using Sampling = RegionSampler<std::int64_t>;
  auto question = gap_question(forest);
  question.sensitive = {2};
  CHECK(throws<std::invalid_argument>([&] { Sampling{question}; }));
  CHECK(throws<std::invalid_argument>([&] { Sampling{gap_question(forest, 0)}; }));
  question = gap_question(forest);
  question.change.form = ChangeForm::kLargest;
  CHECK(throws<std::invalid_argument>([&] { Sampling{question}; }));
  question.change.form = ChangeForm::kProbability;
  question.link.softmax = true;
  CHECK(throws<std::invalid_argument>([&] { Sampling{question}; }));
}

}  // namespace

int main() {
  figure_1_is_decided_region_by_region<std::int64_t>();
  figure_1_is_decided_region_by_region<Int128>();
  figure_1_is_decided_region_by_region<Int2304>();
  every_change_is_decided_as_defined<std::int64_t>();
  every_change_is_decided_as_defined<Int128>();
  every_change_is_decided_as_defined<Int2304>();
  the_largest_of_several_is_compared();
  the_nearest_partner_is_found();
  a_search_without_a_budget_leaves_regions_open();
  draws_do_not_depend_on_threads();
  draws_that_are_ended_are_the_first_ones();
  a_trial_of_a_budget_says_what_it_leaves_open();
  nonsense_is_refused();
  return failures;
}

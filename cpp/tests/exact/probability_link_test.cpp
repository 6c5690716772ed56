// Gaps in probability against the definition; what floats leave open is left to the judge.
#include "xcount/exact/probability_link.hpp"

#include <cmath>
#include <numeric>
#include <vector>

#include "check.hpp"
#include "example_forest.hpp"
#include "xcount/exact/corner_sums.hpp"

using namespace xcount;
using xcount::test::ExampleArrays;
using xcount::test::failures;
using xcount::test::throws;

namespace {

constexpr double kUnit = 1.0 / 32;

template <class Value>
double number(const Value& value) {
  const bool negative = value < Value(0);
  const double size = ValueTraits<Value>::to_number(negative ? Value(-value) : value);
  return negative ? -size : size;
}

template <class Value>
double probability(const Value& value) {
  return 1.0 / (1.0 + std::exp(-number(value) * kUnit));
}

// How many regions of figure 1 change by more than the gap; n_asked counts calls of the judge.
template <class Value>
std::uint64_t counted(double gap, Direction direction, int& n_asked) {
  const Forest<Value> forest = ExampleArrays().build<Value>();
  const Forest<Value>* const forests[] = {&forest};
  const Value bases[] = {Value(0)};
  const MaskSpace masks(forest, {0}, 1);
  const Value threshold(static_cast<std::int64_t>(gap * static_cast<double>(kProbabilityOne)));
  const Change<Value> changes[] = {{ChangeForm::kProbability, direction, threshold}};
  CornerQuestion<Value> question{forests, bases, &masks, changes, {}};
  question.link = {false, 0, 0.5, -4};  // 1 / 32
  question.judge = [&](std::size_t, std::span<const Value> before, std::span<const Value> after) {
    ++n_asked;
    return probability(after[0]) - probability(before[0]) > gap;
  };
  Stop stop;
  const auto sums = make_corner_sums(question, stop);
  CHECK(sums->n_bits() >= 64);
  const CornerCounts result = sums->count(0, sums->n_blocks(), 1, stop);
  return std::accumulate(result.counts.begin(), result.counts.end(), std::uint64_t{0});
}

template <class Value>
std::uint64_t defined(double gap, Direction direction) {
  const Forest<Value> forest = ExampleArrays().build<Value>();
  std::uint64_t count = 0;
  for (Cell f1 = 0; f1 < 3; ++f1) {
    for (Cell f0 = 0; f0 < 3; ++f0) {
      bool changes = false;
      for (const Cell other : {f0 - 1, f0 + 1}) {
        if (other < 0 || other > 2) continue;
        const std::vector<Cell> here{f0, f1};
        const std::vector<Cell> there{other, f1};
        const double rise = probability(forest.sum(there)) - probability(forest.sum(here));
        changes |= direction != Direction::kDown && rise > gap;
        changes |= direction != Direction::kUp && -rise > gap;
      }
      count += changes ? 1 : 0;
    }
  }
  return count;
}

template <class Value>
void probabilities_are_compared() {
  for (const Direction direction : {Direction::kAny, Direction::kUp, Direction::kDown}) {
    for (double gap = 0.02; gap < 1; gap += 0.04) {
      int n_asked = 0;
      CHECK(counted<Value>(gap, direction, n_asked) == defined<Value>(gap, direction));
      CHECK(n_asked == 0);
    }
  }
}

// The difference of two regions as the gap itself: no float tells, so the judge is asked.
void a_near_tie_is_left_to_the_judge() {
  const double gap = probability<std::int64_t>(70) - probability<std::int64_t>(-15);
  int n_asked = 0;
  CHECK(counted<std::int64_t>(gap, Direction::kAny, n_asked) ==
        defined<std::int64_t>(gap, Direction::kAny));
  CHECK(n_asked > 0);
}

void nonsense_is_refused() {
  const auto forest = ExampleArrays().build<std::int64_t>();
  const Forest<std::int64_t>* const forests[] = {&forest};
  const std::int64_t bases[] = {0};
  const MaskSpace masks(forest, {0}, 1);
  const Change<std::int64_t> changes[] = {{ChangeForm::kProbability, Direction::kAny, 5}};
  const CornerQuestion<std::int64_t> question{forests, bases, &masks, changes, {}};
  Stop stop;
  CHECK(
      throws<std::invalid_argument>([&] { static_cast<void>(make_corner_sums(question, stop)); }));
}

}  // namespace

int main() {
  probabilities_are_compared<std::int64_t>();
  probabilities_are_compared<Int128>();
  probabilities_are_compared<Int2304>();
  a_near_tie_is_left_to_the_judge();
  nonsense_is_refused();
  return failures;
}

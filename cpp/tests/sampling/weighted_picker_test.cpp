// Items are drawn by their weight, also those that weigh less than a unit.
#include "xcount/sampling/weighted_picker.hpp"

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "check.hpp"

using namespace xcount;
using namespace xcount::test;

namespace {

std::vector<std::uint64_t> picked(const std::vector<Share>& weights, unsigned bits,
                                  std::uint64_t n) {
  Share total = 0;
  for (const Share weight : weights) total += weight;
  WeightedPicker picker(bits);
  picker.start(weights.size(), total);
  for (const Share weight : weights) picker.add(weight);
  std::vector<std::uint64_t> counts(weights.size());
  Random random(1, 2, 3);
  for (std::uint64_t i = 0; i < n; ++i) {
    ++counts[picker.pick(random, [&](std::size_t item) { return weights[item]; })];
  }
  return counts;
}

// With 7 bits there are 100 units for a weight of 11: most items have fractions of a unit that
// matter. Five standard deviations: one miss in two million such tests.
void items_are_drawn_by_weight() {
  const std::vector<Share> weights{1, 5, 0.05L, 3, 1e-300L, 2};
  const double n = 500'000;
  for (const unsigned bits : {7U, 20U, 62U}) {
    const auto counts = picked(weights, bits, 500'000);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double p = static_cast<double>(weights[i] / 11.05L);
      CHECK(std::abs(static_cast<double>(counts[i]) - n * p) <= 5.0 * std::sqrt(n * p * (1 - p)));
    }
  }
}

void more_weight_than_announced_is_refused() {
  WeightedPicker picker;
  picker.start(2, 1);
  picker.add(0.5L);
  bool is_refused = false;
  try {
    picker.add(0.6L);
  } catch (const std::invalid_argument&) {
    is_refused = true;
  }
  CHECK(is_refused);
}

}  // namespace

int main() {
  items_are_drawn_by_weight();
  more_weight_than_announced_is_refused();
  return failures;
}

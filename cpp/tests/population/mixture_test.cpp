// Expectation maximisation finds what rows were drawn from, never gets worse, and does not depend
// on the number of threads.
#include "xcount/population/mixture.hpp"

#include <cmath>
#include <stdexcept>

#include "check.hpp"
#include "xcount/support/random.hpp"

using namespace xcount;
using xcount::test::failures;
using xcount::test::throws;

namespace {

// Half of the rows have cell 0 everywhere, half cell 1: no product is like them, a mixture of two
// is.
std::vector<std::int32_t> two_kinds(std::size_t n_rows, std::size_t n_features) {
  std::vector<std::int32_t> cells;
  Random random(5, 0, 0);
  for (std::size_t r = 0; r < n_rows; ++r) {
    const auto kind = static_cast<std::int32_t>(random.below(2));
    for (std::size_t f = 0; f < n_features; ++f) cells.push_back(kind);
  }
  return cells;
}

void two_kinds_of_rows_are_told_apart() {
  const std::vector<std::int32_t> cells = two_kinds(2000, 4);
  Stop never;
  Mixture mixture(cells, {2, 2, 2, 2}, 2, 1.0, 1);
  for (int i = 0; i < 50; ++i) mixture.step(1, never);
  CHECK(std::abs(mixture.log_likelihood(cells) - std::log(0.5)) < 0.05);
  Mixture product(cells, {2, 2, 2, 2}, 1, 1.0, 1);
  product.step(1, never);
  CHECK(std::abs(product.log_likelihood(cells) - 4 * std::log(0.5)) < 0.05);
}

void steps_never_make_it_worse() {
  std::vector<std::int32_t> cells;
  Random random(9, 0, 0);
  for (int i = 0; i < 600; ++i) cells.push_back(static_cast<std::int32_t>(random.below(4)) - 1);
  Stop never;
  Mixture mixture(cells, {3, 3, 3}, 3, 1e-9, 4);
  double before = mixture.step(1, never);
  for (int i = 0; i < 20; ++i) {
    const double now = mixture.step(1, never);
    CHECK(now >= before - 1e-9);
    before = now;
  }
}

void tables_are_distributions_on_any_number_of_threads() {
  const std::vector<std::int32_t> cells = two_kinds(300, 3);
  Stop never;
  Mixture one(cells, {2, 3, 2}, 4, 0.5, 3);
  Mixture many(cells, {2, 3, 2}, 4, 0.5, 3);
  for (int i = 0; i < 5; ++i) CHECK(one.step(1, never) == many.step(3, never));
  CHECK(one.probabilities() == many.probabilities());
  double weights = 0;
  for (const double weight : one.weights()) weights += weight;
  CHECK(std::abs(weights - 1) < 1e-12);
  for (std::size_t k = 0; k < 4; ++k) {
    const auto& p = one.probabilities();
    CHECK(std::abs(p[2 * 4 + k] + p[3 * 4 + k] + p[4 * 4 + k] - 1) < 1e-12);  // the second feature
  }
}

void nonsense_is_refused() {
  const std::vector<std::int32_t> cells{0, 1, 1};
  const auto make = [&](std::vector<std::int32_t> n_cells, std::size_t k, double strength) {
    return throws<std::invalid_argument>([&] { Mixture(cells, n_cells, k, strength, 0); });
  };
  CHECK(make({2, 2}, 1, 1.0));
  CHECK(make({1, 2, 2}, 0, 1.0));
  CHECK(make({1, 2, 2}, 1, 0.0));
  CHECK(make({1, 1, 2}, 1, 1.0));
  CHECK(make({}, 1, 1.0));
  CHECK(!make({1, 2, 2}, 1, 1.0));
}

}  // namespace

int main() {
  two_kinds_of_rows_are_told_apart();
  steps_never_make_it_worse();
  tables_are_distributions_on_any_number_of_threads();
  nonsense_is_refused();
  return failures;
}

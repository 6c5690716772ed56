// Enumeration finds the paper's 2 of 9, in slices and on threads alike.
#include "xcount/exact/brute.hpp"

#include <numeric>

#include "check.hpp"
#include "example_forest.hpp"

using namespace xcount;
using xcount::test::ExampleArrays;
using xcount::test::failures;
using xcount::test::throws;

namespace {

template <class Value>
std::uint64_t count(Feature sensitive, std::optional<std::int64_t> distance, std::int64_t gap) {
  const Forest<Value> forest = ExampleArrays().build<Value>();
  const MaskSpace masks(forest, {sensitive}, distance);
  const BruteForce<Value> brute(forest, masks, Value(gap));
  const std::vector<std::uint64_t> counts = brute.count(0, brute.n_combinations(), 1);
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

template <class Value>
void figure_1_has_two_sensitive_regions() {
  CHECK(count<Value>(0, 1, 80) == 2);
  CHECK(count<Value>(0, 1, 84) == 2);
  CHECK(count<Value>(0, 1, 85) == 0);  // the change is exactly 85: the comparison is strict
  CHECK(count<Value>(0, 1, 60) == 4);
  CHECK(count<Value>(0, std::nullopt, 60) == 5);
}

void slices_and_threads_add_up() {
  const auto forest = ExampleArrays().build<std::int64_t>();
  const MaskSpace masks(forest, {0}, 1);
  const BruteForce<std::int64_t> brute(forest, masks, 10);
  const std::vector<std::uint64_t> whole = brute.count(0, 3, 1);
  CHECK(brute.count(0, 100, 4) == whole);
  std::vector<std::uint64_t> sum(whole.size());
  for (std::uint64_t i = 0; i < brute.n_combinations(); ++i) {
    const std::vector<std::uint64_t> part = brute.count(i, i + 1, 2);
    for (std::size_t m = 0; m < sum.size(); ++m) sum[m] += part[m];
  }
  CHECK(sum == whole);
}

void too_many_regions_are_refused() {
  ExampleArrays arrays;
  arrays.n_cells.assign(4, 1 << 26);
  arrays.missing_cell.assign(4, -1);
  arrays.ordered.assign(4, 1);
  arrays.n_cells[0] = 3;
  const auto forest = arrays.build<std::int64_t>();
  const MaskSpace masks(forest, {0}, 1);
  CHECK(throws<std::length_error>([&] { BruteForce<std::int64_t>(forest, masks, 1); }));
}

}  // namespace

int main() {
  figure_1_has_two_sensitive_regions<std::int64_t>();
  figure_1_has_two_sensitive_regions<Int128>();
  figure_1_has_two_sensitive_regions<Int2304>();
  slices_and_threads_add_up();
  too_many_regions_are_refused();
  return failures;
}

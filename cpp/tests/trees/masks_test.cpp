// Masks are numbered, decoded, and compared as the definition of distance says.
#include "xcount/trees/masks.hpp"

#include "check.hpp"
#include "example_forest.hpp"

using namespace xcount;
using xcount::test::ExampleArrays;
using xcount::test::failures;
using xcount::test::throws;

namespace {

// f0: three ordered cells; f1: two ordered cells and a missing one; f2: four unordered cells.
Forest<std::int64_t> mixed_forest() {
  ExampleArrays arrays;
  arrays.n_cells = {3, 3, 4};
  arrays.missing_cell = {-1, 2, -1};
  arrays.ordered = {1, 1, 0};
  return arrays.build<std::int64_t>();
}

std::int64_t expected_distance(const std::vector<Cell>& a, const std::vector<Cell>& b) {
  const std::int64_t first = a[0] > b[0] ? a[0] - b[0] : b[0] - a[0];
  return first + (a[1] != b[1] ? 1 : 0) + (a[2] != b[2] ? 1 : 0);
}

void neighbours_are_the_masks_within_the_distance() {
  const Forest<std::int64_t> forest = mixed_forest();
  for (std::int64_t distance = 1; distance <= 5; ++distance) {
    const MaskSpace masks(forest, {0, 1, 2}, distance);
    CHECK(masks.size() == 36);
    for (MaskIndex a = 0; a < masks.size(); ++a) {
      std::vector<MaskIndex> expected;
      for (MaskIndex b = 0; b < masks.size(); ++b) {
        const std::int64_t d = expected_distance(masks.cells(a), masks.cells(b));
        CHECK(masks.distance(a, b) == d);
        if (a != b && d <= distance) expected.push_back(b);
      }
      CHECK(masks.neighbours(a) == expected);
    }
  }
}

void any_distance_reaches_every_other_mask() {
  const Forest<std::int64_t> forest = mixed_forest();
  const MaskSpace masks(forest, {0, 2}, std::nullopt);
  for (MaskIndex a = 0; a < masks.size(); ++a) {
    CHECK(masks.neighbours(a).size() == static_cast<std::size_t>(masks.size()) - 1);
  }
}

void cells_are_numbered_with_the_last_feature_fastest() {
  const Forest<std::int64_t> forest = mixed_forest();
  const MaskSpace masks(forest, {0, 2}, 1);
  CHECK(masks.cells(0) == (std::vector<Cell>{0, 0}));
  CHECK(masks.cells(5) == (std::vector<Cell>{1, 1}));
  std::vector<Cell> region{7, 7, 7};
  masks.write_cells(5, region);
  CHECK(region == (std::vector<Cell>{1, 7, 1}));
}

void nonsense_is_refused() {
  const Forest<std::int64_t> forest = mixed_forest();
  CHECK(throws<std::invalid_argument>([&] { MaskSpace(forest, {3}, 1); }));
  CHECK(throws<std::invalid_argument>([&] { MaskSpace(forest, {-1}, 1); }));
  CHECK(throws<std::invalid_argument>([&] { MaskSpace(forest, {0}, 0); }));
  ExampleArrays huge;
  huge.n_cells.assign(3, 1 << 26);
  huge.missing_cell.assign(3, -1);
  huge.ordered.assign(3, 1);
  const auto wide = huge.build<std::int64_t>();
  CHECK(throws<std::length_error>([&] { MaskSpace(wide, {0, 1, 2}, 1); }));
}

}  // namespace

int main() {
  neighbours_are_the_masks_within_the_distance();
  any_distance_reaches_every_other_mask();
  cells_are_numbered_with_the_last_feature_fastest();
  nonsense_is_refused();
  return failures;
}

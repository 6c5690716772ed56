// Boxes are drawn in proportion to their masks and volume, and know how many masks lie around.
#include "xcount/sampling/overlapping_boxes.hpp"

#include <cmath>
#include <vector>

#include "check.hpp"

using namespace xcount;
using xcount::test::failures;
using xcount::test::throws;

namespace {

// 4 x 3 cells: a box of two columns, one of a single cell in it, and one beside both.
OverlappingBoxes three_boxes() {
  return {{{0, 4}, {2, 3}}, {0, 1, 0, 2, 1, 1, 2, 2, 3, 3, 0, 1}, {2, 5, 1}};
}

std::uint32_t expected_around(Cell a, Cell b) {
  return (a <= 1 ? 2U : 0U) + (a == 1 && b == 2 ? 5U : 0U) + (a == 3 && b <= 1 ? 1U : 0U);
}

void the_masks_around_all_cells_add_up_to_the_total() {
  const OverlappingBoxes boxes = three_boxes();
  std::uint32_t sum = 0;
  for (Cell a = 0; a < 4; ++a) {
    for (Cell b = 0; b < 3; ++b) {
      const std::vector<Cell> cells{a, b};
      CHECK(boxes.around(cells) == expected_around(a, b));
      sum += boxes.around(cells);
    }
  }
  CHECK(std::abs(boxes.total() * 12 - static_cast<Share>(sum)) < 1e-15L);
  CHECK(boxes.size() == 3 && boxes.bytes() > 0);
}

void cells_are_drawn_by_the_masks_around_them() {
  const OverlappingBoxes boxes = three_boxes();
  constexpr int kDraws = 200'000;
  std::vector<int> seen(12);
  Random random(3, 1, 4);
  std::vector<Cell> cells(2);
  for (int i = 0; i < kDraws; ++i) {
    boxes.draw(random, cells);
    ++seen[static_cast<std::size_t>(3 * cells[0] + cells[1])];
  }
  for (Cell a = 0; a < 4; ++a) {
    for (Cell b = 0; b < 3; ++b) {
      const double share = expected_around(a, b) / static_cast<double>(boxes.total() * 12);
      const int own = seen[static_cast<std::size_t>(3 * a + b)];
      CHECK(std::abs(own - share * kDraws) <= 5 * std::sqrt(share * kDraws));
    }
  }
}

void more_boxes_than_bits_in_a_word_are_told_apart() {
  std::vector<Cell> runs;
  for (Cell box = 0; box < 70; ++box) runs.insert(runs.end(), {box, 69});
  const OverlappingBoxes boxes({{5, 70}}, runs, std::vector<std::uint32_t>(70, 3));
  for (Cell cell = 0; cell < 70; ++cell) {
    CHECK(boxes.around(std::vector<Cell>{cell}) == 3 * static_cast<std::uint32_t>(cell + 1));
  }
}

void boxes_outside_the_axes_are_refused() {
  const auto made = [](std::vector<Cell> runs, std::vector<std::uint32_t> n_masks) {
    return [=] { OverlappingBoxes({{0, 4}}, runs, n_masks); };
  };
  CHECK(throws<std::invalid_argument>(made({0, 4}, {1})));
  CHECK(throws<std::invalid_argument>(made({2, 1}, {1})));
  CHECK(throws<std::invalid_argument>(made({0, 1, 1}, {1})));
  CHECK(throws<std::invalid_argument>(made({0, 1, 0, 1}, {1U << 31, 1})));
}

void no_boxes_are_nothing_to_draw_from() {
  const OverlappingBoxes none({{0, 4}}, {}, {});
  CHECK(none.size() == 0 && none.total() == 0);
  CHECK(none.around(std::vector<Cell>{2}) == 0);
}

}  // namespace

int main() {
  the_masks_around_all_cells_add_up_to_the_total();
  cells_are_drawn_by_the_masks_around_them();
  more_boxes_than_bits_in_a_word_are_told_apart();
  boxes_outside_the_axes_are_refused();
  no_boxes_are_nothing_to_draw_from();
  return failures;
}

// A forest evaluates regions, and refuses arrays that do not describe one.
#include "xcount/trees/forest.hpp"

#include <functional>

#include "check.hpp"
#include "example_forest.hpp"

using namespace xcount;
using xcount::test::ExampleArrays;
using xcount::test::failures;
using xcount::test::throws;

namespace {

template <class Value>
void every_region_gets_its_sum() {
  const Forest<Value> forest = ExampleArrays().build<Value>();
  // Rows: cell of f0; columns: cell of f1.
  const std::int64_t expected[3][3] = {{70, -10, -70}, {-15, -15, -75}, {-10, -10, -10}};
  for (Cell a = 0; a < 3; ++a) {
    for (Cell b = 0; b < 3; ++b) {
      const std::vector<Cell> region{a, b};
      CHECK(forest.sum(region) == Value(expected[a][b]));
    }
  }
}

void a_missing_cell_goes_where_the_test_says() {
  ExampleArrays arrays;
  arrays.n_cells[0] = 4;
  arrays.missing_cell[0] = 3;
  arrays.missing_left[0] = 1;
  const auto forest = arrays.build<std::int64_t>();
  const std::vector<Cell> region{3, 0};
  CHECK(forest.sum(region) == 30 - 45);
}

void a_set_test_asks_the_membership_table() {
  ExampleArrays arrays;
  arrays.cut[0] = -1 - 1;  // the row starts at entry 1
  arrays.membership = {9, 0, 1, 0};
  const auto forest = arrays.build<std::int64_t>();
  const std::vector<Cell> outside{0, 0};
  const std::vector<Cell> inside{1, 0};
  CHECK(forest.sum(outside) == 35 + 40);
  CHECK(forest.sum(inside) == 30 - 45);
}

void distances_are_those_of_positions() {
  ExampleArrays arrays;
  arrays.positions = {2, 5, 6, 7, 8, 9};
  const auto forest = arrays.build<std::int64_t>();
  CHECK(!forest.axis(0).regular());
  CHECK(forest.axis(1).regular());  // but for where it begins
  CHECK(forest.axis(0).distance(0, 2) == 4 && forest.axis(1).distance(0, 2) == 2);
  CHECK(forest.axis(0).furthest() == 4 && forest.axis(1).furthest() == 2);
  CHECK((forest.axis(0).near(1, 1) == std::pair<Cell, Cell>{1, 3}));
  CHECK((forest.axis(0).near(0, 3) == std::pair<Cell, Cell>{0, 2}));
  CHECK((forest.axis(1).near(0, 1) == std::pair<Cell, Cell>{0, 2}));
}

void distances_on_a_joint_axis_add_up() {
  ExampleArrays arrays;
  arrays.ordered[0] = 0;
  auto forest = arrays.build<std::int64_t>();
  const Axis numbers{3, -1, true};
  const Axis labels{2, -1, false};
  forest.join(0, {numbers, labels}, {{0, 2, 2}, {0, 0, 1}});
  CHECK(!forest.axis(0).regular());
  CHECK(forest.axis(0).distance(0, 1) == 2 && forest.axis(0).distance(0, 2) == 3);
  CHECK(forest.axis(0).distance(1, 2) == 1 && forest.axis(0).furthest() == 3);
  using Rows = std::vector<std::vector<Cell>>;
  for (const Rows& wrong : {Rows{{0, 2, 2}}, Rows{{0, 2}, {0, 0}}, Rows{{0, 2, 3}, {0, 0, 1}}}) {
    CHECK(throws<std::invalid_argument>([&] { forest.join(0, {numbers, labels}, wrong); }));
  }
  CHECK(throws<std::invalid_argument>([&] { forest.join(1, {}, {}); }));
}

void broken_arrays_are_refused() {
  const std::vector<std::function<void(ExampleArrays&)>> breaks{
      [](ExampleArrays& a) { a.left[0] = 0; },          // a cycle
      [](ExampleArrays& a) { a.right[1] = 1; },         // a node that is its own child
      [](ExampleArrays& a) { a.left[0] = 10; },         // no such child
      [](ExampleArrays& a) { a.left[0] = -1; },         // a missing child
      [](ExampleArrays& a) { a.feature[0] = 2; },       // no such feature
      [](ExampleArrays& a) { a.feature[0] = -2; },      // neither a feature nor a leaf
      [](ExampleArrays& a) { a.cut[0] = 4; },           // beyond the last cell
      [](ExampleArrays& a) { a.cut[0] = -1; },          // a set test without a table
      [](ExampleArrays& a) { a.cut[0] = INT32_MIN; },   // far beyond any table
      [](ExampleArrays& a) { a.n_cells[1] = 0; },       // a feature without cells
      [](ExampleArrays& a) { a.missing_cell[0] = 1; },  // a missing cell in the middle
      [](ExampleArrays& a) { a.roots[1] = 10; },        // no such root
      [](ExampleArrays& a) { a.roots[1] = -1; },
      [](ExampleArrays& a) { a.cut.pop_back(); },  // arrays of different lengths
      [](ExampleArrays& a) { a.ordered.pop_back(); },
      [](ExampleArrays& a) { a.values.pop_back(); },
      [](ExampleArrays& a) { a.positions = {0, 1, 2, 0, 1}; },        // too few positions
      [](ExampleArrays& a) { a.positions = {0, 1, 2, 0, 1, 2, 3}; },  // too many
      [](ExampleArrays& a) { a.positions = {0, 1, 2, 2, 1, 0}; },     // in no order
      [](ExampleArrays& a) { a.positions = {-1, 1, 2, 0, 1, 2}; },
  };
  for (const auto& damage : breaks) {
    ExampleArrays arrays;
    damage(arrays);
    CHECK(throws<std::invalid_argument>([&] { (void)arrays.build<std::int64_t>(); }));
  }
}

}  // namespace

int main() {
  every_region_gets_its_sum<std::int64_t>();
  every_region_gets_its_sum<Int128>();
  every_region_gets_its_sum<Int2304>();
  a_missing_cell_goes_where_the_test_says();
  a_set_test_asks_the_membership_table();
  distances_are_those_of_positions();
  distances_on_a_joint_axis_add_up();
  broken_arrays_are_refused();
  return failures;
}

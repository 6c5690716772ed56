// Windows, balls and shifts reach just the masks within the distance, in few rows.
#include "xcount/exact/mask_windows.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "check.hpp"
#include "random_world.hpp"

using namespace xcount;
using xcount::test::failures;
using xcount::test::World;

namespace {

void windows_hold_the_neighbours() {
  for (const std::int32_t missing : {-1, 39}) {
    const World world({40}, {missing});
    const auto forest = world.build<std::int64_t>();
    for (std::int64_t distance = 1; distance < 40; ++distance) {
      const MaskSpace masks(forest, {0}, distance);
      const MaskWindows windows(forest, masks, {});
      if (windows.any) {
        CHECK(distance >= (missing < 0 ? 39 : 38));
        continue;
      }
      CHECK(windows.n_levels == 0);
      for (std::size_t m = 0; m < windows.n_masks; ++m) {
        std::vector<MaskIndex> found;
        for (std::uint32_t i = windows.first[m]; i < windows.first[m + 1]; ++i) {
          const std::size_t row = windows.near[i].cell;
          const std::size_t end = row < windows.line.n_ordered ? row + windows.width : row + 1;
          for (std::size_t p = row; p < end; ++p) found.push_back(static_cast<MaskIndex>(p));
        }
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        std::erase(found, static_cast<MaskIndex>(m));
        CHECK(found == masks.neighbours(static_cast<MaskIndex>(m)));
      }
    }
  }
}

std::size_t longest_of(const std::vector<MaskAxis>& axes) {
  std::size_t longest = 0;
  for (const MaskAxis& axis : axes) longest = std::max(longest, axis.n_cells);
  return longest;
}

// The masks that shifts reach, by position, are just those within the distance.
void shifts_hold_the_neighbours() {
  std::size_t n_grown = 0;
  for (const std::vector<std::int32_t>& cells :
       std::vector<std::vector<std::int32_t>>{{9, 8}, {2, 11}, {5, 4, 6}, {3, 4, 3, 5}}) {
    const World world(cells, std::vector<std::int32_t>(cells.size(), -1));
    const auto forest = world.build<std::int64_t>();
    std::vector<Feature> features;
    for (std::size_t f = 0; f < cells.size(); ++f) features.push_back(static_cast<Feature>(f));
    for (std::int64_t distance = 1; distance < 16; ++distance) {
      const MaskSpace masks(forest, features, distance);
      const std::vector<CellOrder> orders = choose_cell_orders(
          std::vector<const Topology*>{&forest}, std::vector<bool>(forest.axes.size(), true));
      const MaskWindows windows(forest, masks, orders);
      const std::vector<MaskIndex> mask_at = masks_by_position(masks, orders);
      if (windows.any || windows.growth.empty()) continue;
      ++n_grown;
      CHECK(windows.n_planes.size() + 1 == windows.growth.size());
      CHECK(windows.grown.back().n_cells == longest_of(windows.grown));
      std::vector<std::set<MaskIndex>> ball(windows.n_masks);
      for (std::size_t m = 0; m < ball.size(); ++m) ball[m] = {static_cast<MaskIndex>(m)};
      for (const std::size_t shift : windows.growth) {
        const auto before = ball;
        for (std::size_t m = 0; m < ball.size(); ++m) {
          std::set<MaskIndex> wider = before[m].size() == 1 ? before[m] : std::set<MaskIndex>{};
          for (const MaskAxis& axis : windows.grown) {
            const std::size_t cell = m / axis.stride % axis.n_cells;
            const auto& low = before[m - std::min(shift, cell) * axis.stride];
            const auto& high = before[m + std::min(shift, axis.n_cells - 1 - cell) * axis.stride];
            wider.insert(low.begin(), low.end());
            wider.insert(high.begin(), high.end());
          }
          ball[m] = wider;
        }
      }
      for (std::size_t m = 0; m < ball.size(); ++m) {
        std::vector<MaskIndex> found;
        for (const MaskIndex position : ball[m]) {
          if (position != static_cast<MaskIndex>(m)) {
            found.push_back(mask_at[static_cast<std::size_t>(position)]);
          }
        }
        std::sort(found.begin(), found.end());
        CHECK(found == masks.neighbours(mask_at[m]));
      }
    }
  }
  CHECK(n_grown > 15);
}

// Asking the masks one by one finds the same ones, with and without an order of the cells.
void asking_one_by_one_finds_the_neighbours() {
  World world({7, 5, 4}, {6, -1, -1});
  world.ordered[2] = 0;
  const auto forest = world.build<std::int64_t>();
  const std::vector<CellOrder> orders = choose_cell_orders(
      std::vector<const Topology*>{&forest}, std::vector<bool>(forest.axes.size(), true));
  for (std::int64_t distance = 1; distance < 9; ++distance) {
    const MaskSpace masks(forest, {0, 1, 2}, distance);
    const MaskWindows windows(forest, masks, orders);
    const std::vector<MaskIndex> mask_at = masks_by_position(masks, orders);
    for (std::size_t m = 0; m < windows.n_masks; ++m) {
      std::vector<MaskIndex> found;
      CHECK(!windows.any_near(m, [&](std::size_t other) {
        if (other != m) found.push_back(mask_at[other]);
        return false;
      }));
      std::sort(found.begin(), found.end());
      CHECK(found == masks.neighbours(mask_at[m]));
      const auto last = found.back();
      CHECK(windows.any_near(m, [&](std::size_t other) { return mask_at[other] == last; }));
    }
  }
}

// Many masks, long axes: what lists of neighbours would not hold takes a few rows each.
void windows_of_long_axes_are_short() {
  const World world({1000, 1000, 7}, {-1, 999, -1});
  const auto forest = world.build<std::int64_t>();
  const MaskWindows two(forest, MaskSpace(forest, {0, 2}, 300), {});
  CHECK(two.growth.size() == 10);
  CHECK(two.rows_per_mask() < 60);
  const MaskWindows missing(forest, MaskSpace(forest, {1, 2}, 300), {});
  CHECK(missing.growth.empty());
  CHECK(missing.line.n_cells == 1000);
  CHECK(missing.n_levels == 6);
  const MaskWindows near(forest, MaskSpace(forest, {0, 1}, 3), {});
  CHECK(near.n_masks == 1000000);
  CHECK(near.rows_per_mask() < 30);
}

}  // namespace

int main() {
  windows_hold_the_neighbours();
  shifts_hold_the_neighbours();
  asking_one_by_one_finds_the_neighbours();
  windows_of_long_axes_are_short();
  return failures;
}

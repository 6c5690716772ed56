// Forests that grow node by node, and random ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "example_forest.hpp"

namespace xcount::test {

// A forest that grows node by node.
struct World : ExampleArrays {
  World(std::vector<std::int32_t> cells, std::vector<std::int32_t> missing) {
    n_cells = std::move(cells);
    missing_cell = std::move(missing);
    ordered.assign(n_cells.size(), 1);
    for (auto* column : {&roots, &feature, &cut, &left, &right}) column->clear();
    missing_left.clear();
    values.clear();
  }
  explicit World(std::vector<std::int32_t> cells)
      : World(cells, std::vector<std::int32_t>(cells.size(), -1)) {}

  std::int32_t add(std::int32_t f, std::int32_t c, std::int64_t value, bool missing_goes_left) {
    feature.push_back(f);
    cut.push_back(c);
    values.push_back(value);
    missing_left.push_back(missing_goes_left ? 1 : 0);
    left.push_back(-1);
    right.push_back(-1);
    return static_cast<std::int32_t>(feature.size() - 1);
  }
  void set_children(std::int32_t node, std::int32_t low, std::int32_t high) {
    left[static_cast<std::size_t>(node)] = low;
    right[static_cast<std::size_t>(node)] = high;
  }
};

// Random trees on axes with missing cells, set tests, and more than 64 cells.
inline World random_world(std::mt19937& random, int n_trees, int depth) {
  World world({3, 90, 4, 5}, {-1, random() % 2 == 0 ? 89 : -1, 3, -1});
  world.ordered[3] = 0;
  const auto grow = [&](auto&& self, int levels) -> std::int32_t {
    if (levels == 0) return world.add(-1, 0, static_cast<std::int64_t>(random() % 7) - 3, false);
    const auto feature = static_cast<std::int32_t>(random() % 4);
    const std::int32_t n_cells = world.n_cells[static_cast<std::size_t>(feature)];
    std::int32_t cut = 1 + static_cast<std::int32_t>(random() % static_cast<unsigned>(n_cells - 1));
    if (feature == 3 || (feature == 1 && random() % 4 == 0)) {
      cut = -1 - static_cast<std::int32_t>(world.membership.size());
      for (std::int32_t cell = 0; cell < n_cells; ++cell) {
        world.membership.push_back(random() % 2 == 0 ? 1 : 0);
      }
    } else if (world.missing_cell[static_cast<std::size_t>(feature)] >= 0) {
      cut = std::min(cut, n_cells - 1);
    }
    const std::int32_t node = world.add(feature, cut, 0, random() % 2 == 0);
    const std::int32_t low = self(self, levels - 1);
    const std::int32_t high = self(self, levels - 1);
    world.set_children(node, low, high);
    return node;
  };
  for (int i = 0; i < n_trees; ++i) {
    const std::int32_t root = grow(grow, depth);
    world.roots.push_back(root);
  }
  return world;
}

}  // namespace xcount::test

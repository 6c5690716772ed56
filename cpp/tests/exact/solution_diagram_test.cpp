// Diagrams of solutions: their boxes are disjoint and hold just the solutions; samples solve.
#include "xcount/exact/solution_diagram.hpp"

#include <set>

#include "check.hpp"
#include "residual_trees.hpp"

using namespace xcount;
using namespace xcount::test;

namespace {

void boxes_and_samples_are_the_solutions() {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const World world = random_world(random, 4, 3);
    const Forest<std::int64_t> forest = world.build<std::int64_t>();
    const MaskSpace masks(forest, {0}, 1);
    const SolutionDiagram<std::int64_t> diagram(forest, masks, 2, {{{0, 1}, {1, 2}}}, {});
    const std::vector<Feature>& features = diagram.features();
    const std::vector<SolutionBox> boxes = diagram.boxes(1'000'000);
    std::uint64_t n_solutions = 0;
    std::set<std::vector<Cell>> solutions;
    for_each_region(forest, [&](std::span<const Cell> region) {
      if (region[0] != 0) return;  // the other masks have the same solutions
      std::vector<Cell> at(region.begin(), region.end());
      std::int64_t sums[3];
      for (MaskIndex m = 0; m < 3; ++m) {
        masks.write_cells(m, at);
        sums[m] = forest.sum(at);
      }
      const bool solves = std::abs(sums[0] - sums[1]) > 2 || std::abs(sums[1] - sums[2]) > 2;
      std::size_t n_boxes = 0;
      for (const SolutionBox& box : boxes) {
        bool inside = true;
        for (std::size_t i = 0; i < features.size(); ++i) {
          const Cell cell = region[static_cast<std::size_t>(features[i])];
          inside = inside && box.begin[i] <= cell && cell < box.end[i];
        }
        n_boxes += inside ? 1 : 0;
      }
      CHECK(n_boxes == (solves ? 1 : 0));
      if (!solves) return;
      ++n_solutions;
      std::vector<Cell> cells;
      for (const Feature f : features) cells.push_back(region[static_cast<std::size_t>(f)]);
      solutions.insert(cells);
    });
    CHECK(diagram.count()[0] == solutions.size());
    if (n_solutions == 0) {
      CHECK(throws<std::invalid_argument>([&] { static_cast<void>(diagram.sample(1, 0)); }));
      continue;
    }
    const std::vector<Cell> samples = diagram.sample(50, seed);
    for (std::size_t i = 0; i < 50; ++i) {
      const auto begin = samples.begin() + static_cast<std::ptrdiff_t>(i * features.size());
      CHECK(solutions.contains({begin, begin + static_cast<std::ptrdiff_t>(features.size())}));
    }
  }
}

}  // namespace

int main() {
  boxes_and_samples_are_the_solutions();
  return failures;
}

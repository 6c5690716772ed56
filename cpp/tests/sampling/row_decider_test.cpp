// Blocks of samples are decided as sums of the trees' own leaves say, for every way of comparing
// masks, for trees of more leaves than a table has entries, and by every vector unit.
#include "xcount/sampling/row_decider.hpp"

#include <numeric>
#include <random>

#include "check.hpp"
#include "random_world.hpp"
#include "xcount/support/vector_unit.hpp"

using namespace xcount;
using xcount::test::failures;
using xcount::test::random_world;
using xcount::test::World;

namespace {

constexpr std::size_t kSamples = 300;  // a block and a part of one

std::vector<Cell> random_regions(const Topology& forest, std::mt19937& random, std::size_t n) {
  std::vector<Cell> regions;
  for (std::size_t i = 0; i < n; ++i) {
    for (const Axis& axis : forest.axes) {
      regions.push_back(static_cast<Cell>(random() % static_cast<unsigned>(axis.n_cells)));
    }
  }
  return regions;
}

template <class Value>
void set_cells(const RowDecider<Value>& decider, std::span<const Cell> regions, std::size_t first,
               std::size_t n, std::size_t n_features, typename RowDecider<Value>::Workspace& work) {
  for (const auto& drawn : decider.drawn()) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t place = (first + i) * n_features + static_cast<std::size_t>(drawn.feature);
      decider.set(drawn, i, regions.subspan(place, 1), work);
    }
  }
}

// The definition: V of both masks from the leaves that the cells lead to.
template <class Value>
bool differs(const Forest<Value>& forest, const MaskSpace& masks, std::span<const Cell> region,
             MaskIndex from, MaskIndex to, const Gap<Value>& gap) {
  std::vector<Cell> cells(region.begin(), region.end());
  masks.write_cells(from, cells);
  const Value before = forest.sum(cells);
  masks.write_cells(to, cells);
  return gap.is_exceeded(forest.sum(cells) - before);
}

template <class Value>
bool is_sensitive(const Forest<Value>& forest, const MaskSpace& masks, std::span<const Cell> region,
                  MaskIndex mask, const Gap<Value>& gap) {
  for (const MaskIndex other : masks.neighbours(mask)) {
    if (differs(forest, masks, region, mask, other, gap)) return true;
  }
  return false;
}

template <class Value>
void masks_are_decided_as_defined(const Forest<Value>& forest, std::vector<Feature> sensitive,
                                  std::optional<std::int64_t> distance, const Gap<Value>& gap,
                                  std::mt19937& random) {
  const MaskSpace masks(forest, std::move(sensitive), distance);
  MaskQuestion question;
  question.unresolved.resize(static_cast<std::size_t>(masks.size()));
  std::iota(question.unresolved.begin(), question.unresolved.end(), MaskIndex{0});
  const RowDecider<Value> decider(forest, masks, question, gap);
  const std::size_t n_features = forest.axes.size();
  const std::vector<Cell> regions = random_regions(forest, random, kSamples);
  const auto n_masks = static_cast<std::size_t>(masks.size());
  std::vector<std::uint8_t> found(kSamples * n_masks);
  const auto visit = [&](std::uint64_t first, std::size_t n, std::span<const std::uint8_t> flags,
                         std::size_t stride) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t m = 0; m < n_masks; ++m) {
        found[(first + i) * n_masks + m] = flags[m * stride + i];
      }
    }
  };
  auto work = decider.workspace();
  for (std::size_t first = 0; first < kSamples; first += kBlock) {
    const std::size_t n = std::min(kBlock, kSamples - first);
    set_cells<Value>(decider, regions, first, n, n_features, work);
    decider.decide(first, n, work, visit);
  }
  decider.finish(work, visit);
  for (std::size_t i = 0; i < kSamples; ++i) {
    const auto region = std::span(regions).subspan(i * n_features, n_features);
    for (std::size_t m = 0; m < n_masks; ++m) {
      const bool expected = is_sensitive(forest, masks, region, static_cast<MaskIndex>(m), gap);
      CHECK((found[i * n_masks + m] != 0) == expected);
    }
  }
}

template <class Value>
void pairs_are_decided_as_defined(const Forest<Value>& forest, Asked asked, std::mt19937& random) {
  const MaskSpace masks(forest, {0, 3}, std::nullopt);
  const Gap<Value> gap(Value(2));
  MaskQuestion question;
  question.all_pairs = false;
  for (int i = 0; i < 3; ++i) {
    const auto mask = [&] { return static_cast<MaskIndex>(random() % 15); };
    const MaskIndex a = mask();
    question.pairs.emplace_back(a, (a + 1 + mask() % 14) % 15);
  }
  const RowDecider<Value> decider(forest, masks, question, gap, asked);
  const std::size_t n_features = forest.axes.size();
  const std::vector<Cell> regions = random_regions(forest, random, kBlock);
  std::vector<std::uint8_t> found(kBlock);
  auto work = decider.workspace();
  set_cells<Value>(decider, regions, 0, kBlock, n_features, work);
  const auto visit = [&](std::uint64_t first, std::size_t n, std::span<const std::uint8_t> flags,
                         std::size_t) {
    std::copy_n(flags.begin(), n, found.begin() + static_cast<std::ptrdiff_t>(first));
  };
  decider.decide(0, kBlock, work, visit);
  decider.finish(work, visit);
  for (std::size_t i = 0; i < kBlock; ++i) {
    const auto region = std::span(regions).subspan(i * n_features, n_features);
    const auto holds = [&](const auto& pair) {
      return differs(forest, masks, region, pair.first, pair.second, gap);
    };
    const bool expected = asked == Asked::kAnyPair ? std::ranges::any_of(question.pairs, holds)
                                                   : std::ranges::all_of(question.pairs, holds);
    CHECK((found[i] != 0) == expected);
  }
}

template <class Value>
void every_comparison_is_as_defined(std::uint32_t seed, int n_trees, int depth) {
  std::mt19937 random(seed);
  World world = random_world(random, n_trees, depth);
  // Values beyond 30 bits are rounded: what their last bits decide, only exact sums see.
  const bool is_large = seed % 2 == 1;
  const std::int64_t unit = is_large ? std::int64_t{1} << 38 : 1;
  for (std::int64_t& value : world.values) {
    value *= unit;
    if (is_large) value += static_cast<std::int64_t>(random() % 16384) - 8192;
  }
  const Forest<Value> forest = world.build<Value>();
  for (const Direction direction : {Direction::kAny, Direction::kUp, Direction::kDown}) {
    for (const std::int64_t gap : {0, 2}) {
      const Gap<Value> asked(Value(gap * unit), direction);
      masks_are_decided_as_defined(forest, {0}, 1, asked, random);
      masks_are_decided_as_defined(forest, {2}, 1, asked, random);
      masks_are_decided_as_defined(forest, {3}, std::nullopt, asked, random);
      masks_are_decided_as_defined(forest, {0, 3}, 1, asked, random);
      masks_are_decided_as_defined(forest, {2, 0}, std::nullopt, asked, random);
    }
  }
  masks_are_decided_as_defined(forest, {1}, 3, Gap<Value>(Value(unit)), random);
  if (is_large) return;
  pairs_are_decided_as_defined(forest, Asked::kAnyPair, random);
  pairs_are_decided_as_defined(forest, Asked::kAllPairs, random);
}

}  // namespace

int main() {
  for (std::uint32_t seed = 0; seed < 6; ++seed) {
    every_comparison_is_as_defined<std::int64_t>(seed, 4, 3);
    every_comparison_is_as_defined<Int128>(seed, 3, 4);
  }
  every_comparison_is_as_defined<Int2304>(0, 2, 3);
  every_comparison_is_as_defined<Int2304>(1, 2, 3);
  every_comparison_is_as_defined<std::int64_t>(7, 2, 10);  // trees of 1,024 leaves
  return failures;
}

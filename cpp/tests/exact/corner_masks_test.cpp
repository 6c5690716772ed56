// Corner sums of many masks: balls on several ordered axes, several gaps, large tiles, two masks.
#include <optional>
#include <random>
#include <vector>

#include "corner_definition.hpp"

using namespace xcount;
using xcount::test::agrees;
using xcount::test::deep_world;
using xcount::test::failures;
using xcount::test::random_weights;
using xcount::test::scaled;
using xcount::test::worlds;

namespace {

// Some gaps, or some flips, in any direction.
std::vector<Change<std::int64_t>> several_changes(std::mt19937& random, std::int64_t unit) {
  const ChangeForm form = random() % 4 == 0 ? ChangeForm::kFlip : ChangeForm::kGap;
  const bool is_any = random() % 2 == 0;
  std::vector<Change<std::int64_t>> changes;
  for (std::size_t n = 1 + random() % (form == ChangeForm::kFlip ? 2 : 5); n > 0; --n) {
    const auto way = is_any ? Direction::kAny : static_cast<Direction>(random() % 3);
    const auto threshold = static_cast<std::int64_t>(random() % 20) * unit;
    changes.emplace_back(form, way, threshold + static_cast<std::int64_t>(random() % 3) - 1);
    if (form == ChangeForm::kGap) changes.back().threshold += 1;
  }
  return changes;
}

// Two to four ordered axes, in any order of their lengths, at every distance: balls grow plane by
// plane, and sums are shrunk row by row. Leaves are within a few units of ties.
void many_masks_agree(unsigned seed, std::int64_t unit, int n_worlds) {
  static const std::vector<std::vector<Feature>> kSets{
      {0, 1}, {1, 0}, {2, 3}, {0, 1, 2}, {2, 0, 1}, {1, 2, 3}, {3, 2, 1, 4}, {4, 3}};
  std::mt19937 random(seed);
  for (int i = 0; i < worlds(n_worlds); ++i) {
    Forest<std::int64_t> forest = scaled(deep_world(random, {6, 7, 4, 3, 12}), unit);
    for (std::int64_t& value : forest.values) {
      value += static_cast<std::int64_t>(random() % 3) - 1;
    }
    const std::optional<std::int64_t> distance =
        i % 7 == 0 ? std::nullopt : std::optional<std::int64_t>(1 + random() % 12);
    const MaskSpace masks(forest, kSets[random() % kSets.size()], distance);
    const auto changes = several_changes(random, unit);
    const Forest<std::int64_t>* const forests[] = {&forest};
    const std::int64_t bases[] = {0};
    CornerQuestion<std::int64_t> question{forests, bases, &masks, changes, {}};
    if (i % 5 == 0) question.weights = random_weights(random, forest);
    question.vector_unit = static_cast<VectorUnit>(i % 3);
    if (random() % 2 == 0) question.block_bytes = random() % 4 << 10;
    if (random() % 4 == 0) question.max_bytes = std::size_t{1} << 18;  // then rows are short
    agrees(question);
  }
}

// Tiles that are larger than a block: sums are held of the masks alone that have corners, in one or
// several groups of columns, with outer axes and without, and few leaves, so that masks without
// corners abound. Ties are near, so that some are settled by 16 bits more, by the sums, or in full.
void large_tiles_agree(unsigned seed, std::int64_t unit, std::int64_t noise) {
  static const std::vector<std::vector<Feature>> kSets{{0, 1, 2}, {2, 1, 0}, {1, 0}, {4, 1}};
  static const std::vector<std::vector<std::int32_t>> kShapes{
      {5, 6, 4, 50, 3}, {4, 9, 2, 30, 2}, {6, 5, 3, 8, 3}};
  std::mt19937 random(seed);
  for (int i = 0; i < worlds(36); ++i) {
    Forest<std::int64_t> forest = scaled(deep_world(random, kShapes[random() % 3]), unit);
    for (std::int64_t& value : forest.values) {
      value += static_cast<std::int64_t>(random() % static_cast<unsigned>(2 * noise + 1)) - noise;
    }
    const MaskSpace masks(forest, kSets[random() % kSets.size()], 1 + random() % 6);
    const auto changes = several_changes(random, unit);
    const Forest<std::int64_t>* const forests[] = {&forest};
    const std::int64_t bases[] = {0};
    CornerQuestion<std::int64_t> question{forests, bases, &masks, changes, {}};
    question.vector_unit = static_cast<VectorUnit>(i % 3);
    question.block_bytes = 0;
    agrees(question);
  }
}

// Two masks change together; with a direction they do not.
void two_masks_agree() {
  std::mt19937 random(31);
  for (int i = 0; i < worlds(30); ++i) {
    const auto forest = deep_world(random, {2, 7, 4, 3, 12}).build<std::int64_t>();
    const MaskSpace masks(forest, {0}, std::nullopt);
    const auto changes = several_changes(random, 1);
    const Forest<std::int64_t>* const forests[] = {&forest};
    const std::int64_t bases[] = {0};
    CornerQuestion<std::int64_t> question{forests, bases, &masks, changes, {}};
    if (i % 3 == 0) question.weights = random_weights(random, forest);
    question.vector_unit = static_cast<VectorUnit>(i % 3);
    agrees(question);
  }
}

}  // namespace

int main() {
  many_masks_agree(25, 1, 60);
  many_masks_agree(26, 1 << 14, 60);
  many_masks_agree(27, std::int64_t{1} << 30, 60);
  many_masks_agree(28, std::int64_t{1} << 48, 60);
  large_tiles_agree(41, 1, 0);
  large_tiles_agree(42, 1 << 14, 1);
  large_tiles_agree(43, 1 << 22, 1 << 8);
  large_tiles_agree(44, std::int64_t{1} << 48, 1);
  large_tiles_agree(45, std::int64_t{1} << 48, std::int64_t{1} << 30);
  two_masks_agree();
  return failures;
}

// Corner sums count what the definition says, on random small worlds, for every kind of question.
#include "xcount/exact/corner_sums.hpp"

#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>

#include "corner_definition.hpp"
#include "xcount/exact/cell_order.hpp"

using namespace xcount;
using xcount::test::agrees;
using xcount::test::at;
using xcount::test::by_definition;
using xcount::test::close;
using xcount::test::count_all;
using xcount::test::deep_world;
using xcount::test::ExampleArrays;
using xcount::test::Expected;
using xcount::test::failures;
using xcount::test::is_sure;
using xcount::test::kSoftmaxUnit;
using xcount::test::make_sums;
using xcount::test::random_weights;
using xcount::test::random_world;
using xcount::test::scaled;
using xcount::test::throws;
using xcount::test::World;
using xcount::test::worlds;

namespace {

std::optional<std::int64_t> random_distance(std::mt19937& random) {
  constexpr std::int64_t kDistances[] = {1, 2, 3, 5, 17, 60, 88};
  const std::size_t i = random() % 8;
  return i == 7 ? std::nullopt : std::optional(kDistances[i]);
}

std::vector<Feature> random_features(std::mt19937& random) {
  static const std::vector<std::vector<Feature>> kSets{{0},    {1},    {2},       {3},   {0, 2},
                                                       {2, 3}, {3, 0}, {0, 3, 2}, {1, 0}};
  return kSets[random() % kSets.size()];
}

// Without gaps of 0, wide sums are decided by rounded ones where they can be; ties abound.
template <class Value>
std::vector<Change<Value>> random_changes(std::mt19937& random, const Value& unit, bool has_zero) {
  std::vector<Change<Value>> changes;
  for (const Direction direction : {Direction::kAny, Direction::kUp, Direction::kDown}) {
    Value threshold = has_zero ? Value(0) : unit;
    for (unsigned i = random() % 6; i > 0; --i) threshold += unit;
    if (random() % 4 == 0) threshold += Value(1);
    changes.push_back({ChangeForm::kGap, direction, threshold});
    changes.push_back({ChangeForm::kFlip, direction, random() % 2 == 0 ? threshold : -threshold});
    changes.push_back(changes.back());  // only from margins at some distance of the cut-off
    for (unsigned i = random() % 4; i > 0; --i) changes.back().sure_below -= unit;
    for (unsigned i = random() % 4; i > 0; --i) changes.back().sure_above += unit;
  }
  if (has_zero) changes.push_back({ChangeForm::kGap, Direction::kAny, Value(0)});
  return changes;
}

template <class Value>
void random_worlds_agree(unsigned seed, int n_worlds, const Value& unit) {
  std::mt19937 random(seed);
  for (int i = 0; i < worlds(n_worlds); ++i) {
    const World world = random_world(random, 1 + static_cast<int>(random() % 6), 3);
    const Forest<Value> forest = scaled(world, unit);
    const MaskSpace masks(forest, random_features(random), random_distance(random));
    const std::vector<Change<Value>> changes = random_changes(random, unit, i % 2 == 0);
    const Forest<Value>* const forests[] = {&forest};
    const Value bases[] = {random() % 2 == 0 ? Value(0) : unit};
    CornerQuestion<Value> question{forests, bases, &masks, changes, {}};
    if (random() % 2 == 0) question.weights = random_weights(random, forest);
    question.vector_unit = static_cast<VectorUnit>(i % 3);
    if (random() % 2 == 0) question.block_bytes = random() % 4 << 10;  // then blocks are many
    if (random() % 4 == 0) question.max_bytes = std::size_t{1} << 18;  // then rows are short
    agrees(question);
  }
}

// Leaves that are no multiples of any unit: the rounded sums are off by up to half a unit each.
void rounded_leaves_decide() {
  std::mt19937 random(8);
  for (int i = 0; i < worlds(12); ++i) {
    const World world = random_world(random, 6, 3);
    Forest<Int128> forest = world.build<Int128>();
    for (Int128& value : forest.values) {
      value = value * (Int128{1} << 90) + static_cast<Int128>(random() % 4);
    }
    const MaskSpace masks(forest, random_features(random), random_distance(random));
    const Int128 tie = (Int128{1} << 90) * static_cast<Int128>(1 + random() % 3);
    Change<Int128> changes[] = {
        {ChangeForm::kGap, Direction::kAny, tie},      {ChangeForm::kGap, Direction::kUp, tie + 1},
        {ChangeForm::kFlip, Direction::kAny, tie - 2}, {ChangeForm::kFlip, Direction::kDown, 2},
        {ChangeForm::kFlip, Direction::kAny, 2},       {ChangeForm::kFlip, Direction::kUp, 1}};
    for (Change<Int128>& change : std::span(changes).last(2)) {  // from sure decisions alone
      change.sure_below -= static_cast<Int128>(random() % 4) + (i % 3 == 0 ? tie : Int128{0});
      change.sure_above += static_cast<Int128>(random() % 4) + (i % 3 == 1 ? tie : Int128{0});
    }
    const Forest<Int128>* const forests[] = {&forest};
    const Int128 bases[] = {0};
    CornerQuestion<Int128> question{forests, bases, &masks, changes, {}};
    if (i % 2 == 0) question.weights = random_weights(random, forest);
    agrees(question);
    const CornerCounts rounded = count_all<Int128>(*make_sums(question), 1);
    question.may_round = false;
    CHECK(count_all<Int128>(*make_sums(question), 1).counts == rounded.counts);
  }
}

// One or two gaps, or one flip: such changes are compared by 16 bits first.
template <class Value>
std::vector<Change<Value>> few_changes(std::mt19937& random, const Value& unit) {
  const auto way = [&] { return static_cast<Direction>(random() % 3); };
  Value threshold = random() % 4 == 0 ? Value(0) : unit;
  for (unsigned i = random() % 4; i > 0; --i) threshold += unit;
  if (random() % 3 == 0) {
    std::vector<Change<Value>> flips{{ChangeForm::kFlip, way(), threshold - unit}};
    if (random() % 2 == 0) flips[0].sure_below -= unit;
    if (random() % 2 == 0) flips[0].sure_above += unit;
    return flips;
  }
  std::vector<Change<Value>> gaps{{ChangeForm::kGap, way(), threshold}};
  if (random() % 2 == 0) gaps.push_back({ChangeForm::kGap, way(), threshold + unit + Value(1)});
  return gaps;
}

// noise: what leaves are off their multiples of the unit, so that gaps are exceeded or missed by as
// little; rare: as few leaves, so that few regions are close.
void sixteen_bits_decide(unsigned seed, std::int64_t unit, std::int64_t noise, bool rare) {
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % at(n)); };
  for (int i = 0; i < worlds(60); ++i) {
    Forest<std::int64_t> forest = scaled(random_world(random, 5, 3), unit);
    for (std::int64_t& value : forest.values) {
      value += rare && random() % 8 != 0 ? below(unit) : below(2 * noise + 1) - noise;
    }
    const MaskSpace masks(forest, random_features(random), random_distance(random));
    const auto changes = few_changes<std::int64_t>(random, unit);
    const Forest<std::int64_t>* const forests[] = {&forest};
    const std::int64_t bases[] = {0};
    CornerQuestion<std::int64_t> question{forests, bases, &masks, changes, {}};
    question.vector_unit = static_cast<VectorUnit>(i % 3);
    if (random() % 2 == 0) question.block_bytes = random() % 4 << 10;
    if (random() % 4 == 0) question.max_bytes = std::size_t{1} << 18;  // then rows are short
    agrees(question);
  }
}

void a_stop_ends_the_making() {
  std::mt19937 random(12);
  const auto forest = random_world(random, 3, 3).build<std::int64_t>();
  const Forest<std::int64_t>* const forests[] = {&forest};
  const std::int64_t bases[] = {0};
  const MaskSpace masks(forest, {0}, 1);
  const Change<std::int64_t> changes[] = {{ChangeForm::kFlip, Direction::kAny, 1}};
  Stop over(0.0);
  CHECK(throws<Stopped>([&] {
    static_cast<void>(
        make_corner_sums(CornerQuestion<std::int64_t>{forests, bases, &masks, changes, {}}, over));
  }));
}

void largest_of_several_agrees() {
  std::mt19937 random(5);
  for (int i = 0; i < worlds(40); ++i) {
    const std::size_t n_outputs = 2 + random() % 3;
    std::vector<Forest<std::int64_t>> outputs;
    std::vector<const Forest<std::int64_t>*> forests;
    std::vector<std::int64_t> bases;
    const World shape = random_world(random, 1, 1);
    for (std::size_t k = 0; k < n_outputs; ++k) {
      World world = random_world(random, static_cast<int>(random() % 4), 3);
      world.missing_cell = shape.missing_cell;
      outputs.push_back(world.build<std::int64_t>());
      bases.push_back(static_cast<std::int64_t>(random() % 3));
    }
    for (const auto& output : outputs) forests.push_back(&output);
    const MaskSpace masks(outputs[0], random_features(random), random_distance(random));
    Change<std::int64_t> changes[] = {{ChangeForm::kLargest, Direction::kAny, 0}};
    CornerQuestion<std::int64_t> question{forests, bases, &masks, changes, {}};
    if (i % 4 != 0) {
      changes[0].form = ChangeForm::kSureLargest;
      changes[0].sure_above = static_cast<std::int64_t>(random() % 5) - 2;
      question.link = {i % 4 == 1, 0, kSoftmaxUnit, 0};
      if (i % 4 == 1) changes[0].threshold = kProbabilityOne / 10 * (3 + i % 5);
      question.judge = [&](std::size_t, std::span<const std::int64_t> own, auto) {
        return is_sure(changes[0], std::vector<std::int64_t>(own.begin(), own.end()));
      };
    }
    if (random() % 2 == 0) question.weights = random_weights(random, outputs[0]);
    question.vector_unit = static_cast<VectorUnit>(i % 3);
    if (random() % 2 == 0) question.block_bytes = random() % 4 << 10;  // then blocks are many
    if (random() % 4 == 0) question.max_bytes = std::size_t{1} << 18;  // then rows are short
    agrees(question);
  }
}

void slices_of_many_blocks_add_up() {
  std::mt19937 random(11);
  const World world = deep_world(random, {60, 6, 9, 8, 7});
  const auto forest = world.build<std::int64_t>();
  const MaskSpace masks(forest, {1}, 4);
  const Change<std::int64_t> changes[] = {{ChangeForm::kGap, Direction::kAny, 6},
                                          {ChangeForm::kFlip, Direction::kUp, 2}};
  const Forest<std::int64_t>* const forests[] = {&forest};
  const std::int64_t bases[] = {0};
  CornerQuestion<std::int64_t> question{forests, bases, &masks, changes, {}};
  question.weights = random_weights(random, forest);
  question.block_bytes = 0;
  const std::unique_ptr<CornerSums> sums = make_sums(question);
  CHECK(sums->n_blocks() > 20);
  CHECK(sums->n_regions() == 60ULL * 6 * 9 * 8 * 7);
  const CornerCounts whole = count_all<std::int64_t>(*sums, 2);
  const Expected expected = by_definition(question);
  CHECK(whole.counts == expected.counts);
  CHECK(close(*sums, whole.shares, expected.shares));
  std::vector<std::uint64_t> total(whole.counts.size());
  for (std::uint64_t first = 0; first < sums->n_blocks(); first += 7) {
    Stop stop;
    const CornerCounts part = sums->count(first, first + 7, 2, stop);
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += part.counts[i];
  }
  CHECK(total == whole.counts);
  Stop over(0.0);
  CHECK(sums->count(0, sums->n_blocks(), 2, over).n_finished < sums->n_blocks());
}

void figure_1_has_two_sensitive_regions() {
  const auto forest = ExampleArrays().build<std::int64_t>();
  const Forest<std::int64_t>* const forests[] = {&forest};
  const std::int64_t bases[] = {0};
  const MaskSpace masks(forest, {0}, 1);
  const Change<std::int64_t> changes[] = {{ChangeForm::kGap, Direction::kAny, 80},
                                          {ChangeForm::kGap, Direction::kAny, 84},
                                          {ChangeForm::kGap, Direction::kAny, 85}};
  const auto sums = make_sums(CornerQuestion<std::int64_t>{forests, bases, &masks, changes, {}});
  CHECK(sums->n_bits() == 32);
  const CornerCounts result = count_all<std::int64_t>(*sums, 1);
  const auto total = [&](std::size_t i) {
    const auto begin = result.counts.begin() + static_cast<std::ptrdiff_t>(3 * i);
    return std::accumulate(begin, begin + 3, std::uint64_t{0});
  };
  CHECK(total(0) == 2);
  CHECK(total(1) == 2);
  CHECK(total(2) == 0);
}

void bad_questions_are_refused() {
  const auto forest = ExampleArrays().build<std::int64_t>();
  const Forest<std::int64_t>* const forests[] = {&forest, &forest};
  const std::int64_t bases[] = {0, INT64_MAX / 2};
  const MaskSpace masks(forest, {0}, 1);
  const auto refused = [&](std::size_t n, const Change<std::int64_t>& change, std::size_t base,
                           std::vector<std::vector<double>> weights) {
    const Change<std::int64_t> changes[] = {change};
    return throws<std::invalid_argument>([&] {
      const CornerQuestion<std::int64_t> question{std::span(forests).first(n),
                                                  std::span(bases).subspan(base, n), &masks,
                                                  changes, std::move(weights)};
      static_cast<void>(make_sums(question));
    });
  };
  CHECK(!refused(1, {ChangeForm::kGap, Direction::kAny, 1}, 0, {}));
  CHECK(refused(1, {ChangeForm::kGap, Direction::kAny, -1}, 0, {}));
  CHECK(refused(1, {ChangeForm::kLargest, Direction::kAny, 0}, 0, {}));
  CHECK(refused(1, {ChangeForm::kSureLargest, Direction::kAny, 0}, 0, {}));
  CHECK(refused(2, {ChangeForm::kSureLargest, Direction::kAny, 0}, 0, {}));  // without a judge
  CHECK(refused(2, {ChangeForm::kGap, Direction::kAny, 1}, 0, {}));
  CHECK(refused(1, {ChangeForm::kGap, Direction::kAny, 1}, 1, {}));
  CHECK(refused(1, {ChangeForm::kGap, Direction::kAny, 1}, 0, {{1, 1, 1}}));
  CHECK(refused(1, {ChangeForm::kGap, Direction::kAny, 1}, 0, {{1, 1, 1}, {1, 1, -1}}));
  const Change<std::int64_t> changes[] = {{ChangeForm::kGap, Direction::kAny, 1}};
  CHECK(throws<std::length_error>([&] {
    CornerQuestion<std::int64_t> question{
        std::span(forests).first(1), std::span(bases).first(1), &masks, changes, {}};
    question.max_bytes = 100;
    static_cast<void>(make_sums(question));
  }));
}

void sets_of_cells_are_boundaries() {
  CHECK((complement({0, 3}) == CellSet{3}));
  CHECK((complement({2, 3}) == CellSet{0, 2, 3}));
  CHECK(complement({0}).empty());
  CHECK((intersection({0, 4, 6}, {2, 7}) == CellSet{2, 4, 6, 7}));
  CHECK(intersection({0, 2}, {2, 5}).empty());
}

// Categories 0 and 2 always go together: side by side, the set they form has one run.
void unordered_cells_that_go_together_stand_together() {
  World world({4});
  world.ordered[0] = 0;
  world.membership = {1, 0, 1, 0};
  world.add(0, -1, 0, false);
  world.add(-1, 0, 1, false);
  world.add(-1, 0, 2, false);
  world.set_children(0, 1, 2);
  world.roots = {0};
  const auto forest = world.build<std::int64_t>();
  const Topology* const forests[] = {&forest};
  const CellOrder order = choose_cell_orders(forests, {false})[0];
  CHECK((order.cell == std::vector<Cell>{0, 2, 1, 3}) ||
        (order.cell == std::vector<Cell>{0, 2, 3, 1}));
  CHECK((order.left_set(forest, forest.tests[0]) == CellSet{0, 2}));
}

}  // namespace

int main() {
  sets_of_cells_are_boundaries();
  unordered_cells_that_go_together_stand_together();
  figure_1_has_two_sensitive_regions();
  bad_questions_are_refused();
  random_worlds_agree<std::int64_t>(1, 60, 1);
  random_worlds_agree<std::int64_t>(2, 30, std::int64_t{1} << 40);
  random_worlds_agree<Int128>(3, 12, Int128{1} << 100);
  Int2304 huge(1);
  for (int i = 0; i < 2000; ++i) huge += huge;
  random_worlds_agree<Int2304>(4, 6, huge);
  rounded_leaves_decide();
  sixteen_bits_decide(21, 1000, 1, false);  // sums of 32 bits, all of them in 16
  sixteen_bits_decide(22, 1 << 20, 2, false);
  sixteen_bits_decide(23, std::int64_t{1} << 40, 3, false);
  sixteen_bits_decide(24, std::int64_t{1} << 40, 3, true);
  a_stop_ends_the_making();
  largest_of_several_agrees();
  slices_of_many_blocks_add_up();
  return failures;
}

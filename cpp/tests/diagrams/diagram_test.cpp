// The decision diagrams, exhaustively over few variables and by enumeration over some more.
#include <array>
#include <random>
#include <set>

#include "check.hpp"
#include "example_forest.hpp"
#include "xcount/diagrams/add.hpp"
#include "xcount/diagrams/bdd_count.hpp"

namespace {

using namespace xcount;
using Ints = Adds<std::int64_t>;

constexpr unsigned kVariables = 3;
constexpr unsigned kPoints = 1u << kVariables;

std::int64_t evaluate(const Ints& table, NodeId node, unsigned point) {
  while (!table.is_terminal(node)) {
    node = (point >> table.level(node)) & 1u ? table.high(node) : table.low(node);
  }
  return table.value(node);
}

// The diagram that is values[point] at every point; bit v of a point is variable v.
Ref diagram_of(Ints& table, const std::vector<std::int64_t>& values, unsigned n, unsigned level = 0,
               unsigned point = 0) {
  if (level == n) return table.terminal(values[point]);
  const Ref low = diagram_of(table, values, n, level + 1, point);
  const Ref high = diagram_of(table, values, n, level + 1, point | (1u << level));
  return table.ite(table.variable(level), high, low);
}

std::vector<std::int64_t> truth_table(unsigned function) {
  std::vector<std::int64_t> values;
  for (unsigned point = 0; point < kPoints; ++point) values.push_back((function >> point) & 1u);
  return values;
}

bool agrees(const Ints& table, const Ref& f, unsigned function) {
  for (unsigned point = 0; point < kPoints; ++point) {
    if (evaluate(table, f.node(), point) != ((function >> point) & 1u)) return false;
  }
  return true;
}

// All 65,536 pairs of Boolean functions of three variables.
void test_every_boolean_function() {
  const std::vector<std::uint32_t> groups(kVariables, 1);
  Ints table(groups, {});
  std::vector<Ref> functions;
  for (unsigned f = 0; f < 256; ++f) {
    functions.push_back(diagram_of(table, truth_table(f), kVariables));
    CHECK(agrees(table, functions[f], f));
  }
  for (unsigned f = 0; f < 256; ++f) {
    for (unsigned g = 0; g < 256; ++g) {
      CHECK(table.apply(BoolOp::kAnd, functions[f], functions[g]) == functions[f & g]);
      CHECK(table.apply(BoolOp::kOr, functions[f], functions[g]) == functions[f | g]);
      CHECK(table.apply(BoolOp::kXor, functions[f], functions[g]) == functions[f ^ g]);
    }
    CHECK(table.negate(functions[f]) == functions[~f & 255u]);
  }
}

unsigned restricted(unsigned function, unsigned variable, bool value) {
  unsigned result = 0;
  for (unsigned point = 0; point < kPoints; ++point) {
    const unsigned bit = 1u << variable;
    if ((function >> (value ? point | bit : point & ~bit)) & 1u) result |= 1u << point;
  }
  return result;
}

unsigned permuted(unsigned function, const std::array<Level, kVariables>& target) {
  unsigned result = 0;
  for (unsigned point = 0; point < kPoints; ++point) {
    unsigned source = 0;
    for (unsigned v = 0; v < kVariables; ++v) source |= ((point >> target[v]) & 1u) << v;
    if ((function >> source) & 1u) result |= 1u << point;
  }
  return result;
}

void test_unary_operations_on_every_function() {
  const std::vector<std::uint32_t> groups(kVariables, 1);
  Ints table(groups, {});
  for (unsigned f = 0; f < 256; ++f) {
    const Ref diagram = diagram_of(table, truth_table(f), kVariables);
    for (unsigned v = 0; v < kVariables; ++v) {
      std::vector<std::int8_t> values(kVariables, -1);
      std::vector<std::uint8_t> marked(kVariables, 0);
      marked[v] = 1;
      for (const bool value : {false, true}) {
        values[v] = value ? 1 : 0;
        CHECK(agrees(table, table.restrict_to(diagram, values), restricted(f, v, value)));
      }
      const unsigned either = restricted(f, v, false) | restricted(f, v, true);
      CHECK(agrees(table, table.exists(diagram, marked), either));
    }
    for (const std::array<Level, kVariables>& target :
         {std::array<Level, 3>{1, 0, 2}, {2, 0, 1}, {0, 2, 1}, {2, 1, 0}}) {
      CHECK(agrees(table, table.permute(diagram, target), permuted(f, target)));
    }
  }
}

void test_solutions_of_every_function() {
  const std::vector<std::uint32_t> groups(kVariables, 1);
  Ints table(groups, {});
  const std::vector<Level> levels{0, 1, 2};
  for (unsigned f = 0; f < 256; ++f) {
    const Solutions solutions(table, diagram_of(table, truth_table(f), kVariables), levels);
    std::uint64_t expected = 0;
    for (unsigned point = 0; point < kPoints; ++point) expected += (f >> point) & 1u;
    CHECK(solutions.count()[0] == expected);
    std::set<unsigned> seen;
    for (std::uint64_t rank = 0; rank < expected; ++rank) {
      std::array<std::uint8_t, kVariables> bits{};
      solutions.unrank(std::array<std::uint64_t, 1>{rank}, bits);
      CHECK(solutions.contains(bits));
      const unsigned point = bits[0] | (bits[1] * 2u) | (bits[2] * 4u);
      CHECK(((f >> point) & 1u) != 0);
      seen.insert(point);
    }
    CHECK(seen.size() == expected);
    std::array<std::uint8_t, kVariables> bits{};
    const std::array<std::uint64_t, 1> beyond{expected};
    CHECK(test::throws<std::invalid_argument>([&] { solutions.unrank(beyond, bits); }));
  }
}

void test_arithmetic() {
  const std::vector<std::uint32_t> groups(5, 1);
  Ints table(groups, {});
  std::mt19937 random(7);
  std::uniform_int_distribution<std::int64_t> draw(-3, 3);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::int64_t> a(32), b(32);
    for (auto& x : a) x = draw(random);
    for (auto& x : b) x = draw(random);
    const Ref f = diagram_of(table, a, 5), g = diagram_of(table, b, 5);
    const Ref plus = table.arithmetic(AddOp::kPlus, f, g, false);
    const Ref minus = table.arithmetic(AddOp::kMinus, f, g, false);
    const Ref largest = table.arithmetic(AddOp::kMax, f, g, false);
    const Ref least = table.arithmetic(AddOp::kMin, f, g, false);
    const Ref far = table.exceeds(minus, 2);
    for (unsigned p = 0; p < 32; ++p) {
      CHECK(evaluate(table, plus.node(), p) == a[p] + b[p]);
      CHECK(evaluate(table, minus.node(), p) == a[p] - b[p]);
      CHECK(evaluate(table, largest.node(), p) == std::max(a[p], b[p]));
      CHECK(evaluate(table, least.node(), p) == std::min(a[p], b[p]));
      CHECK(evaluate(table, far.node(), p) == (std::abs(a[p] - b[p]) > 2 ? 1 : 0));
    }
  }
}

// Bits of a group are monotone: a point is valid iff each group reads 0...01...1 from its first
// bit.
bool is_monotone(unsigned point) {
  const auto chain = [](unsigned bits, unsigned n) {
    for (unsigned i = 0; i + 1 < n; ++i) {
      if (((bits >> i) & 1u) && !((bits >> (i + 1)) & 1u)) return false;
    }
    return true;
  };
  return chain(point & 7u, 3) && chain(point >> 3, 2);
}

void test_monotone_operations() {
  Ints table(std::vector<std::uint32_t>{3, 2}, {});
  const Ref valid = table.monotone(std::vector<std::uint32_t>{0, 1});
  for (unsigned p = 0; p < 32; ++p) {
    CHECK((evaluate(table, valid.node(), p) == 1) == is_monotone(p));
  }
  std::mt19937 random(11);
  std::uniform_int_distribution<std::int64_t> draw(0, 2);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> a(32), b(32), same(32);
    for (unsigned p = 0; p < 32; ++p) {
      a[p] = draw(random);
      b[p] = draw(random);
      same[p] = is_monotone(p) ? a[p] : draw(random);
    }
    const Ref f = table.simplify(diagram_of(table, a, 5));
    const Ref g = table.simplify(diagram_of(table, b, 5));
    CHECK(f == table.simplify(diagram_of(table, same, 5)));
    const Ref sum = table.arithmetic(AddOp::kPlus, f, g, true);
    CHECK(sum == table.simplify(sum));
    for (unsigned p = 0; p < 32; ++p) {
      if (!is_monotone(p)) continue;
      CHECK(evaluate(table, f.node(), p) == a[p]);
      CHECK(evaluate(table, sum.node(), p) == a[p] + b[p]);
    }
  }
}

void test_counts_beyond_64_bits() {
  const std::vector<std::uint32_t> groups(200, 1);
  Ints table(groups, {});
  std::vector<Level> levels;
  for (Level v = 0; v < 200; ++v) levels.push_back(v);
  // All but one assignment: 2^200 - 1.
  Ref any = table.constant(false);
  for (const Level v : levels) any = table.apply(BoolOp::kOr, any, table.variable(v));
  const Solutions solutions(table, any, levels);
  const std::vector<std::uint64_t> expected{~0ull, ~0ull, ~0ull, 255};
  CHECK(std::vector<std::uint64_t>(solutions.count().begin(), solutions.count().end()) == expected);
  std::vector<std::uint8_t> bits(200);
  solutions.unrank(std::vector<std::uint64_t>{~0ull - 1, ~0ull, ~0ull, 255}, bits);
  CHECK(solutions.contains(bits));
}

void test_garbage_is_collected() {
  Ints table(std::vector<std::uint32_t>(12, 1), {});
  std::mt19937 random(3);
  std::vector<std::int64_t> values(4096);
  for (auto& x : values) x = static_cast<std::int64_t>(random() % 1000);
  const Ref kept = diagram_of(table, values, 12);
  const std::size_t size = table.size(kept);
  {
    const Ref garbage = table.arithmetic(AddOp::kPlus, kept, table.terminal(5), false);
  }
  table.collect_garbage();
  CHECK(table.n_nodes() <= size + 2);
  for (unsigned p = 0; p < 4096; ++p) CHECK(evaluate(table, kept.node(), p) == values[p]);
  // Collected nodes are reused, and the same function is the same node again.
  CHECK(diagram_of(table, values, 12) == kept);
}

void test_limits_raise_and_leave_the_rest_intact() {
  DiagramLimits limits;
  limits.max_nodes = 3000;
  Ints table(std::vector<std::uint32_t>(14, 1), limits);
  std::vector<std::int64_t> values(1024), many(16384);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int64_t>(i);
  const Ref kept = diagram_of(table, values, 10);
  CHECK(test::throws<DiagramLimit>([&] { diagram_of(table, many, 14); }));
  for (unsigned p = 0; p < 1024; ++p) CHECK(evaluate(table, kept.node(), p) == values[p]);
  // What fits still works, after a collection that happens by itself.
  CHECK(table.arithmetic(AddOp::kMinus, kept, kept, false) == table.terminal(0));
  const Ref twice = table.arithmetic(AddOp::kPlus, kept, table.terminal(1), false);
  CHECK(evaluate(table, twice.node(), 17) == 18);

  DiagramLimits small;
  small.max_bytes = 300'000;
  Ints tight(std::vector<std::uint32_t>(14, 1), small);
  CHECK(test::throws<DiagramLimit>([&] { diagram_of(tight, many, 14); }));

  DiagramLimits late;
  late.deadline = std::chrono::steady_clock::now();
  Ints slow(std::vector<std::uint32_t>(14, 1), late);
  CHECK(test::throws<DiagramLimit>([&] {
    const Ref big = diagram_of(slow, many, 14);
    for (int i = 0; i < 100; ++i) (void)slow.arithmetic(AddOp::kPlus, big, slow.terminal(i), false);
  }));
}

void test_misuse_is_refused() {
  Ints table(std::vector<std::uint32_t>(2, 1), {}), other(std::vector<std::uint32_t>(2, 1), {});
  const Ref x = table.variable(0), seven = table.terminal(7);
  CHECK(test::throws<std::invalid_argument>([&] { (void)table.variable(2); }));
  CHECK(test::throws<std::invalid_argument>([&] { (void)table.apply(BoolOp::kAnd, x, seven); }));
  CHECK(test::throws<std::invalid_argument>(
      [&] { (void)table.apply(BoolOp::kAnd, x, other.variable(0)); }));
  const std::vector<Level> only_second{1};
  CHECK(test::throws<std::invalid_argument>([&] { Solutions(table, x, only_second); }));
  CHECK(test::throws<std::invalid_argument>([&] { Solutions(table, seven, only_second); }));
}

void test_trees_are_encoded() {
  const auto forest = test::ExampleArrays().build<std::int64_t>();
  Ints table(std::vector<std::uint32_t>{2, 2}, {});
  const GuardLayout layout{{0, 2}};
  const std::vector<Cell> open{-1, -1};
  for (std::size_t tree = 0; tree < 2; ++tree) {
    const Ref add = table.encode(forest, tree, open, layout);
    for (Cell a = 0; a < 3; ++a) {
      for (Cell b = 0; b < 3; ++b) {
        // Bit i of a feature is 1 iff its cell is at most i.
        unsigned point = 0;
        for (Cell i = 0; i < 2; ++i) {
          if (a <= i) point |= 1u << i;
          if (b <= i) point |= 4u << i;
        }
        const std::vector<Cell> region{a, b};
        const std::int64_t expected = forest.value(forest.leaf(forest.roots[tree], region));
        CHECK(evaluate(table, add.node(), point) == expected);
        const Ref fixed = table.encode(forest, tree, region, layout);
        CHECK(fixed == table.terminal(expected));
      }
    }
  }
}

}  // namespace

int main() {
  test_every_boolean_function();
  test_unary_operations_on_every_function();
  test_solutions_of_every_function();
  test_arithmetic();
  test_monotone_operations();
  test_counts_beyond_64_bits();
  test_garbage_is_collected();
  test_limits_raise_and_leave_the_rest_intact();
  test_misuse_is_refused();
  test_trees_are_encoded();
  return test::failures;
}

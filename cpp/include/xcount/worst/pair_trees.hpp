// The trees of a forest as functions of pairs of regions, flattened to sorted lists of leaves.
//
// A pair of regions agrees outside the sensitive features: its variables are one cell per common
// feature and, for each sensitive feature, one cell where the change starts and one where it ends.
// Each factor is a function of these variables, and
//   V(target) - V(start) = sum of the factors of sum 0;
// with levels also V(target) = sum of the factors of sum 1, and -V(start) = sum of those of sum 2.
// A factor lists its leaves by falling value. A leaf holds the cells of a product of sets: a bit
// for each segment of a variable, where a segment is a run of cells that no test of the tree tells
// apart. The leaves of a factor divide all pairs among them: docs/largest-change.md, "How it is
// found".
//
// Values wider than 64 bits are divided by 2^shift and rounded up: sums of `values` are upper
// bounds, in units of 2^shift; `exact` has the values themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "xcount/trees/forest.hpp"

namespace xcount {

using Bound = std::int64_t;

inline constexpr std::size_t kDifferenceSum = 0, kTargetSum = 1, kStartSum = 2;  // sums of factors

enum class Role : std::uint8_t { kCommon, kStart, kTarget };

struct PairVariable {
  Feature feature = 0;
  Role role = Role::kCommon;
  Cell n_cells = 1;
};

// The segments of one variable that a factor tells apart: segment i has the cells c with
// starts[i] <= c < starts[i + 1].
struct Segments {
  std::size_t variable = 0;
  std::size_t first_column = 0;  // of the bits of segments 0..63; the next column has 64..127
  std::vector<Cell> starts;
  std::vector<std::uint16_t> of_cell;

  [[nodiscard]] std::size_t size() const { return starts.size(); }
  [[nodiscard]] std::size_t n_words() const { return (starts.size() + 63) / 64; }
};

template <class Value>
struct Factor {
  std::size_t sum = kDifferenceSum;
  std::vector<Segments> segments;      // of the variables that it tests
  std::vector<Bound> values;           // of the leaves, falling
  std::vector<Value> exact;            // the same, before they were rounded; empty if shift is 0
  std::vector<std::uint64_t> columns;  // [column * n_leaves + leaf]: segments that the leaf holds

  [[nodiscard]] std::size_t n_leaves() const { return values.size(); }
  [[nodiscard]] const std::uint64_t* column(std::size_t number) const {
    return columns.data() + number * values.size();
  }
};

template <class Value>
class PairTrees {
 public:
  static constexpr std::size_t kMaxLeaves = 1U << 16;  // of a factor

  // The leaves that a factor of a search may have: those of all trees are limited together.
  [[nodiscard]] static std::size_t max_leaves(std::size_t n_trees);

  // with_levels: also make the factors of sums 1 and 2. A tree whose pairs of leaves are more than
  // max_leaves becomes two factors, one of the target and one of the start.
  PairTrees(const Forest<Value>& forest, std::vector<Feature> sensitive, bool with_levels,
            std::size_t max_leaves = kMaxLeaves);

  [[nodiscard]] const Forest<Value>& forest() const { return *forest_; }
  [[nodiscard]] const std::vector<Feature>& sensitive() const { return sensitive_; }
  [[nodiscard]] const std::vector<PairVariable>& variables() const { return variables_; }
  // The variables of the i-th sensitive feature: its cell at the start and at the target.
  [[nodiscard]] std::size_t start_of(std::size_t i) const { return n_common_ + 2 * i; }
  [[nodiscard]] std::size_t target_of(std::size_t i) const { return n_common_ + 2 * i + 1; }
  [[nodiscard]] const std::vector<Factor<Value>>& factors() const { return factors_; }
  [[nodiscard]] int shift() const { return shift_; }
  // value / 2^shift, rounded down; the value is at most twice as large as any sum.
  [[nodiscard]] Bound rounded_down(const Value& value) const;
  // The trees that make a difference, or all of them with levels.
  [[nodiscard]] const std::vector<NodeIndex>& roots() const { return roots_; }
  [[nodiscard]] std::size_t bytes() const;

 private:
  void add_factors(NodeIndex root, bool tests_sensitive, bool with_levels, std::size_t max_leaves);
  void round_values();

  const Forest<Value>* forest_;
  std::vector<Feature> sensitive_;
  std::vector<PairVariable> variables_;
  std::vector<std::size_t> common_of_;  // per feature, its variable if it is common
  std::size_t n_common_ = 0;
  std::vector<NodeIndex> roots_;
  std::vector<Factor<Value>> factors_;
  int shift_ = 0;
};

extern template class PairTrees<std::int64_t>;
extern template class PairTrees<Int128>;
extern template class PairTrees<Int2304>;

}  // namespace xcount

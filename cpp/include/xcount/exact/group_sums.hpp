// Independent groups of residuals: groups that share no feature with the rest of their state.
//
// The sum of such a group is independent of everything else, so all that matters of it is its
// distribution: how many combinations of the group's cells give which sum. A distribution holds the
// sums that occur, strictly ascending, and running totals of their volumes:
//   before[i] = volume of the first i sums,   before[i] + from[i] = volume of the group's box.
// Distributions of several groups are convolved into one. That costs about the sum of what the
// groups cost, where walking through all combinations of leaves costs their product. Proof:
// docs/exact.md, "Why this is right", "Independent groups".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xcount/exact/cell_box.hpp"
#include "xcount/exact/solution_values.hpp"
#include "xcount/support/hash_index.hpp"
#include "xcount/trees/residuals.hpp"

namespace xcount {

// A distribution of sums, ascending. Volumes are those of boxes of cells of `features`.
template <class Value, class Volume>
struct SumDistribution {
  std::span<const Value> sums;
  std::span<const Volume> before;  // before[i]: the volume of the first i sums; one more than sums
  std::span<const Volume> from;    // from[i]: the volume of all others
  std::span<const LocalFeature> features;
  double log2_volume = 0.0;
};

// Residuals of one state that share no feature with its others.
struct ResidualGroup {
  std::uint64_t support = 0;
  double paths = 1.0;      // combinations of leaves
  double range = 0.0;      // of their sum
  std::uint32_t term = 0;  // of the constraint they all belong to, or kMixed
  std::vector<ResidualId> ids;

  static constexpr std::uint32_t kMixed = ~std::uint32_t{0};
};

// Finds the groups of a state, and the distributions of their sums; remembers the latter.
template <class Value, class Values>
class GroupSums {
 public:
  using Volume = typename Values::Volume;
  using Distribution = SumDistribution<Value, Volume>;

  GroupSums(const ResidualStore<Value>& store, const Values& values)
      : store_(store), box_(store, values) {}

  // Starts a state; then each of its residuals is added.
  void open() { n_groups_ = 0; }
  void add(ResidualId id, std::uint32_t term);
  [[nodiscard]] std::span<const ResidualGroup> groups() const {
    return {groups_.data(), n_groups_};
  }

  // The number of the distribution of the sum of several groups, in what is left of the axes;
  // kNone if some axis has no order, or volumes are too large.
  std::uint32_t find(std::span<const ResidualGroup* const> groups,
                     std::span<const Stretch> narrowed);
  // Valid until the next call of `find`.
  [[nodiscard]] Distribution operator[](std::uint32_t number) const;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  [[nodiscard]] std::uint64_t n_steps() const { return n_steps_; }  // so far
  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] std::size_t used() const;
  void clear();    // keeps the memory
  void release();  // gives it back

 private:
  struct Mass {
    Value sum;
    Volume volume;
  };
  // A distribution, as pieces of keys_, features_, sums_, before_ and from_.
  struct Known {
    std::uint64_t first_key, first_feature, first_sum;
    std::uint32_t n_keys, n_features, n_sums;  // no sums: it cannot be made
    double log2_volume;
  };

  [[nodiscard]] bool are_disjoint() const;  // whether no two groups share a feature
  bool build(const ResidualGroup& group, std::span<const Stretch> narrowed);
  void walk(const ResidualGroup& group, std::size_t i, ResidualId id, Value sum, Volume volume);
  void convolve();
  bool convolve_densely();
  static void merge_equal(std::vector<Mass>& masses);
  std::uint32_t make(std::span<const ResidualGroup* const> groups,
                     std::span<const Stretch> narrowed);

  const ResidualStore<Value>& store_;
  std::vector<ResidualGroup> groups_;
  std::size_t n_groups_ = 0;
  std::uint64_t n_steps_ = 0;

  CellBox<Value, Values> box_;               // of all groups asked for
  std::vector<Mass> sum_, built_, product_;  // of the groups so far, of one group, of both
  std::vector<Volume> dense_;

  std::vector<std::uint32_t> key_;  // the key being looked up
  std::vector<std::uint32_t> keys_;
  std::vector<LocalFeature> features_;
  std::vector<Value> sums_;
  std::vector<Volume> before_, from_;
  std::vector<Known> known_;
  HashIndex table_;
};

}  // namespace xcount

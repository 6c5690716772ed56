// Small states, enumerated: all combinations of leaves of a few residual trees, tree by tree.
//
// A state with few combinations is cheaper to walk than to split and to remember. The walk narrows
// a box of cells at each test, and stops where the bounds of what is left decide. Its ends are
// disjoint boxes b that cover what is left of the mentioned axes, so
//   total = sum over the ends b of volume(b) * (volume of the tails that solves at b).
// Residuals that are independent of those walked come as the distribution of their sum, a
// constraint's tail: at an end it is looked up how much of the tail leads beyond the threshold. The
// answer holds for the offsets for which each end is decided in the same way. Proofs:
// docs/exact.md, "Why this is right", "Enumeration of small states", "Independent groups".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xcount/exact/cell_box.hpp"
#include "xcount/exact/group_sums.hpp"
#include "xcount/exact/solution_values.hpp"
#include "xcount/trees/gap.hpp"
#include "xcount/trees/residuals.hpp"

namespace xcount {

enum class Combine { kAny, kAll };

template <class Value, class Values>
class PathWalk {
 public:
  // A constraint |offset + sum of residuals| > threshold.
  struct Term {
    Value start{}, offset{};      // of the state, and at the current place of the walk
    OffsetInterval<Value> holds;  // the offsets of the state for which the answer holds
    bool settled = false;
    SumDistribution<Value, typename Values::Volume> tail{};  // without sums: there is none
  };

  PathWalk(const ResidualStore<Value>& store, Values& values, const Gap<Value>& gap)
      : store_(store), values_(values), gap_(gap), box_(store, values) {}

  // Starts a state; then its constraints are added, and the residuals to be walked.
  void open();
  void add_term(const Value& offset);
  void add_tail(std::uint32_t term, const SumDistribution<Value, typename Values::Volume>& tail);
  void add_residual(ResidualId id, std::uint32_t term) { items_.push_back({id, term, {}, {}}); }
  // Sets what is left of the axes; false if the state cannot be walked.
  bool narrow(std::span<const Stretch> narrowed);
  SolutionId run(Combine combine);

  [[nodiscard]] const std::vector<Term>& terms() const { return terms_; }
  [[nodiscard]] std::uint64_t n_steps() const { return n_steps_; }  // of the last run

 private:
  using Volume = typename Values::Volume;
  using Total = typename Values::Total;
  struct Item {
    ResidualId root;
    std::uint32_t term;
    Value rest_min, rest_max;  // of the term's residuals after this one
  };

  void order_items();
  void walk(std::size_t i, ResidualId id, Volume volume);
  void walk_next(std::size_t i, Volume volume);
  void settle(std::size_t i, bool inside, Volume volume);
  void reach_end(Volume volume);
  [[nodiscard]] Volume beyond(Term& term) const;

  const ResidualStore<Value>& store_;
  Values& values_;
  Gap<Value> gap_;
  Combine combine_ = Combine::kAny;
  std::vector<Item> items_;
  std::vector<Term> terms_;
  CellBox<Value, Values> box_;
  std::vector<ResidualId> roots_;
  std::vector<LocalFeature> features_;  // that the state depends on, tails included
  std::vector<Value> rest_min_, rest_max_;
  double log2_tails_ = 0.0;
  Total tails_{};  // the volume of all tails together
  Total total_{};
  std::uint64_t n_steps_ = 0;
};

}  // namespace xcount

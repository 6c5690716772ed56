// States that are cheap enough to enumerate: which residuals are walked, and which are looked up.
//
// Holds a partition of the state's residuals: each belongs to just one group (groups share no
// feature), and each group is either walked or part of the tail of the one constraint that all of
// its residuals belong to. At least one group is walked. Proof: docs/exact.md, "Why this is right",
// "Enumeration of small states", "Independent groups".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xcount/exact/group_sums.hpp"
#include "xcount/exact/path_walk.hpp"
#include "xcount/exact/solution_values.hpp"
#include "xcount/trees/residuals.hpp"

namespace xcount {

template <class Value, class Values>
class SmallStates {
 public:
  SmallStates(const ResidualStore<Value>& store, Values& values, const Gap<Value>& gap)
      : store_(store), walk_(store, values, gap), groups_(store, values) {}

  // Starts a state; then its constraints are added. Their residuals must outlive `prepare`.
  void open() { terms_.clear(); }
  void add_term(const Value& offset, std::span<const ResidualId> ids) {
    terms_.push_back({offset, ids});
  }
  // Whether at most about that many combinations of leaves need be walked, in what is left of the
  // axes.
  [[nodiscard]] bool prepare(std::span<const Stretch> narrowed, std::uint64_t max_paths);
  SolutionId run(Combine combine) { return walk_.run(combine); }

  // Of the last run: for which offsets of each constraint its answer holds, and what it cost.
  [[nodiscard]] const auto& terms() const { return walk_.terms(); }
  [[nodiscard]] std::uint64_t n_steps() const { return walk_.n_steps() + n_group_steps_; }
  [[nodiscard]] std::size_t bytes() const { return groups_.bytes(); }
  [[nodiscard]] std::size_t used() const { return groups_.used(); }
  void clear() { groups_.clear(); }
  void release() { groups_.release(); }

 private:
  struct Term {
    Value offset;
    std::span<const ResidualId> ids;
  };
  struct Tail {
    std::vector<const ResidualGroup*> groups;
    double n_sums = 1.0, range = 0.0;  // at most
    std::uint32_t number = 0;
  };

  [[nodiscard]] bool find_groups();
  [[nodiscard]] double choose_tails(double max_work);
  [[nodiscard]] bool make_tails(std::span<const Stretch> narrowed);
  void add_walked();

  const ResidualStore<Value>& store_;
  PathWalk<Value, Values> walk_;
  GroupSums<Value, Values> groups_;
  std::vector<Term> terms_;
  std::vector<const ResidualGroup*> walked_;  // the smallest first; null: it is part of a tail
  std::vector<Tail> tails_;                   // of each constraint
  std::uint64_t n_group_steps_ = 0;
};

}  // namespace xcount

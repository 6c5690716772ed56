// Splitting the residuals of a state along the axis of one feature, part by part.
//
// Holds, for each constraint t, the residuals that the split leaves as they are ("fixed"), and for
// each other one ("moving") its runs: what it becomes from which cell on. The sweep stands at one
// part of the axis at a time; there
//   sum of constraint t = offset(t) + sum of its fixed residuals + sum of its moving ones' runs,
// where runs that are leaves belong to the offset. The parts are disjoint and together all of the
// axis, and in each part the restricted residuals have the values of the original ones: why counts
// of parts add up, docs/exact.md, "Why this is right", "The sum over parts".
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "xcount/support/assert.hpp"
#include "xcount/trees/residuals.hpp"

namespace xcount {

// offset + rest, where min <= rest <= max.
template <class Value>
struct BoundedSum {
  Value offset{}, min{}, max{};

  [[nodiscard]] Value least() const { return offset + min; }
  [[nodiscard]] Value most() const { return offset + max; }
};

template <class Value>
class ResidualSweep {
 public:
  using Store = ResidualStore<Value>;

  // Starts a split; then its constraints are added.
  void open() {
    fixed_.clear();
    runs_.clear();
    moving_.clear();
    terms_.clear();
  }

  // Adds a constraint, its residuals in ascending order. cofactors(id, runs) appends what a
  // residual becomes along the axis, from the first cell on, or nothing if it stays as it is.
  template <class Cofactors>
  void add_term(const Store& store, std::span<const ResidualId> ids, const Cofactors& cofactors) {
    XCOUNT_ASSERT(std::is_sorted(ids.begin(), ids.end()));
    Value min{}, max{};
    for (const ResidualId id : ids) {
      const auto begin = static_cast<std::uint32_t>(runs_.size());
      cofactors(id, runs_);
      const auto end = static_cast<std::uint32_t>(runs_.size());
      if (begin != end) {
        XCOUNT_ASSERT(is_ascending(begin, end));
        moving_.push_back({begin, end});
      } else {
        fixed_.push_back(id);
        min += store[id].min;
        max += store[id].max;
      }
    }
    terms_.push_back({static_cast<std::uint32_t>(fixed_.size()),
                      static_cast<std::uint32_t>(moving_.size()), min, max});
  }

  // Where the current part ends: the next cell at which some residual changes, or `end`.
  [[nodiscard]] Cell next(Cell end) const {
    for (const Moving& moving : moving_) {
      if (moving.at + 1 < moving.end) end = std::min(end, runs_[moving.at + 1].start);
    }
    return end;
  }
  // Goes on to the part that starts at `cell`, as `next` said.
  void advance(Cell cell) {
    for (Moving& moving : moving_) {
      if (moving.at + 1 < moving.end && runs_[moving.at + 1].start == cell) ++moving.at;
    }
  }

  // The sums in the current part: sums[t].offset, which is that of the whole state before, takes up
  // the runs that are leaves; min and max are set to the bounds of the rest.
  template <class Sums>
  void bound(const Store& store, Sums& sums) const {
    std::uint32_t m = 0;
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      auto& sum = sums[t];
      sum.min = terms_[t].fixed_min;
      sum.max = terms_[t].fixed_max;
      for (; m < terms_[t].moving_end; ++m) {
        const auto& node = store[runs_[moving_[m].at].node];
        if (node.test.feature == kLeaf) {
          sum.offset += node.min;
        } else {
          sum.min += node.min;
          sum.max += node.max;
        }
      }
      XCOUNT_ASSERT(sum.min <= sum.max);
    }
  }

  // Appends the residuals of constraint t in the current part, without leaves, ascending.
  void append_ids(const Store& store, std::size_t t, std::vector<ResidualId>& out) {
    XCOUNT_ASSERT(t < terms_.size());
    moved_.clear();
    const std::uint32_t first_moving = t == 0 ? 0 : terms_[t - 1].moving_end;
    for (std::uint32_t m = first_moving; m < terms_[t].moving_end; ++m) {
      const ResidualId id = runs_[moving_[m].at].node;
      if (!store.is_leaf(id)) moved_.push_back(id);
    }
    std::sort(moved_.begin(), moved_.end());
    const auto begin = fixed_.begin() + (t == 0 ? 0 : terms_[t - 1].fixed_end);
    const auto end = fixed_.begin() + terms_[t].fixed_end;
    XCOUNT_ASSERT(std::is_sorted(begin, end));
    std::merge(begin, end, moved_.begin(), moved_.end(), std::back_inserter(out));
  }

  [[nodiscard]] std::size_t n_moving() const { return moving_.size(); }
  [[nodiscard]] std::size_t bytes() const {
    return fixed_.capacity() * sizeof(ResidualId) + runs_.capacity() * sizeof(Run) +
           moving_.capacity() * sizeof(Moving) + terms_.capacity() * sizeof(Term) +
           moved_.capacity() * sizeof(ResidualId);
  }

 private:
  struct Moving {
    std::uint32_t at, end;  // in runs_: where the sweep stands, and where its runs end
  };
  struct Term {
    std::uint32_t fixed_end, moving_end;  // in fixed_ and moving_; they start at the one before
    Value fixed_min, fixed_max;           // sums of the bounds of the fixed residuals
  };

  [[nodiscard]] bool is_ascending(std::uint32_t begin, std::uint32_t end) const {
    return std::is_sorted(runs_.begin() + begin, runs_.begin() + end,
                          [](const Run& a, const Run& b) { return a.start <= b.start; });
  }

  std::vector<ResidualId> fixed_;
  std::vector<Run> runs_;
  std::vector<Moving> moving_;
  std::vector<Term> terms_;
  std::vector<ResidualId> moved_;  // scratch of append_ids
};

}  // namespace xcount

// Decides blocks of samples: which of their masks are sensitive, given V along the masks.
//
// sensitive[m] = 1 iff |V(m') - V(m)| > threshold for some pair {m, m'} of the question, in the
// gap's direction; every way of deciding gives just that: docs/approximate.md, "What is sampled",
// "Plain samples". Rounded sums come first; a block that they leave in doubt is decided by exact
// ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "xcount/sampling/mask_scope.hpp"
#include "xcount/sampling/sliced_forest.hpp"
#include "xcount/sampling/slices.hpp"
#include "xcount/trees/forest.hpp"
#include "xcount/trees/gap.hpp"
#include "xcount/trees/masks.hpp"

namespace xcount {

// What is decided of a sample: each mask of the scope, or one flag: whether any, or all, of the
// question's pairs differ.
enum class Asked : std::uint8_t { kEachMask, kAnyPair, kAllPairs };

template <class Value>
class RowDecider {
 public:
  RowDecider(const Forest<Value>& forest, const MaskSpace& masks, const MaskQuestion& question,
             const Gap<Value>& gap, Asked asked = Asked::kEachMask);

  // Room for one block of samples; one per thread.
  struct Workspace {
    typename SlicedForest<Value>::Workspace slices;
    std::vector<std::int32_t> rounded, rounded_extremes;
    std::vector<Value> exact, exact_extremes;  // made when they are needed
    std::vector<std::uint8_t> flags;
  };
  [[nodiscard]] Workspace workspace() const;

  // A feature that the trees test, and the columns of its tests.
  struct Drawn {
    Feature feature = 0;
    Cell n_cells = 0;
    std::vector<std::uint32_t> columns;
  };
  [[nodiscard]] const std::vector<Drawn>& drawn() const { return drawn_; }
  // Sets the cell of a sample of the block; the cells of all drawn features are to be set.
  void set(const Drawn& drawn, std::size_t sample, Cell cell, Workspace& work) const {
    for (const std::uint32_t c : drawn.columns) {
      work.slices.codes[c * kBlock + sample] =
          forest_.columns()[c].code_of_cell[static_cast<std::size_t>(cell)];
    }
  }

  // Decides the first `count` samples of the block and calls visit(i, flags, stride) for each that
  // has a flag set: flags[f * stride] is its flag f.
  template <class Visit>
  void decide(std::size_t count, Workspace& work, const Visit& visit) const {
    forest_.test(work.slices);
    for (std::size_t begin = 0; begin < count; begin += width_) {
      const BlockRange range = range_from(begin, count);
      const std::size_t stride = decide_range(range, work);
      if (stride == 0) continue;
      for (std::size_t i = 0; i < std::min(range.n, count - begin); ++i) {
        visit(begin + i, work.flags.data() + i, stride);
      }
    }
  }

  // Calls visit(i, row, stride) with the exact V along the masks of each of the first samples, less
  // that of the first mask: V of mask m is row[m * stride].
  template <class Visit>
  void evaluate(std::size_t count, Workspace& work, const Visit& visit) const {
    forest_.test(work.slices);
    for (std::size_t begin = 0; begin < count; begin += exact_width_) {
      const std::size_t n = std::min(exact_width_, count - begin);
      sum_exactly({begin, n, exact_width_}, true, work);
      for (std::size_t i = 0; i < n; ++i) visit(begin + i, work.exact.data() + i, exact_width_);
    }
  }

  [[nodiscard]] const MaskScope& scope() const { return scope_; }
  [[nodiscard]] std::size_t n_masks() const { return forest_.n_masks(); }
  [[nodiscard]] std::size_t n_trees() const { return forest_.n_trees(); }
  // The question's pairs, if it lists them, by the masks' numbers in the scope.
  [[nodiscard]] std::span<const std::pair<std::uint32_t, std::uint32_t>> pairs() const {
    return pairs_;
  }

 private:
  enum class Kind { kAllMasks, kJumps, kWindow, kPairs, kAnyPair, kAllPairs };

  void choose_kind(const Topology& forest, const MaskSpace& masks, const MaskQuestion& question,
                   Asked asked);
  void take_jumps();
  void list_neighbours(const MaskSpace& masks);
  void choose_widths();
  void round_limits();
  [[nodiscard]] BlockRange range_from(std::size_t begin, std::size_t count) const;
  [[nodiscard]] MaskComparison comparison() const;
  [[nodiscard]] std::size_t n_flags() const {
    return kind_ == Kind::kAnyPair || kind_ == Kind::kAllPairs ? 1 : n_masks();
  }
  [[nodiscard]] std::size_t n_extremes() const { return kind_ == Kind::kWindow ? n_ordered_ : 1; }
  // Sets the flags of a range; returns the distance of two flags of a sample, 0 if none is set.
  std::size_t decide_range(const BlockRange& range, Workspace& work) const;
  std::size_t decide_exactly(const BlockRange& range, Workspace& work) const;
  void sum_exactly(const BlockRange& range, bool as_values, Workspace& work) const;

  MaskScope scope_;
  SlicedForest<Value> forest_;
  Gap<Value> gap_;
  Limits<std::int32_t> rounded_{};
  std::vector<Drawn> drawn_;
  Kind kind_ = Kind::kAllMasks;
  std::size_t n_ordered_ = 1;  // kWindow: cells with an order, the missing one left out
  std::size_t reach_ = 1;      // kWindow: neighbours are at most that far
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs_;
  std::vector<std::uint8_t> matters_;  // kJumps: per mask, whether it and the one before are a pair
  bool rounds_ = true;                 // whether rounded sums come first
  std::size_t width_ = kBlock;         // samples decided together
  std::size_t exact_width_ = kBlock;   // the same by exact sums
};

}  // namespace xcount

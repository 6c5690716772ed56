// Decides blocks of samples: which of their masks are sensitive, given V along the masks.
//
// sensitive[m] = 1 iff |V(m') - V(m)| > threshold for some pair {m, m'} of the question, in the
// gap's direction; every way of deciding gives just that: docs/approximate.md, "What is sampled",
// "Plain samples". Rounded sums come first; the samples that they leave in doubt are put aside
// until there are enough of them to be decided together, by exact sums.
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
    std::vector<std::int32_t> digits;          // of exact sums
    std::vector<std::uint8_t> flags, doubts;
    std::vector<std::uint8_t> exact_flags, exact_doubts;  // while the others are still looked at
    typename SlicedForest<Value>::Workspace aside;        // samples put aside
    std::vector<std::uint64_t> numbers;                   // of those
  };
  [[nodiscard]] Workspace workspace() const;

  // A feature that the trees test, and the columns of its tests.
  struct Drawn {
    Feature feature = 0;
    Cell n_cells = 0;
    std::vector<std::uint32_t> columns;
  };
  [[nodiscard]] const std::vector<Drawn>& drawn() const { return drawn_; }
  // Sets the cells of the block's samples from the given one on; those of all drawn features are to
  // be set.
  void set(const Drawn& drawn, std::size_t first, std::span<const Cell> cells,
           Workspace& work) const {
    for (const std::uint32_t c : drawn.columns) {
      const Code* code_of_cell = forest_.columns()[c].code_of_cell.data();
      Code* codes = work.slices.codes.data() + c * kBlock + first;
      for (std::size_t i = 0; i < cells.size(); ++i) codes[i] = code_of_cell[cells[i]];
    }
  }

  // Decides the first samples of the block, which are numbered from `first` on: calls
  // visit(number, n, flags, stride), where flags[f * stride + i] is flag f of sample number + i;
  // not for samples without any flag. A sample in doubt is visited again later: then its flags
  // hold.
  template <class Visit>
  void decide(std::uint64_t first, std::size_t count, Workspace& work, const Visit& visit) const {
    forest_.test(work.slices);
    for (std::size_t begin = 0; begin < count; begin += width_) {
      const BlockRange range = range_from(begin, count);
      const std::size_t n = std::min(range.n, count - begin);
      if (!decide_range(range, work)) continue;
      visit(first + begin, n, std::span<const std::uint8_t>(work.flags), width_);
      for (std::size_t i = 0; i < n; ++i) {
        if (work.doubts[i] == 0) continue;
        put_aside(begin + i, first + begin + i, work);
        if (work.numbers.size() == kBlock) finish(work, visit);
      }
    }
  }

  // Decides the samples put aside.
  template <class Visit>
  void finish(Workspace& work, const Visit& visit) const {
    if (work.numbers.empty()) return;
    forest_.test(work.aside);
    for (std::size_t begin = 0; begin < work.numbers.size(); begin += exact_width_) {
      const std::size_t n = std::min(exact_width_, work.numbers.size() - begin);
      decide_exactly(exact_range(begin, n), work.aside, work, work.exact_flags, work.exact_doubts);
      for (std::size_t i = 0; i < n; ++i) {
        visit(work.numbers[begin + i], 1,
              std::span<const std::uint8_t>(work.exact_flags).subspan(i), exact_width_);
      }
    }
    work.numbers.clear();
  }

  // Calls visit(i, row, stride) with the exact V along the masks of each of the first samples, less
  // that of the first mask: V of mask m is row[m * stride].
  template <class Visit>
  void evaluate(std::size_t count, Workspace& work, const Visit& visit) const {
    forest_.test(work.slices);
    for (std::size_t begin = 0; begin < count; begin += exact_width_) {
      const std::size_t n = std::min(exact_width_, count - begin);
      sum_exactly(exact_range(begin, n), true, work.slices, work);
      for (std::size_t i = 0; i < n; ++i) visit(begin + i, work.exact.data() + i, exact_width_);
    }
  }

  // Of blocks of samples: calls visit(begin, n, rows), where rows has the exact V along the masks,
  // less that of the first mask, of the samples [begin, begin + n), and the least and the largest
  // of them.
  struct Evaluated {
    const Value* rows;
    std::size_t stride;
    const Value* low;
    const Value* high;
  };
  template <class Visit>
  void find_extremes(std::size_t count, Workspace& work, const Visit& visit) const {
    forest_.test(work.slices);
    for (std::size_t begin = 0; begin < count; begin += exact_width_) {
      const std::size_t n = std::min(exact_width_, count - begin);
      sum_exactly(exact_range(begin, n), true, work.slices, work);
      work.exact_extremes.resize(2 * n_extremes() * exact_width_);
      Value* low = work.exact_extremes.data();
      extremes_of(work.exact.data(), low, low + exact_width_);
      visit(begin, n, Evaluated{work.exact.data(), exact_width_, low, low + exact_width_});
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
  [[nodiscard]] BlockRange exact_range(std::size_t begin, std::size_t n) const {
    return {begin, has_digits_ ? (n + kGroup - 1) / kGroup * kGroup : n, exact_width_};
  }
  [[nodiscard]] MaskComparison comparison() const;
  [[nodiscard]] std::size_t n_flags() const {
    return kind_ == Kind::kAnyPair || kind_ == Kind::kAllPairs ? 1 : n_masks();
  }
  [[nodiscard]] std::size_t n_extremes() const { return kind_ == Kind::kWindow ? n_ordered_ : 1; }
  // Sets the flags and doubts of a range; returns whether any of them is set.
  bool decide_range(const BlockRange& range, Workspace& work) const;
  // The least and the largest of the rows, for each sample.
  void extremes_of(const Value* rows, Value* low, Value* high) const;
  void put_aside(std::size_t sample, std::uint64_t number, Workspace& work) const;
  void decide_exactly(const BlockRange& range, typename SlicedForest<Value>::Workspace& slices,
                      Workspace& work, std::vector<std::uint8_t>& flags,
                      std::vector<std::uint8_t>& doubts) const;
  void sum_exactly(const BlockRange& range, bool as_values,
                   typename SlicedForest<Value>::Workspace& slices, Workspace& work) const;

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
  bool has_digits_ = true;             // whether exact sums are added in digits
  std::size_t exact_width_ = kBlock;   // the same by exact sums
};

}  // namespace xcount

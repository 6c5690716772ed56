// The plan of a count by corner sums, made once and shared by all threads.
//
// V of an output is its base plus the leaves that count. A question about gaps only compares sums
// with the same non-sensitive cells, so that only leaves below a test of a sensitive feature count:
//   V(x, m) - V(x, m') = sum over trees of (leaf at (x, m) - leaf at (x, m')),
// where a leaf without such a test on its path is the same for m and m'. Features that no leaf
// which counts depends on are idle. Proved in docs/corner-sums.md, "Leaves that cancel", "Sums that
// wrap around".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "xcount/exact/corner_layout.hpp"
#include "xcount/exact/corner_list.hpp"
#include "xcount/exact/corner_sums.hpp"
#include "xcount/exact/mask_windows.hpp"
#include "xcount/exact/probability_link.hpp"

namespace xcount {

// Weights of the cells of each feature, by position; without any, nothing is weighed.
using CellWeights = std::vector<std::vector<double>>;

// The part of a question that does not depend on the integers that margins are in.
struct CornerGround {
  CornerGround(std::span<const Topology* const> forests, const MaskSpace& masks, bool gaps_only);

  std::vector<const Topology*> forests;
  std::vector<bool> is_sensitive;  // per feature
  std::vector<CellOrder> orders;
  std::vector<LeafFlags> counted;  // per output
  std::vector<bool> is_idle;       // per feature
  MaskWindows windows;
};

// What all threads share, whatever integers the sums are in.
struct CornerFrame {
  CornerLayout layout;
  MaskWindows windows;
  CellWeights weights{};
  double total_weight = 1.0;   // of all combinations of non-sensitive cells that have an axis
  double common_weight = 1.0;  // of those that have none
  VectorUnit vector_unit = VectorUnit::kAvx512;  // at most

  // Of the cells that a block fixes.
  [[nodiscard]] double outer_weight(std::uint64_t block) const;
};

// And in integers T.
template <class T>
struct CornerPlan : CornerFrame {
  std::vector<CornerList<T>> corners{};  // per output
  std::vector<Change<T>> changes{};
  T span{};  // 0 <= V <= span everywhere, or 0 <= Q <= span for probabilities
  std::unique_ptr<const TileJudge<T>> judge{};  // only for probabilities
  ProbabilityLink link{};
  T zero{};  // the sum 0, as V

  [[nodiscard]] std::size_t n_corners() const;
  [[nodiscard]] std::size_t list_bytes() const;
};

// The question in integers T: sums modulo 2^width, of which 0 <= V <= span.
template <class T>
struct CornerIntegers {
  std::function<LaneResidue<T>(std::size_t output, NodeIndex leaf)> value;
  std::vector<LaneResidue<T>> constants;  // per output
  std::vector<Change<T>> changes;
  T span{};
};

// Bounds of the sums of all outputs.
template <class Value>
struct SumRange {
  Value low, high;

  [[nodiscard]] Value span() const { return high - low; }
};

template <class Value>
[[nodiscard]] SumRange<Value> find_range(const CornerQuestion<Value>& question,
                                         const CornerGround& ground);

// V - range.low, exactly; T holds it twice.
template <class T, class Value>
[[nodiscard]] CornerIntegers<T> exact_integers(const CornerQuestion<Value>& question,
                                               const SumRange<Value>& range);

// The change of V - range.low: thresholds and cut-offs beyond the range are set to one beyond it.
template <class Value>
[[nodiscard]] Change<Value> shifted_change(const Change<Value>& change,
                                           const SumRange<Value>& range);

template <class T, class Value>
[[nodiscard]] CornerPlan<T> make_plan(const CornerQuestion<Value>& question,
                                      const CornerGround& ground, const CornerLayout& layout,
                                      const CornerIntegers<T>& integers, Stop& stop);

}  // namespace xcount

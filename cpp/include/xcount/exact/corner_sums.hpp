// Corner sums: an exact counter that visits every region of a grid once, whatever the number of
// trees. All margins are a prefix sum, along every axis, of the corners of the leaves' boxes:
//   V(p) = sum over corners q <= p of D(q)                                 (corner_list.hpp)
// and the result is, for every change and mask m, over the non-sensitive cells x,
//   count(m) = |{x : some neighbour m' of m changes V(x, m) as asked}|     (trees/change.hpp)
//   share(m) = sum of the product weights of these x.
// The grid is streamed in blocks (corner_layout.hpp): of each, all margins are made, the question
// answered, the block forgotten. The cost is about n_regions * n_axes additions and one pass over
// the corners per list that they are merged into; the memory is bytes(), whatever n_regions.
//
// Margins are computed in the narrowest integers that hold V - (least V), twice: 32, 64 or 128
// bits, or the wide type. Sums on the way may wrap around; V itself does not (corner_list.hpp).
// If 64 bits do not suffice, rounded leaves decide what they can first (corner_filter.hpp).
// Proved in docs/corner-sums.md, "Prefix sums of corners", "Blocks and threads".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "xcount/exact/corner_tile.hpp"
#include "xcount/exact/probability_link.hpp"
#include "xcount/support/stopping.hpp"
#include "xcount/trees/change.hpp"
#include "xcount/trees/forest.hpp"
#include "xcount/trees/masks.hpp"

namespace xcount {

// Half of a core's L2 cache; from 2^18 to 2^22 bytes the speed is about the same.
inline constexpr std::size_t kBlockBytes = std::size_t{1} << 19;

// What is asked. Forests, one per output, share their axes and their integers' unit; V of output k
// is bases[k] plus the sum of its trees. Several outputs are for ChangeForm::kLargest, for
// ChangeForm::kSureLargest, and for ChangeForm::kProbability of a softmax: then all changes are of
// that form.
template <class Value>
struct CornerQuestion {
  std::span<const Forest<Value>* const> forests;
  std::span<const Value> bases;
  const MaskSpace* masks = nullptr;
  std::span<const Change<Value>> changes;
  std::vector<std::vector<double>> weights;  // per feature and cell, >= 0; none: nothing is weighed
  ProbabilityLink link{};                    // for probabilities, as is the judge
  ProbabilityJudge<Value> judge{};           // called from any thread
  std::size_t max_bytes = std::size_t{1} << 32;  // while the corners are listed
  std::size_t block_bytes = kBlockBytes;
  VectorUnit vector_unit = VectorUnit::kAvx512;  // the best to use, where the machine has it
  bool may_round = true;                         // whether rounded leaves may decide

  [[nodiscard]] bool asks_for_probabilities() const {
    return !changes.empty() && (changes[0].form == ChangeForm::kProbability ||
                                changes[0].form == ChangeForm::kSureLargest);
  }
};

// Results are in order of changes, then of masks as MaskSpace numbers them.
struct CornerCounts {
  std::vector<std::uint64_t> counts;
  std::vector<Int128> shares;    // in units of share_unit(); empty without weights
  std::uint64_t n_finished = 0;  // blocks first, ..., first + n_finished - 1
};

class CornerSums {
 public:
  virtual ~CornerSums() = default;

  [[nodiscard]] virtual std::uint64_t n_regions() const = 0;
  [[nodiscard]] virtual std::uint64_t n_blocks() const = 0;  // of the same number of regions each
  [[nodiscard]] virtual std::size_t n_axes() const = 0;      // with more than one cell
  [[nodiscard]] virtual std::size_t n_corners() const = 0;
  [[nodiscard]] virtual std::size_t n_bits() const = 0;  // of the integers that margins are in
  [[nodiscard]] virtual std::size_t n_masks() const = 0;
  [[nodiscard]] virtual std::size_t n_changes() const = 0;
  [[nodiscard]] virtual double share_unit() const = 0;
  [[nodiscard]] virtual std::size_t bytes(unsigned n_threads) const = 0;  // at most, while counting

  // Counts the blocks [first, end), or the first few of them if it has to stop before. The result
  // depends only on n_finished, not on the number of threads; results of ranges add up exactly.
  [[nodiscard]] virtual CornerCounts count(std::uint64_t first, std::uint64_t end,
                                           unsigned n_threads, Stop& stop) const = 0;
};

// Throws length_error if there are too many regions, masks or corners, and Stopped if it has to
// stop before it is done.
template <class Value>
[[nodiscard]] std::unique_ptr<CornerSums> make_corner_sums(const CornerQuestion<Value>& question,
                                                           Stop& stop);

// A quick estimate of the cost of corner sums; numbers may be beyond every integer.
struct CornerCost {
  double n_regions = 1;  // that are visited, where idle features have one cell
  std::size_t n_axes = 0;
  double n_corners = 0;     // before equal ones are added up; an estimate, where trees are many
  double n_rows = 1;        // of sums that are read to decide a region
  double n_lanes = 1;       // as n_regions, with the lanes of vectors that stand empty
  double column_bytes = 0;  // of the sums and extremes of a column
  double n_listed = 0;      // corners in lists that are read or written, at most

  // Roughly, in additions.
  [[nodiscard]] double work() const { return n_regions * static_cast<double>(n_axes) + n_corners; }
};

// lane_bytes: of the sums, most likely.
[[nodiscard]] CornerCost estimate_corner_cost(std::span<const Topology* const> forests,
                                              const MaskSpace& masks, bool gaps_only,
                                              std::size_t lane_bytes);

}  // namespace xcount

// Draws combinations of non-sensitive cells uniformly and decides all masks of each at once.
//
// The outcome Y of a sample has 0 <= Y <= 1 and mean p, the share of the undecided regions that are
// sensitive: docs/approximate.md, "What is sampled", "Plain samples". Batch i of a stream is the
// same whatever the number of threads: docs/approximate.md, "Same seed, same answer".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xcount/sampling/overlapping_boxes.hpp"
#include "xcount/sampling/row_decider.hpp"
#include "xcount/support/random.hpp"
#include "xcount/support/stopping.hpp"
#include "xcount/trees/forest.hpp"
#include "xcount/trees/masks.hpp"

namespace xcount {

// What a run of batches found. The outcome of a sample is Y = the fraction of the unresolved masks
// that are sensitive, rounded at random to a multiple of 1 / levels, which keeps its mean.
struct Outcomes {
  std::vector<std::uint64_t> histogram;  // [0, levels] -> number of samples
  std::vector<std::uint8_t> hits;  // per sample: whether one mask drawn at random is sensitive
};

// How far each of some regions can rise and fall when only its mask changes, to any other one:
//   up = max(V) - V(own mask), down = V(own mask) - min(V).
template <class Value>
struct Swings {
  std::vector<Value> up, down;
  // Per mask: how many of the regions' rows it has the highest V of; not if all V are the same.
  std::vector<std::uint64_t> highest;
};

template <class Value>
class Sampler {
 public:
  static constexpr std::size_t kBatch = kBlock;  // samples per generator
  static constexpr std::uint32_t kMaxLevels = 1024;
  static constexpr std::uint32_t kBoxLevels = 256;

  // The other masks than the unresolved ones are not asked for.
  Sampler(const Forest<Value>& forest, const MaskSpace& masks, Value threshold,
          const MaskQuestion& question, Direction direction = Direction::kAny);

  // Outcomes of the batches [first, first + n), in order, whatever the number of threads; empty
  // ones if they are stopped. With boxes, combinations are drawn from these, and an outcome is the
  // number of sensitive masks divided by that of the boxes' masks around the sample, which is no
  // smaller; its levels are kBoxLevels.
  [[nodiscard]] Outcomes draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
                              std::uint64_t n, unsigned n_threads, Stop& stop,
                              const OverlappingBoxes* boxes = nullptr) const;

  // Which masks are sensitive at each given combination of cells (regions: n x n_features,
  // sensitive cells ignored); n x (masks in the scope) flags.
  [[nodiscard]] std::vector<std::uint8_t> decide(std::span<const Cell> regions) const;

  // V of the second mask minus V of the first, for each pair that the question lists, at each given
  // combination of cells; n x (pairs) values.
  [[nodiscard]] std::vector<Value> differences(std::span<const Cell> regions) const;

  // How far given regions with their own masks can move. The scope holds all masks.
  [[nodiscard]] Swings<Value> swings(std::span<const Cell> regions,
                                     std::span<const MaskIndex> masks) const;

  [[nodiscard]] std::uint32_t levels() const { return levels_; }
  [[nodiscard]] std::size_t n_trees() const { return decider_.n_trees(); }
  [[nodiscard]] std::size_t n_masks() const { return decider_.n_masks(); }

 private:
  using Workspace = typename RowDecider<Value>::Workspace;
  // How many of the unresolved masks are sensitive, of samples numbered from 0 on.
  using Found = std::vector<std::uint32_t>;
  void draw_cells(Random& random, Workspace& work) const;
  // The same from boxes; `cells` gets those on the boxes' axes, sample by sample.
  void draw_cells(Random& random, const OverlappingBoxes& boxes, std::span<Cell> cells,
                  Workspace& work) const;
  void add_up(std::uint64_t first, std::size_t n, std::span<const std::uint8_t> flags,
              std::size_t stride, Found& found) const;
  // whole(i): what the number found in sample i is divided by.
  template <class Whole>
  void record(Random& random, std::span<const std::uint32_t> found, const Whole& whole,
              std::span<std::uint64_t> histogram, std::span<std::uint8_t> hits) const;
  // Reads the cells of up to a block of regions; returns how many.
  std::size_t set_cells(std::span<const Cell> regions, std::size_t first, Workspace& work) const;
  [[nodiscard]] std::size_t n_regions(std::span<const Cell> regions) const;

  std::size_t n_features_;
  RowDecider<Value> decider_;
  std::vector<std::uint32_t> unresolved_;  // indices in the scope
  std::uint32_t levels_ = 1;
};

}  // namespace xcount

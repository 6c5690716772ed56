// Draws regions uniformly from a union of boxes and decides all masks of each at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xcount/forest.hpp"
#include "xcount/masks.hpp"
#include "xcount/sampling_forest.hpp"
#include "xcount/sampling_masks.hpp"
#include "xcount/sampling_random.hpp"
#include "xcount/stopping.hpp"

namespace xcount {

// Where samples come from: disjoint boxes of non-sensitive cells, each with the masks that are
// still undecided there. Sides and mask lists are shared between boxes.
struct Universe {
  struct Box {
    std::vector<std::uint32_t> sides;  // per drawn feature: index into `sides`
    std::uint32_t masks = 0;           // index into `mask_lists`
    double weight = 1;                 // volume x number of undecided masks, in any unit
  };
  std::vector<Feature> features;  // the features that are drawn, one side of each box per feature
  std::vector<std::vector<Cell>> sides;
  std::vector<std::vector<std::uint32_t>> mask_lists;  // indices in the scope
  std::vector<Box> boxes;
};

// What a run of batches found. The outcome of a sample is Y = the fraction of its box's undecided
// masks that are sensitive, rounded at random to a multiple of 1 / levels, which keeps its mean.
struct Outcomes {
  std::vector<std::uint64_t> histogram;  // [0, levels] -> number of samples
  std::vector<std::uint8_t> hits;  // per sample: whether one mask drawn at random is sensitive
};

template <class Value>
class Sampler {
 public:
  static constexpr std::size_t kBatch = 256;  // samples per generator
  static constexpr std::uint32_t kMaxLevels = 1024;

  // At first everything is undecided for the unresolved masks; the rest is not asked for.
  Sampler(const Forest<Value>& forest, const MaskSpace& masks, Value threshold,
          const MaskQuestion& question);

  void set_universe(Universe universe);
  [[nodiscard]] const Universe& universe() const { return universe_; }

  // Outcomes of the batches [first, first + n), in order, whatever the number of threads; empty
  // ones if they are stopped.
  [[nodiscard]] Outcomes draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
                              std::uint64_t n, unsigned n_threads, Stop& stop) const;

  // Which masks are sensitive at each given combination of cells (regions: n x n_features,
  // sensitive cells ignored); n x (masks in the scope) flags.
  [[nodiscard]] std::vector<std::uint8_t> decide(std::span<const Cell> regions) const;

  [[nodiscard]] std::uint32_t levels() const { return levels_; }
  [[nodiscard]] std::size_t n_trees() const { return profiles_.n_trees(); }
  [[nodiscard]] const ProfileForest<Value>& profiles() const { return profiles_; }

 private:
  struct Thread {
    typename ProfileForest<Value>::Workspace walks;
    typename MaskDecider<Value>::Workspace windows;
    std::vector<Code> codes;
    std::vector<Value> rows;
    std::vector<std::uint8_t> sensitive;
    std::vector<std::uint32_t> box_of;
  };
  [[nodiscard]] Thread make_thread() const;
  // Returns early if it is stopped.
  void draw_batch(Random& random, Thread& thread, Stop& stop, std::span<std::uint64_t> histogram,
                  std::span<std::uint8_t> hits) const;
  void draw_codes(Random& random, std::size_t count, Thread& thread) const;
  void draw_codes_of_one_box(Random& random, std::size_t count, Thread& thread) const;
  void draw_codes_of_boxes(Random& random, std::size_t count, Thread& thread) const;
  void set_codes(std::size_t feature, std::size_t sample, Cell cell, Thread& thread) const;
  [[nodiscard]] bool exists(std::size_t feature, Cell cell) const;
  [[nodiscard]] std::uint32_t draw_box(Random& random) const;
  [[nodiscard]] std::uint32_t count_sensitive(const Universe::Box& box, const Thread& thread) const;

  std::size_t n_features_;
  MaskScope scope_;
  ProfileForest<Value> profiles_;
  MaskDecider<Value> decider_;
  Universe universe_;
  std::vector<std::vector<std::uint32_t>> columns_of_;  // per drawn feature
  std::vector<std::uint64_t> cumulative_;               // per box, up to 2^62
  std::size_t block_ = 1;                               // samples evaluated together
  std::uint32_t levels_ = 1;
};

}  // namespace xcount

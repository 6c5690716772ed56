// Draws combinations of non-sensitive cells uniformly and decides all masks of each at once.
//
// The outcome Y of a sample has 0 <= Y <= 1 and mean p, the share of the undecided regions that are
// sensitive: docs/approximate.md, "What is sampled", "Plain samples". Batch i of a stream is the
// same whatever the number of threads: docs/approximate.md, "Same seed, same answer".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xcount/sampling/mask_decider.hpp"
#include "xcount/sampling/profile_forest.hpp"
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

template <class Value>
class Sampler {
 public:
  static constexpr std::size_t kBatch = 256;  // samples per generator
  static constexpr std::uint32_t kMaxLevels = 1024;

  // The other masks than the unresolved ones are not asked for.
  Sampler(const Forest<Value>& forest, const MaskSpace& masks, Value threshold,
          const MaskQuestion& question, Direction direction = Direction::kAny);

  // Outcomes of the batches [first, first + n), in order, whatever the number of threads; empty
  // ones if they are stopped.
  [[nodiscard]] Outcomes draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
                              std::uint64_t n, unsigned n_threads, Stop& stop) const;

  // Which masks are sensitive at each given combination of cells (regions: n x n_features,
  // sensitive cells ignored); n x (masks in the scope) flags.
  [[nodiscard]] std::vector<std::uint8_t> decide(std::span<const Cell> regions) const;

  // V of the second mask minus V of the first, for each pair that the question lists, at each given
  // combination of cells; n x (pairs) values.
  [[nodiscard]] std::vector<Value> differences(std::span<const Cell> regions) const;

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
  };
  struct Drawn {  // a feature that contributing trees test
    Feature feature = 0;
    Cell n_cells = 0;
    std::vector<std::uint32_t> columns;
  };
  [[nodiscard]] Thread make_thread() const;
  // Calls visit(i, row, thread) with V along the masks of the i-th region, or with its jumps.
  template <class Visit>
  void visit_rows(std::span<const Cell> regions, bool as_jumps, Visit visit) const;
  // Returns early if it is stopped.
  void draw_batch(Random& random, Thread& thread, Stop& stop, std::span<std::uint64_t> histogram,
                  std::span<std::uint8_t> hits) const;
  void draw_codes(Random& random, std::size_t count, Thread& thread) const;
  void set_codes(const Drawn& drawn, std::size_t sample, Cell cell, Thread& thread) const;
  [[nodiscard]] std::uint32_t count_sensitive(const Thread& thread) const;

  std::size_t n_features_;
  MaskScope scope_;
  ProfileForest<Value> profiles_;
  MaskDecider<Value> decider_;
  std::vector<Drawn> drawn_;
  std::vector<std::uint32_t> unresolved_;  // indices in the scope
  std::size_t block_ = 1;                  // samples evaluated together
  std::uint32_t levels_ = 1;
};

}  // namespace xcount

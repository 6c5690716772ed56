// Draws single regions uniformly, masks included, and decides each by a search among the masks near
// it: for every change, and for queries with more masks than a row can hold.
//
// A search that is given up, or that meets a sum in doubt, leaves its region open, so that for
// every sample
//   outcome <= (1 if the region is sensitive, 0 if not) <= upper,
// with equality where nothing is open: docs/approximate.md, "What is sampled", "Single regions".
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "xcount/sampling/region_search.hpp"
#include "xcount/sampling/region_trees.hpp"
#include "xcount/sampling/sampler.hpp"
#include "xcount/support/random.hpp"

namespace xcount {

// What batches of samples found. A search that is given up leaves its mask open: open masks count
// as not sensitive in `outcomes`, as sensitive in `upper`.
struct RegionOutcomes {
  Outcomes outcomes;
  Outcomes upper;
  std::uint64_t n_open = 0;
};

// What is asked of regions.
template <class Value>
struct RegionQuestion {
  std::vector<const Forest<Value>*> forests;  // one for each sum
  std::vector<Value> bases;                   // what each sum starts from
  std::vector<Feature> sensitive;
  std::optional<std::int64_t> distance;  // the largest one of two neighbours; nullopt for any
  Change<Value> change;
  ProbabilityLink link;  // of a change in probability
};

template <class Value>
class RegionSampler {
 public:
  static constexpr std::size_t kBatch = Sampler<Value>::kBatch;
  // Masks drawn with each combination of other cells if they all have the same neighbours.
  static constexpr std::size_t kSharing = 8;
  static constexpr std::uint64_t kDefaultBudget = 3'000'000;

  // budget: residue nodes that the search for one combination of cells may look at.
  explicit RegionSampler(const RegionQuestion<Value>& question,
                         std::uint64_t budget = kDefaultBudget);

  // Outcomes of the batches [first, first + n), in order, whatever the number of threads; of the
  // first samples alone if they are stopped, and empty ones before the first.
  [[nodiscard]] RegionOutcomes draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
                                    std::uint64_t n, unsigned n_threads, Stop& stop) const;

  // What searches with another budget would come to: for the first n samples of a stream, or for
  // fewer if they are stopped.
  struct Trial {
    std::uint64_t n_samples = 0;
    std::uint64_t n_open = 0;   // masks
    std::uint64_t n_nodes = 0;  // that all searches looked at, those cut short included
  };
  [[nodiscard]] Trial try_budget(std::uint64_t budget, std::uint64_t seed, std::uint64_t stream,
                                 std::uint64_t n, unsigned n_threads, Stop& stop) const;

  // The answers for given regions, n x n_features cells; of the first ones if they are stopped.
  // within: tolerances of the regions, of one sum, where they are known better than by the change;
  // else none.
  [[nodiscard]] std::vector<std::uint8_t> decide(
      std::span<const Cell> regions, Stop& stop,
      std::span<const Tolerance<Value>> within = {}) const;
  // The mask nearest to a region's own that differs from it, one cell per sensitive feature; none
  // if there is none.
  [[nodiscard]] std::vector<Cell> partner(std::span<const Cell> region, Stop& stop,
                                          std::span<const Tolerance<Value>> within = {}) const;
  // The sums of given regions, n x n_sums.
  [[nodiscard]] std::vector<Value> sums(std::span<const Cell> regions) const;

  // Outcomes are the fractions k / levels of the masks drawn with one combination of cells.
  [[nodiscard]] std::uint32_t levels() const { return static_cast<std::uint32_t>(n_masks_); }
  // Those that take part; none where no tree tells masks apart.
  [[nodiscard]] std::size_t n_trees() const {
    return trees_.tells_masks_apart() ? trees_.n_trees() : 0;
  }
  [[nodiscard]] std::size_t n_sums() const { return bases_.size(); }
  [[nodiscard]] std::uint64_t budget() const { return budget_; }
  void set_budget(std::uint64_t budget) { budget_ = budget; }

 private:
  // One combination of non-sensitive cells, its masks, and their answers.
  struct Sample {
    std::vector<Cell> cells;  // one per column
    std::vector<Cell> masks;  // n_masks x axes
    std::int64_t radius = Ball::kEverywhere;
    std::vector<Answer> answers;
    std::vector<MaskBox> boxes;
    std::vector<Residue<Value>> residues;  // boxes x sums
  };
  struct Thread {
    RegionSearch<Value> search;
    std::vector<Sample> block;
    std::vector<Cell> drawn;
    std::vector<Value> values;                 // n_masks x sums
    std::vector<Tolerance<Value>> tolerances;  // n_masks x what is searched
    std::vector<Residue<Value>> leads;         // of sums over the largest one
    std::uint64_t budget = 0;                  // of each search
    std::uint64_t n_nodes = 0;                 // that searches looked at
  };
  // What became of a sample.
  struct Found {
    std::uint32_t n_sensitive = 0, n_open = 0;  // masks
    Answer first = Answer::kOpen;               // of the first mask
    bool is_done = false;
  };
  // Hands out samples in their order to the threads that answer them.
  struct Source {
    std::uint64_t seed, stream, first, n_samples;
    std::uint64_t next = 0;
    Random random{0, 0, 0};
    std::mutex taking{};
  };
  [[nodiscard]] Thread make_thread(std::uint64_t budget) const;
  // Draws up to `most` samples into the thread's block; returns where they begin, and how many.
  std::pair<std::uint64_t, std::size_t> take(Source& source, std::size_t most,
                                             Thread& thread) const;
  // Answers all samples of a source, or some if it is stopped; returns the nodes looked at.
  std::uint64_t answer_all(Source& source, std::uint64_t budget, unsigned n_threads,
                           std::span<Found> found, Stop& stop) const;
  [[nodiscard]] static Found found_in(const Sample& sample);
  [[nodiscard]] RegionOutcomes outcomes_of(std::span<const Found> found) const;
  void draw_sample(Random& random, Thread& thread, Sample& sample) const;
  void set_cells(std::span<const Cell> drawn, Sample& sample) const;
  void check(std::span<const Cell> regions) const;
  void set_region(std::span<const Cell> region, Thread& thread, Sample& sample) const;
  // What the trees leave of every box of the samples.
  void restrict(std::span<Sample> samples, Stop& stop) const;
  void find_values(const Sample& sample, Thread& thread) const;
  // Returns how many samples are answered: fewer than all if it is stopped.
  std::size_t answer(std::span<Sample> samples, Thread& thread, Stop& stop) const;
  void find_tolerances(Thread& thread) const;
  void compare_with_each_other(Sample& sample, const Thread& thread) const;
  void search(Sample& sample, Thread& thread, Stop& stop) const;
  [[nodiscard]] std::span<Residue<Value>> searched(Sample& sample, std::size_t box,
                                                   Thread& thread) const;
  // Decides the first mask of a sample within a distance.
  void decide_one(std::int64_t radius, std::span<const Tolerance<Value>> within, Thread& thread,
                  Sample& sample, Stop& stop) const;
  [[nodiscard]] Ball ball_of(const Sample& sample) const {
    return {axes_, std::span(sample.masks).first(axes_.size()), sample.radius};
  }

  ToleranceRule<Value> rule_;
  std::vector<Axis> axes_;  // of the sensitive features
  std::vector<Feature> sensitive_;
  std::vector<Axis> all_axes_;
  std::vector<Feature> features_;   // those that are drawn
  std::vector<std::size_t> place_;  // per column: its feature's place among those drawn
  std::vector<Value> bases_;
  std::int64_t radius_;
  std::size_t n_masks_;
  std::uint64_t budget_;
  RegionTrees<Value> trees_;
};

}  // namespace xcount

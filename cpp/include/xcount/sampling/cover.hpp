// The covers of several tasks, refined and sampled together.
//
// Holds a cover for each task and how often it counts. With p the share of the frontiers that
// solves, each state weighed by its volume times the multiplicity of its task,
//   sum over the tasks of multiplicity * share of its solutions
//     = sum over the tasks of multiplicity * (solved + p * open) / total,
// and a sample from the cover (a state of a frontier drawn by volume, then cells of its box) is a
// hit with probability p. The more is decided, the larger is p: docs/approximate.md, "What is
// sampled", "Covers".
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "xcount/sampling/row_decider.hpp"
#include "xcount/sampling/sampler.hpp"
#include "xcount/sampling/task_cover.hpp"
#include "xcount/sampling/weighted_picker.hpp"

namespace xcount {

template <class Value>
class Cover {
 public:
  using Check = typename TaskCover<Value>::Check;

  // `check` is called every now and then, and may end this by an exception. Throws
  // std::length_error where trees are too deep or too large to make differences of.
  Cover(
      const Forest<Value>& forest, const MaskSpace& masks, const Value& threshold,
      const std::vector<CoverTask>& tasks, const Check& check = [] {});
  Cover(Cover&&) = default;  // not copied: tables may be large

  // Does about that much work where the open volume is largest, within that many bytes. The outcome
  // does not depend on the number of threads.
  void refine(std::uint64_t work, std::size_t max_bytes, unsigned n_threads,
              std::uint64_t max_paths = kMaxPaths);
  // Whether no task can be refined any further in the memory that the last refinement had.
  [[nodiscard]] bool is_full() const;

  [[nodiscard]] std::size_t n_tasks() const { return covers_.size(); }
  [[nodiscard]] const TaskCover<Value>& task(std::size_t i) const { return *covers_[i]; }
  [[nodiscard]] std::uint64_t n_open() const;  // states
  [[nodiscard]] std::uint64_t work() const;
  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] double mean_residuals() const;  // of an open state, by volume
  // Seconds that a sample takes, roughly, and the same on every machine.
  [[nodiscard]] double seconds_per_sample() const;

  // Fixes the frontier as what `draw` draws from.
  void freeze();
  [[nodiscard]] Outcomes draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
                              std::uint64_t n, unsigned n_threads, Stop& stop) const;

 private:
  struct Frozen {
    std::uint32_t task, state;
  };
  [[nodiscard]] Share weight(std::size_t task) const;  // of its open states
  [[nodiscard]] Share weight(const Frozen& frozen) const;
  // Samples of one task that wait to be decided together: those of several batches.
  struct Block {
    typename RowDecider<Value>::Workspace work;
    std::vector<std::uint8_t*> hits;  // of its samples
  };
  // Room for samples; one per thread.
  struct Thread {
    std::vector<typename TaskCover<Value>::Draw> draws;  // per task, without deciders
    std::vector<Block> blocks;                           // per task, with deciders
  };
  [[nodiscard]] Thread make_thread() const;
  void draw_batch(Random& random, Thread& thread, std::span<std::uint8_t> hits) const;
  void draw_cells(const Frozen& drawn, Random& random, std::uint8_t* hit, Thread& thread) const;
  void decide(std::size_t task, Block& block) const;

  std::vector<std::unique_ptr<TaskCover<Value>>> covers_;
  std::vector<std::uint32_t> multiplicity_;
  std::vector<RowDecider<Value>> deciders_;  // per task; none if the tasks are many
  std::vector<Frozen> frozen_;
  WeightedPicker picker_;  // of frozen states
};

}  // namespace xcount

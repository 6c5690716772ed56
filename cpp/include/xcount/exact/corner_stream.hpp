// One thread's stream of blocks: lists of corners along the outer axes, slabs below.
//
// Let c_1, ..., c_s be the outer cells of the current block. After move_to, with D the corners,
//   list_j(q)   = sum over outer cells d_1 <= c_1, ..., d_j <= c_j of D(d_1, ..., d_j, q)
//                 for 0 < j < s;
//   block(r, x) = the same for j = s, summed along the row, too (x is a place in row r).
// Going on to the next cell of axis j adds the slice of list_(j-1) at that cell; the lists below
// start again. The rest of the sums, along the middle and sensitive axes, is done tile by tile.
// Proved in docs/corner-sums.md, "Streaming".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "xcount/exact/corner_plan.hpp"
#include "xcount/exact/corner_tile.hpp"
#include "xcount/exact/narrow_tile.hpp"
#include "xcount/exact/wide_tile.hpp"

namespace xcount {

template <class T>
class CornerStream final : private TileFiller {
 public:
  explicit CornerStream(const CornerPlan<T>& plan);
  CornerStream(const CornerStream&) = delete;
  CornerStream& operator=(const CornerStream&) = delete;

  // Counts the sensitive regions of a block. Moving to a later block is quicker than going back.
  void count_block(std::uint64_t block);

  // Of the last block, [change][mask position]; shares are in units of its outer cells' weight.
  [[nodiscard]] std::span<const std::uint64_t> counts() const {
    return std::span(counts_).first(plan_.changes.size() * layout_.n_masks);
  }
  [[nodiscard]] std::span<const double> shares() const { return block_shares_; }

  // The most that a stream holds.
  [[nodiscard]] static std::size_t bytes_for(const CornerPlan<T>& plan);

 private:
  struct Level {
    CornerList<T> list;      // unused at the last level, which is the block
    std::size_t cursor = 0;  // corners of the level above that are in the list
    Cell cell = -1;
  };
  struct Output {
    std::vector<Level> levels;
    std::vector<Lanes<T>> block;                  // [tile][column][mask], or [place][column]
    std::vector<std::vector<Lanes<T>>> partials;  // per middle axis, sums along it and those above
  };

  void set_places();
  void set_job();
  void set_near();
  void set_row_weights();
  void move_to(std::uint64_t block);
  void advance(std::size_t output, std::size_t level, Cell target);
  void restart(std::size_t output, std::size_t level);
  void insert(std::size_t output, std::span<const Corner<T>> corners, std::uint64_t mask);
  void insert_row(Lanes<T>* block, std::size_t stride, std::span<const Corner<T>> corners);
  void spread(std::span<const Corner<T>> corners);
  void spread_steps(std::span<const Corner<T>> corners);
  void fill() override;
  void count_tile(Start start, double weight);
  void add_slab(Lanes<T>* sums, const Lanes<T>* slab, std::size_t n) const;
  void count_slabs(std::size_t axis, double weight);
  void add_tile_shares(double weight);
  void add_common_counts();
  [[nodiscard]] bool are_within_block() const;  // whether no count is more than the mask's regions

  const CornerPlan<T>& plan_;
  const CornerLayout& layout_;
  TileKernels<T> kernels_;                 // of 32 and 64 bits
  std::unique_ptr<NarrowRoom<T>> narrow_;  // of 32 and 64 bits, if 16 bits are compared first
  std::unique_ptr<WideTile<T>> wide_;      // of more than 64 bits
  TileJob<T> job_;
  std::vector<Output> outputs_;
  std::vector<std::uint32_t> place_;  // see HeldSums; empty if blocks hold all masks
  std::size_t n_places_ = 1;
  std::vector<Lanes<T>> filled_;           // sums of all masks, if they were asked for
  std::vector<std::size_t> slab_vectors_;  // per middle axis: of the slab of one of its cells
  std::vector<std::vector<const Lanes<T>*>> slabs_;  // per middle axis and output: where it reads
  std::vector<const Lanes<T>*> slab_;                // what the job points to
  std::vector<Lanes<T>*> sums_;
  std::vector<Lanes<T>> column_, tables_;
  std::vector<NearExtremes<T>> near_;
  std::vector<std::uint64_t> counts_;  // of the last block; common ones behind: see TileResults
  std::vector<double> row_weights_, tile_shares_;
  std::vector<Lanes<T>> row_;
  CornerList<T> merged_, gathered_;
  bool changed_ = true;  // since the last block that was counted

  std::vector<double> block_shares_;
};

}  // namespace xcount

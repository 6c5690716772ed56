#include "xcount/sampling/overlapping_boxes.hpp"

#include <bit>
#include <stdexcept>
#include <utility>

#include "xcount/support/assert.hpp"
#include "xcount/support/held_bytes.hpp"

namespace xcount {

OverlappingBoxes::OverlappingBoxes(std::vector<Axis> axes, std::vector<Cell> runs,
                                   std::vector<std::uint32_t> n_masks)
    : axes_(std::move(axes)), runs_(std::move(runs)), n_masks_(std::move(n_masks)) {
  if (runs_.size() != 2 * axes_.size() * size()) {
    throw std::invalid_argument("boxes: a box has one run of cells per axis");
  }
  std::uint64_t n = 0;
  for (std::size_t box = 0; box < size(); ++box) {
    n += n_masks_[box];
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      const Cell low = runs_of(box)[2 * a], high = runs_of(box)[2 * a + 1];
      if (low < 0 || high < low || high >= axes_[a].n_cells) {
        throw std::invalid_argument("boxes: a run has cells that do not exist");
      }
    }
    total_ += weight(box);
  }
  if (n >= kMaxMasks) throw std::invalid_argument("boxes: too many masks");
  picker_.start(size(), total_);
  for (std::size_t box = 0; box < size(); ++box) picker_.add(weight(box));
  mark_holders();
}

Share OverlappingBoxes::weight(std::size_t box) const {
  Share product = static_cast<Share>(n_masks_[box]);
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const Cell* run = runs_of(box) + 2 * a;
    product *= static_cast<Share>(run[1] - run[0] + 1) / static_cast<Share>(axes_[a].n_cells);
  }
  return product;
}

void OverlappingBoxes::mark_holders() {
  n_words_ = (size() + 63) / 64;
  std::size_t n_cells = 0;
  for (const Axis& axis : axes_) {
    first_.push_back(n_cells * n_words_);
    n_cells += static_cast<std::size_t>(axis.n_cells);
  }
  holders_.assign(n_cells * n_words_, 0);
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    std::uint64_t* const words = holders_.data() + first_[a];
    // The ends of the runs first: a box holds the cells between an odd and an even number of them.
    const auto flip = [&](Cell cell, std::size_t box) {
      if (cell == axes_[a].n_cells) return;
      words[static_cast<std::size_t>(cell) * n_words_ + box / 64] ^= std::uint64_t{1} << (box % 64);
    };
    for (std::size_t box = 0; box < size(); ++box) {
      flip(runs_of(box)[2 * a], box);
      flip(runs_of(box)[2 * a + 1] + 1, box);
    }
    for (std::size_t i = n_words_; i < static_cast<std::size_t>(axes_[a].n_cells) * n_words_; ++i) {
      words[i] ^= words[i - n_words_];
    }
  }
}

std::size_t OverlappingBoxes::bytes() const {
  return held_bytes(runs_) + held_bytes(n_masks_) + held_bytes(holders_) + picker_.bytes();
}

void OverlappingBoxes::draw(Random& random, std::span<Cell> cells) const {
  XCOUNT_ASSERT(cells.size() == axes_.size());
  const std::size_t box = picker_.pick(random, [this](std::size_t i) { return weight(i); });
  const Cell* run = runs_of(box);
  for (Cell& cell : cells) {
    cell =
        run[0] + static_cast<Cell>(random.below(static_cast<std::uint32_t>(run[1] - run[0] + 1)));
    run += 2;
  }
}

std::uint32_t OverlappingBoxes::around(std::span<const Cell> cells) const {
  XCOUNT_ASSERT(cells.size() == axes_.size());
  std::vector<const std::uint64_t*> words;
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    words.push_back(holders_.data() + first_[a] + static_cast<std::size_t>(cells[a]) * n_words_);
  }
  std::uint32_t found = 0;
  for (std::size_t w = 0; w < n_words_; ++w) {
    std::uint64_t held = ~std::uint64_t{0};
    if (w + 1 == n_words_ && size() % 64 != 0) held >>= 64 - size() % 64;
    for (std::size_t a = 0; held != 0 && a < words.size(); ++a) held &= words[a][w];
    for (; held != 0; held &= held - 1) {
      found += n_masks_[64 * w + static_cast<std::size_t>(std::countr_zero(held))];
    }
  }
  return found;
}

}  // namespace xcount

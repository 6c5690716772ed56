// Which masks matter to a sample, and which of their pairs can make them sensitive.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "xcount/trees/masks.hpp"

namespace xcount {

// What is asked of a sample: which masks are unresolved, and which pairs of masks can make them
// sensitive.
struct MaskQuestion {
  std::vector<MaskIndex> unresolved;
  std::vector<std::pair<MaskIndex, MaskIndex>> pairs;  // those that may differ by more than the gap
  bool all_pairs = true;                               // ignore `pairs`: all neighbours may
};

// The part of the mask space that a question is about: the cells that occur in its pairs, per
// sensitive axis. Masks of the scope are numbered like those of the whole space.
class MaskScope {
 public:
  MaskScope(const Topology& forest, const MaskSpace& masks, const MaskQuestion& question);

  [[nodiscard]] const std::vector<std::vector<Cell>>& cells() const { return cells_; }
  [[nodiscard]] std::size_t n_masks() const { return n_masks_; }
  [[nodiscard]] std::uint32_t index(const MaskSpace& masks, MaskIndex mask) const;

 private:
  std::vector<std::vector<Cell>> cells_;
  std::size_t n_masks_ = 1;
};

}  // namespace xcount

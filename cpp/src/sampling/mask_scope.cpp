#include "xcount/sampling/mask_scope.hpp"

#include <algorithm>
#include <stdexcept>

namespace xcount {

namespace {

constexpr std::size_t kMaxMasks = std::size_t{1} << 24;

}  // namespace

MaskScope::MaskScope(const Topology& forest, const MaskSpace& masks, const MaskQuestion& question) {
  std::vector<std::vector<std::uint8_t>> used;
  for (const Feature feature : masks.sensitive()) {
    const auto n_cells = static_cast<std::size_t>(forest.axis(feature).n_cells);
    used.emplace_back(n_cells, question.all_pairs ? std::uint8_t{1} : std::uint8_t{0});
  }
  for (const auto& pair : question.pairs) {
    for (const MaskIndex mask : {pair.first, pair.second}) {
      const std::vector<Cell> cells = masks.cells(mask);
      for (std::size_t i = 0; i < cells.size(); ++i)
        used[i][static_cast<std::size_t>(cells[i])] = 1;
    }
  }
  for (const auto& flags : used) {
    std::vector<Cell> kept;
    for (std::size_t c = 0; c < flags.size(); ++c) {
      if (flags[c] != 0) kept.push_back(static_cast<Cell>(c));
    }
    if (kept.empty()) kept.push_back(0);
    if (n_masks_ > kMaxMasks / kept.size())
      throw std::length_error("too many masks to sample; ask about fewer sensitive features");
    n_masks_ *= kept.size();
    cells_.push_back(std::move(kept));
  }
}

std::uint32_t MaskScope::index(const MaskSpace& masks, MaskIndex mask) const {
  const std::vector<Cell> cells = masks.cells(mask);
  std::size_t result = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto found = std::lower_bound(cells_[i].begin(), cells_[i].end(), cells[i]);
    if (found == cells_[i].end() || *found != cells[i]) {
      throw std::invalid_argument("sampling: an unresolved mask is in none of the pairs");
    }
    result = result * cells_[i].size() + static_cast<std::size_t>(found - cells_[i].begin());
  }
  return static_cast<std::uint32_t>(result);
}

}  // namespace xcount

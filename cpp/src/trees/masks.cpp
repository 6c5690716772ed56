#include "xcount/trees/masks.hpp"

#include <algorithm>
#include <limits>

#include "xcount/support/assert.hpp"

namespace xcount {

MaskSpace::MaskSpace(const Topology& forest, std::vector<Feature> sensitive,
                     std::optional<std::int64_t> distance)
    : sensitive_(std::move(sensitive)),
      limit_(distance.value_or(std::numeric_limits<std::int64_t>::max())) {
  for (const Feature feature : sensitive_) {
    if (feature < 0 || static_cast<std::size_t>(feature) >= forest.axes.size()) {
      throw std::invalid_argument("masks: a sensitive feature is out of range");
    }
    axes_.push_back(forest.axis(feature));
    if (size_ > std::numeric_limits<MaskIndex>::max() / axes_.back().n_cells) {
      throw std::length_error(
          "too many masks to number; use --method auto or sample, or fewer sensitive features");
    }
    size_ *= axes_.back().n_cells;
  }
  if (limit_ < 1) throw std::invalid_argument("masks: the distance must be at least 1");
}

bool MaskSpace::is_sensitive(Feature feature) const {
  return std::find(sensitive_.begin(), sensitive_.end(), feature) != sensitive_.end();
}

std::vector<Cell> MaskSpace::cells(MaskIndex mask) const {
  XCOUNT_ASSERT(mask >= 0 && mask < size_);
  std::vector<Cell> result(axes_.size());
  for (std::size_t i = axes_.size(); i-- > 0;) {
    result[i] = static_cast<Cell>(mask % axes_[i].n_cells);
    mask /= axes_[i].n_cells;
  }
  return result;
}

void MaskSpace::write_cells(MaskIndex mask, std::span<Cell> region) const {
  XCOUNT_ASSERT(mask >= 0 && mask < size_);
  for (std::size_t i = axes_.size(); i-- > 0;) {
    XCOUNT_ASSERT(static_cast<std::size_t>(sensitive_[i]) < region.size());
    region[static_cast<std::size_t>(sensitive_[i])] = static_cast<Cell>(mask % axes_[i].n_cells);
    mask /= axes_[i].n_cells;
  }
}

std::int64_t MaskSpace::distance(MaskIndex a, MaskIndex b) const {
  const std::vector<Cell> from = cells(a);
  const std::vector<Cell> to = cells(b);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) total += axes_[i].distance(from[i], to[i]);
  return total;
}

std::vector<MaskIndex> MaskSpace::neighbours(MaskIndex mask) const {
  std::vector<MaskIndex> result;
  const std::vector<Cell> from = cells(mask);
  collect(0, 0, limit_, from, result);
  XCOUNT_ASSERT(std::is_sorted(result.begin(), result.end()));
  XCOUNT_ASSERT(std::find(result.begin(), result.end(), mask) != result.end());
  result.erase(std::find(result.begin(), result.end(), mask));
  return result;
}

void MaskSpace::collect(std::size_t i, MaskIndex prefix, std::int64_t left,
                        std::span<const Cell> from, std::vector<MaskIndex>& out) const {
  if (i == axes_.size()) {
    out.push_back(prefix);
    return;
  }
  for (Cell cell = 0; cell < axes_[i].n_cells; ++cell) {
    const std::int64_t step = axes_[i].distance(from[i], cell);
    if (step <= left) {
      collect(i + 1, prefix * axes_[i].n_cells + cell, left - step, from, out);
    }
  }
}

}  // namespace xcount

// Masks: one cell per sensitive feature; and which masks are near which.
//
// Masks are numbered in mixed radix, the last feature fastest: with n_i the number of cells,
//   mask = (((c_1) * n_2 + c_2) * n_3 + c_3) ... ,   0 <= mask < size() = product of the n_i.
// distance(a, b) = sum over the features of |position of c_i(a) - position of c_i(b)|, where a step
// from or to a cell without order (a category, a missing value) is 1.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "xcount/trees/forest.hpp"

namespace xcount {

using MaskIndex = std::int64_t;

// All masks of the sensitive features, numbered in mixed radix with the last feature fastest.
class MaskSpace {
 public:
  // distance: the largest distance of two neighbours; nullopt for any distance.
  MaskSpace(const Topology& forest, std::vector<Feature> sensitive,
            std::optional<std::int64_t> distance);

  [[nodiscard]] MaskIndex size() const { return size_; }
  [[nodiscard]] const std::vector<Feature>& sensitive() const { return sensitive_; }
  [[nodiscard]] Cell n_cells(std::size_t i) const { return axes_[i].n_cells; }  // of sensitive()[i]
  [[nodiscard]] std::int64_t limit() const { return limit_; }  // of the distance of neighbours
  [[nodiscard]] bool is_sensitive(Feature feature) const;

  // The cells of a mask, in the order of sensitive().
  [[nodiscard]] std::vector<Cell> cells(MaskIndex mask) const;
  void write_cells(MaskIndex mask, std::span<Cell> region) const;  // region: a cell per feature
  [[nodiscard]] std::int64_t distance(MaskIndex a, MaskIndex b) const;
  // All masks b != mask with distance(mask, b) <= d, ascending.
  [[nodiscard]] std::vector<MaskIndex> neighbours(MaskIndex mask) const;

 private:
  void collect(std::size_t i, MaskIndex prefix, std::int64_t left, std::span<const Cell> from,
               std::vector<MaskIndex>& out) const;

  std::vector<Feature> sensitive_;
  std::vector<Axis> axes_;
  std::int64_t limit_;
  MaskIndex size_ = 1;
};

}  // namespace xcount

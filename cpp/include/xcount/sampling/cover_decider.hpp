// Decides combinations of cells drawn from the cover of one task by the task's own trees: many at a
// time, and without the residuals that the cover is made of.
//
// A combination x is a hit iff |V(x, m) - V(x, m')| > threshold for any (or all) of the pairs
// (m, m') of the task, which is what the cover's own residuals say of it: docs/approximate.md,
// "What is sampled", "Covers".
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "xcount/exact/path_walk.hpp"
#include "xcount/sampling/mask_decider.hpp"
#include "xcount/sampling/profile_forest.hpp"
#include "xcount/support/random.hpp"
#include "xcount/trees/forest.hpp"
#include "xcount/trees/gap.hpp"
#include "xcount/trees/masks.hpp"

namespace xcount {

template <class Value>
class CoverDecider {
 public:
  // A combination of cells is a hit if any (or all) of the pairs differ by more than the threshold.
  CoverDecider(const Forest<Value>& forest, const MaskSpace& masks, const Value& threshold,
               const std::vector<std::pair<MaskIndex, MaskIndex>>& pairs, Combine combine);

  struct Workspace {
    typename ProfileForest<Value>::Workspace walks;
    std::vector<Code> codes;
    std::vector<Value> rows;
  };
  [[nodiscard]] Workspace workspace(std::size_t block) const;

  // Draws all cells of `count` samples uniformly; those known otherwise are to be fixed afterwards.
  void draw(Random& random, std::size_t block, std::size_t count, Workspace& work) const;
  void fix(Feature feature, Cell cell, std::size_t block, std::size_t sample,
           Workspace& work) const {
    set(places_[static_cast<std::size_t>(feature)], cell, block, sample, work);
  }
  // Calls hit(sample) for the hits among them.
  template <class Hit>
  void decide(std::size_t block, std::size_t count, Workspace& work, const Hit& hit) const {
    std::fill(work.rows.begin(), work.rows.end(), Value{});
    profiles_.evaluate(work.codes, block, count, work.walks, work.rows);
    for (std::size_t i = 0; i < count; ++i) {
      if (is_hit(std::span(work.rows).subspan(i * profiles_.n_masks(), profiles_.n_masks()))) {
        hit(i);
      }
    }
  }

  [[nodiscard]] std::size_t n_trees() const { return profiles_.n_trees(); }

 private:
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  void set(std::uint32_t place, Cell cell, std::size_t block, std::size_t sample,
           Workspace& work) const {
    if (place == kNowhere) return;
    for (const std::uint32_t c : columns_of_[place]) {
      work.codes[c * block + sample] =
          profiles_.columns()[c].code_of_cell[static_cast<std::size_t>(cell)];
    }
  }
  [[nodiscard]] bool is_hit(std::span<const Value> row) const;

  MaskScope scope_;
  ProfileForest<Value> profiles_;
  Gap<Value> gap_;
  Combine combine_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs_;  // in the scope
  std::vector<std::uint32_t> places_;   // per feature: its place among those drawn, or kNowhere
  std::vector<std::uint32_t> n_cells_;  // per drawn feature
  std::vector<std::vector<std::uint32_t>> columns_of_;
};

}  // namespace xcount

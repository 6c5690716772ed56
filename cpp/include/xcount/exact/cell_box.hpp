// The box of cells in which a walk through residual trees stands.
//
// Holds for each feature f that the residuals mention a stretch [begin, end) of its axis; its
// volume is the product over those f of what the stretch weighs (the number of its cells, or their
// weight). A test on f cuts the box into two disjoint ones that together are all of it, so
//   volume = volume of the low half + volume of the high half
// and a walk's ends are disjoint boxes whose volumes add up to that of the start: docs/exact.md,
// "Why this is right", "Enumeration of small states".
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "xcount/exact/solution_values.hpp"
#include "xcount/support/assert.hpp"
#include "xcount/trees/residuals.hpp"

namespace xcount {

template <class Value, class Values>
class CellBox {
 public:
  using Volume = typename Values::Volume;

  CellBox(const ResidualStore<Value>& store, const Values& values)
      : store_(store), values_(values) {}

  void open() {
    mentioned_.clear();
    log2_volume_ = 0.0;
  }

  // Adds the features that the residuals mention, with what is left of their axes. They must share
  // none with those added before. False if some axis has no order: then it cannot be walked.
  bool add(std::span<const ResidualId> roots, std::span<const Stretch> narrowed) {
    const auto first = static_cast<std::ptrdiff_t>(mentioned_.size());
    seen_.resize(store_.features().size(), 0);
    box_.resize(store_.features().size());
    const bool ordered = find_mentioned(roots);
    std::uint64_t support = 0;
    for (const ResidualId id : roots) support |= store_[id].support;
    for (const Stretch& stretch : narrowed) {
      XCOUNT_ASSERT(stretch.feature < box_.size());
      if ((support >> (stretch.feature & 63) & 1) == 0) continue;
      // With more than 64 features the support may name a narrowed one that no tree tests.
      if (seen_[stretch.feature] == 0) mentioned_.push_back(stretch.feature);
      box_[stretch.feature] = stretch;
    }
    volume_ = 1;
    for (auto feature = mentioned_.begin() + first; feature != mentioned_.end(); ++feature) {
      const Stretch& stretch = box_[*feature];
      XCOUNT_ASSERT(stretch.begin < stretch.end);
      seen_[*feature] = 0;
      log2_volume_ += std::log2(static_cast<double>(stretch.end - stretch.begin));
      volume_ *= values_.volume(stretch);
    }
    return ordered;
  }

  // Goes where the node's test may send a cell of the box: go(child, volume), with the box cut down
  // to the child's half. A test that the box decides has one way only.
  template <class Node, class Go>
  void branch(const Node& node, Volume volume, const Go& go) {
    Stretch& stretch = box_[node.feature];
    XCOUNT_ASSERT(node.test.feature != kLeaf && stretch.feature == node.feature);
    XCOUNT_ASSERT(stretch.begin < stretch.end);
    const Cell cut = node.test.cut;
    if (cut >= stretch.end) return go(node.low, volume);
    if (cut <= stretch.begin) return go(node.high, volume);
    const Stretch saved = stretch;
    const Volume before = values_.before(volume, stretch, cut);
    XCOUNT_ASSERT(before <= volume);
    stretch.end = cut;
    go(node.low, before);
    stretch = {saved.feature, cut, saved.end};
    go(node.high, values_.after(volume, before, saved, cut));
    stretch = saved;
  }

  [[nodiscard]] const std::vector<LocalFeature>& mentioned() const { return mentioned_; }
  [[nodiscard]] Volume volume() const { return volume_; }            // of what was added last
  [[nodiscard]] double log2_volume() const { return log2_volume_; }  // of all, in cells

 private:
  bool find_mentioned(std::span<const ResidualId> roots) {
    bool ordered = true;
    open_.assign(roots.begin(), roots.end());
    while (!open_.empty()) {
      const auto& node = store_[open_.back()];
      open_.pop_back();
      if (node.test.feature == kLeaf) continue;
      if (seen_[node.feature] == 0) {
        seen_[node.feature] = 1;
        mentioned_.push_back(node.feature);
        box_[node.feature] = {node.feature, 0, store_.forest().axis(node.test.feature).n_cells};
        ordered = ordered && store_.has_order(node.feature);
      }
      open_.push_back(node.low);
      open_.push_back(node.high);
    }
    return ordered;
  }

  const ResidualStore<Value>& store_;
  const Values& values_;
  std::vector<Stretch> box_;  // by feature; valid for the mentioned ones
  std::vector<LocalFeature> mentioned_;
  std::vector<std::uint8_t> seen_;  // 1 only while features are added
  std::vector<ResidualId> open_;
  double log2_volume_ = 0.0;
  Volume volume_{};
};

}  // namespace xcount

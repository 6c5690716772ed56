// Choosing where to split: the feature whose tests at the roots carry the most range.
//
// Holds, for each feature f that was added since the last choice,
//   total(f) = sum of the ranges (max - min, as doubles) of the trees whose root tests f,
// and the cut that the widest of these trees asks about: what is decided there matters most. Which
// choices were tried: docs/exact.md, "What did not help". Any choice gives the same count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "xcount/support/assert.hpp"
#include "xcount/trees/forest.hpp"

namespace xcount {

// The range of a tree by its root node: positive, so that every tree counts.
template <class Node>
[[nodiscard]] double range_of(const Node& node) {
  using Value = std::remove_cvref_t<decltype(node.max)>;
  return ValueTraits<Value>::to_double(node.max - node.min) + 1e-300;
}

class RootScores {
 public:
  struct Choice {
    std::uint32_t feature;
    Cell cut;
    double total;
  };

  // Features are numbered from 0 to n_features - 1.
  void resize(std::size_t n_features) {
    XCOUNT_ASSERT(scored_.empty());
    if (scores_.size() < n_features) scores_.resize(n_features);
  }

  void add(std::uint32_t feature, Cell cut, double range) {
    XCOUNT_ASSERT(range > 0.0 && feature < scores_.size());
    Score& score = scores_[feature];
    if (score.total == 0.0) scored_.push_back(feature);
    score.total += range;
    if (range > score.widest || (range == score.widest && cut < score.cut)) {
      score.widest = range;
      score.cut = cut;
    }
  }

  // The best of what was added, which must be something; the first feature where several are
  // equal. Starts anew.
  [[nodiscard]] Choice choose() {
    XCOUNT_ASSERT(!scored_.empty());
    std::uint32_t best = scored_.front();
    for (const std::uint32_t feature : scored_) {
      const double total = scores_[feature].total;
      if (total > scores_[best].total || (total == scores_[best].total && feature < best)) {
        best = feature;
      }
    }
    const Choice choice{best, scores_[best].cut, scores_[best].total};
    for (const std::uint32_t feature : scored_) scores_[feature] = {};
    scored_.clear();
    return choice;
  }

 private:
  struct Score {
    double total = 0.0, widest = 0.0;
    Cell cut = 0;
  };
  std::vector<Score> scores_;
  std::vector<std::uint32_t> scored_;  // the features whose score is not 0
};

}  // namespace xcount

// Difference trees: what one tree contributes to V(x, m) - V(x, m') for two masks m and m'.
//
// For all combinations x of the other features' cells,
//   V(x, a) - V(x, b) = offset + sum over `roots` of (the residual tree's leaf at x),
// and no residual tests a sensitive feature, nor what its path decides already: docs/exact.md, "An
// example, start to end".
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "xcount/trees/forest.hpp"
#include "xcount/trees/gap.hpp"
#include "xcount/trees/masks.hpp"
#include "xcount/trees/residuals.hpp"

namespace xcount {

// Builds the difference trees of pairs of masks. A tree without a test that separates the two masks
// contributes nothing; in the others, only what stands below such tests does.
template <class Value>
class DifferenceBuilder {
 public:
  // A difference tree may have as many leaves as both sides multiplied. So this is called every now
  // and then, and ends the work by an exception.
  using Check = std::function<void()>;

  DifferenceBuilder(const Forest<Value>& forest, const MaskSpace& masks);

  // Appends the non-constant difference trees of the pair to `roots`, adds the constant ones to
  // `offset`.
  void build(MaskIndex a, MaskIndex b, ResidualStore<Value>& store, std::vector<ResidualId>& roots,
             Value& offset, const Check& check);

  // Whether |V(x, a) - V(x, b)| > threshold is possible, by adding up each tree's own range.
  [[nodiscard]] bool may_exceed(MaskIndex a, MaskIndex b, const Gap<Value>& gap,
                                ResidualStore<Value>& store, const Check& check);

  // Trees of a depth that the recursions below would need too much stack for.
  [[nodiscard]] bool is_too_deep() const { return is_too_deep_; }

  // Pairs of nodes visited so far.
  [[nodiscard]] std::uint64_t n_walks() const { return n_walks_; }

 private:
  static constexpr std::uint32_t kMaxDepth = sizeof(Value) > 16 ? 1000 : 10000;
  static constexpr std::uint64_t kWalksPerCheck = 1024;
  // The cells that the path to the current node allows: a bit set for short axes, an interval and
  // the missing cell for long ones.
  struct Domain {
    std::uint64_t allowed = 0;
    Cell begin = 0, end = 0;
    bool missing = false;
  };
  // Gives a domain back as it was, also when an exception ends the walk.
  struct Restoring {
    Domain& domain;
    const Domain before;

    explicit Restoring(Domain& changed) : domain(changed), before(changed) {}
    Restoring(const Restoring&) = delete;
    Restoring& operator=(const Restoring&) = delete;
    ~Restoring() { domain = before; }
  };
  enum class Side { kLeft, kRight, kBoth };

  [[nodiscard]] bool separated(std::size_t tree) const;
  [[nodiscard]] NodeIndex descend(NodeIndex node, const std::vector<Cell>& mask) const;
  [[nodiscard]] NodeIndex step(NodeIndex node, const Test& test, bool left) const;
  [[nodiscard]] ResidualId walk(NodeIndex a, NodeIndex b, ResidualStore<Value>& store,
                                const Check& check);
  [[nodiscard]] Domain full(Feature feature) const;
  [[nodiscard]] Side side(const Test& test) const;
  [[nodiscard]] Domain restricted(const Test& test, bool left) const;
  [[nodiscard]] std::uint64_t left_bits(const Test& test) const;
  [[nodiscard]] bool is_short(Feature feature) const { return forest_.axis(feature).n_cells <= 64; }
  // Whether the path allows no cell of the feature.
  [[nodiscard]] bool is_empty(Feature feature) const {
    const Domain& d = domain(feature);
    return is_short(feature) ? d.allowed == 0 : d.begin >= d.end && !d.missing;
  }
  [[nodiscard]] Domain& domain(Feature feature) {
    return domains_[static_cast<std::size_t>(feature)];
  }
  [[nodiscard]] const Domain& domain(Feature feature) const {
    return domains_[static_cast<std::size_t>(feature)];
  }

  const Forest<Value>& forest_;
  const MaskSpace& masks_;
  std::vector<std::uint8_t> below_;                      // node -> a sensitive test at or below it
  std::vector<std::uint8_t> sensitive_;                  // feature -> is it sensitive
  std::vector<std::vector<NodeIndex>> sensitive_nodes_;  // tree -> its sensitive tests
  std::vector<Domain> domains_;
  bool is_too_deep_ = false;
  std::uint64_t n_walks_ = 0;
  std::vector<Cell> cells_a_, cells_b_;  // feature -> cell, for the sensitive features
};

}  // namespace xcount

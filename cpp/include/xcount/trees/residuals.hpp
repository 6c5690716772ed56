// Residual trees: hash-consed decision trees over the non-sensitive features of one subproblem.
//
// Holds nodes, each equal tree once: low != high at every test, and for every node
//   min = least leaf below it,   max = largest leaf below it,   id > ids of its children,
//   bit (f mod 64) of support is set if a test on f stands at or below it (and then, with up to 64
//   features, only then).
// A residual restricted to a part of an axis has, for the cells of that part, the values of the
// original: docs/exact.md, "Why this is right", "The sum over parts".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xcount/support/assert.hpp"
#include "xcount/support/hash_index.hpp"
#include "xcount/trees/forest.hpp"

namespace xcount {

using ResidualId = std::uint32_t;
using LocalFeature = std::uint32_t;  // features of one subproblem, numbered from 0

// A stretch of cells, from `start` to the next run's start, on which a residual becomes `node`.
struct Run {
  Cell start;
  ResidualId node;
};

// The nodes of one subproblem; `clear` forgets them all.
template <class Value>
class ResidualStore {
 public:
  struct Node {
    Value min, max;
    std::uint64_t support;  // bit (f mod 64) is set if a test on f stands at or below the node
    Test test;              // test.feature is the forest's feature; kLeaf at a leaf
    LocalFeature feature;
    ResidualId low, high;    // low: the test holds (left)
    std::uint32_t n_leaves;  // paths through the node, saturated
  };

  explicit ResidualStore(const Topology& forest) : forest_(forest) {
    local_.assign(forest.axes.size(), kNoLocal);
  }

  void clear();
  void release_caches();  // gives back what is only kept to be quick
  ResidualId leaf(const Value& value);
  // The node that asks `test`, or its only child if both are the same.
  ResidualId node(const Test& test, ResidualId low, ResidualId high);

  [[nodiscard]] const Node& operator[](ResidualId id) const {
    XCOUNT_ASSERT(id < nodes_.size());
    return nodes_[id];
  }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] bool is_leaf(ResidualId id) const { return nodes_[id].test.feature == kLeaf; }
  [[nodiscard]] bool mentions(ResidualId id, LocalFeature feature) const {
    XCOUNT_ASSERT(id < nodes_.size() && feature < features_.size());
    return (nodes_[id].support >> (feature & 63) & 1) != 0;
  }
  // Whether all tests on the feature's axis are prefixes of it.
  [[nodiscard]] bool has_order(LocalFeature feature) const {
    XCOUNT_ASSERT(feature < features_.size());
    const Axis& axis = forest_.axis(features_[feature]);
    return axis.ordered && axis.missing_cell < 0 && axis.all_prefixes;
  }
  // What the residual becomes in each cell of the feature; the first run starts at cell 0.
  // The span is valid until the next call.
  std::span<const Run> cofactors(ResidualId id, LocalFeature feature);

  // What the residual becomes when all cells before (or from) the cut are ruled out. Only for
  // features whose tests are all prefixes of the axis.
  ResidualId restrict(ResidualId id, LocalFeature feature, Cell cut, bool keep_before);

  // The forest's features that tests have named so far, in the order of their local numbers.
  [[nodiscard]] const std::vector<Feature>& features() const { return features_; }
  [[nodiscard]] const Topology& forest() const { return forest_; }
  [[nodiscard]] std::size_t bytes() const;

 private:
  static constexpr std::uint32_t kManyLeaves = 1U << 20;
  static constexpr LocalFeature kNoLocal = ~LocalFeature{0};
  struct CofactorKey {
    ResidualId id;
    LocalFeature feature;
    std::size_t begin, end;  // in runs_
  };

  LocalFeature local(Feature feature);
  [[nodiscard]] std::uint32_t find_cofactors(ResidualId id, LocalFeature feature) const;
  // Returns an index into keys_; computes what is missing.
  std::uint32_t cofactor_index(ResidualId id, LocalFeature feature);
  void split_runs(ResidualId id, std::size_t low_key, std::size_t high_key);
  void merge_runs(ResidualId id, std::size_t low_key, std::size_t high_key);
  void append(Cell start, ResidualId node);
  [[nodiscard]] Cell next_change(const Test& test, Cell cell) const;

  struct RestrictKey {
    std::uint64_t generation = 0;  // entries of earlier subproblems do not count
    ResidualId id;
    LocalFeature feature;
    Cell cut;
    ResidualId result;
    bool keep_before;
  };
  static constexpr std::size_t kRestrictions = 65536;

  const Topology& forest_;
  std::vector<Node> nodes_;
  HashIndex unique_;
  std::vector<LocalFeature> local_;
  std::vector<Feature> features_;
  std::vector<CofactorKey> keys_;
  HashIndex cofactor_table_;
  std::vector<Run> runs_;
  std::vector<Run> scratch_;
  std::vector<RestrictKey> restrictions_;  // a lossy cache, by hash
  std::uint64_t generation_ = 1;
};

}  // namespace xcount

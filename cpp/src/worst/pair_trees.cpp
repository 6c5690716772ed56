#include "xcount/worst/pair_trees.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <type_traits>

#include "xcount/support/assert.hpp"
#include "xcount/support/held_bytes.hpp"

namespace xcount {

namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
constexpr int kBoundBits = 60;  // a sum of bounds fits with room for one rounding per factor
constexpr std::size_t kMaxPairLeaves = 2'000'000;  // of all factors, roughly
constexpr std::size_t kLeastLeaves = 1024;         // that a factor may have in any case

using Words = std::vector<std::uint64_t>;

Words all_of(std::size_t n) {
  Words words((n + 63) / 64, ~std::uint64_t{0});
  if (n % 64 != 0) words.back() = (std::uint64_t{1} << (n % 64)) - 1;
  return words;
}

std::vector<NodeIndex> nodes_below(const Topology& forest, NodeIndex root) {
  std::vector<NodeIndex> nodes{root};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (forest.is_leaf(nodes[i])) continue;
    nodes.push_back(forest.left[static_cast<std::size_t>(nodes[i])]);
    nodes.push_back(forest.right[static_cast<std::size_t>(nodes[i])]);
  }
  return nodes;
}

// One tree, and which segments of an axis go left at each of its tests.
struct CutTree {
  const Topology& forest;
  NodeIndex root;
  std::vector<NodeIndex> nodes;         // ascending
  std::vector<Feature> features;        // that are tested
  std::vector<Segments> segments;       // of each of them
  std::vector<Words> left;              // per node
  std::vector<std::size_t> place;       // per node, of its feature in `features`
  std::vector<std::uint8_t> sensitive;  // per node: whether a sensitive feature is tested below

  CutTree(const Topology& trees, NodeIndex from, const std::vector<Feature>& sensitive_features)
      : forest(trees), root(from), nodes(nodes_below(trees, from)) {
    std::sort(nodes.begin(), nodes.end());
    left.resize(nodes.size());
    place.resize(nodes.size(), kNone);
    sensitive.resize(nodes.size());
    for (const NodeIndex node : nodes) {
      if (!forest.is_leaf(node)) features.push_back(forest.test(node).feature);
    }
    std::sort(features.begin(), features.end());
    features.erase(std::unique(features.begin(), features.end()), features.end());
    segments.resize(features.size());
    for (std::size_t i = 0; i < features.size(); ++i) cut(i);
    for (std::size_t i = nodes.size(); i-- > 0;) {
      if (forest.is_leaf(nodes[i])) continue;
      const Feature feature = forest.test(nodes[i]).feature;
      const bool own = std::find(sensitive_features.begin(), sensitive_features.end(), feature) !=
                       sensitive_features.end();
      sensitive[i] = own || sensitive[index(forest.left[at(nodes[i])])] != 0 ||
                     sensitive[index(forest.right[at(nodes[i])])] != 0;
    }
  }

  static std::size_t at(NodeIndex node) { return static_cast<std::size_t>(node); }
  [[nodiscard]] std::size_t index(NodeIndex node) const {
    return static_cast<std::size_t>(std::lower_bound(nodes.begin(), nodes.end(), node) -
                                    nodes.begin());
  }

 private:
  void cut(std::size_t i) {
    const Feature feature = features[i];
    std::vector<std::size_t> own;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (!forest.is_leaf(nodes[n]) && forest.test(nodes[n]).feature == feature) own.push_back(n);
    }
    const Cell n_cells = forest.axis(feature).n_cells;
    Segments& found = segments[i];
    for (Cell cell = 0; cell < n_cells; ++cell) {
      const bool starts_segment =
          cell == 0 || std::any_of(own.begin(), own.end(), [&](std::size_t n) {
            const Test& test = forest.test(nodes[n]);
            return forest.goes_left(test, cell) != forest.goes_left(test, cell - 1);
          });
      if (starts_segment) found.starts.push_back(cell);
      found.of_cell.push_back(static_cast<std::uint16_t>(found.starts.size() - 1));
    }
    if (found.size() > std::numeric_limits<std::uint16_t>::max()) {
      throw std::length_error("a tree tests a feature at more than 65,535 places");
    }
    for (const std::size_t n : own) {
      place[n] = i;
      left[n].assign(found.n_words(), 0);
      for (std::size_t s = 0; s < found.size(); ++s) {
        if (forest.goes_left(forest.test(nodes[n]), found.starts[s])) {
          left[n][s / 64] |= std::uint64_t{1} << (s % 64);
        }
      }
    }
  }
};

// Walks a tree for the start and the target at once, and lists the leaves of a factor: their
// values, and the segments of all variables that they hold, in `n_words` words each.
template <class Value>
class LeafLister {
 public:
  // start[i], target[i]: where in `segments` the tree's i-th feature is.
  LeafLister(const Forest<Value>& forest, const CutTree& tree,
             const std::vector<std::size_t>& start, const std::vector<std::size_t>& target,
             const std::vector<Segments>& segments, std::size_t max_leaves)
      : forest_(forest), tree_(tree), start_(start), target_(target), max_leaves_(max_leaves) {
    for (const Segments& own : segments) {
      offset_.push_back(current_.size());
      const Words all = all_of(own.size());
      current_.insert(current_.end(), all.begin(), all.end());
    }
  }

  // V(target) - V(start); false if there are too many leaves.
  bool list_differences() { return differences(tree_.root, tree_.root); }
  // V(target), or -V(start).
  bool list_one(bool is_target) { return one(tree_.root, is_target); }

  [[nodiscard]] std::size_t n_words() const { return current_.size(); }
  [[nodiscard]] std::size_t offset(std::size_t variable) const { return offset_[variable]; }

  std::vector<Value> values;
  Words held;  // [leaf * n_words + word]

 private:
  enum class Side : std::uint8_t { kLeft, kRight, kBoth };

  NodeIndex child(NodeIndex node, bool is_left) const {
    const std::size_t i = CutTree::at(node);
    return is_left ? forest_.left[i] : forest_.right[i];
  }
  [[nodiscard]] Side side(const std::uint64_t* cells, const Words& left) const {
    bool some_left = false, some_right = false;
    for (std::size_t i = 0; i < left.size(); ++i) {
      some_left = some_left || (cells[i] & left[i]) != 0;
      some_right = some_right || (cells[i] & ~left[i]) != 0;
    }
    return some_left && some_right ? Side::kBoth : some_left ? Side::kLeft : Side::kRight;
  }
  // The node that the current cells lead to, as far as they decide.
  NodeIndex descend(NodeIndex node, const std::vector<std::size_t>& variable) const {
    while (!forest_.is_leaf(node)) {
      const std::size_t n = tree_.index(node);
      const Side found = side(&current_[offset_[variable[tree_.place[n]]]], tree_.left[n]);
      if (found == Side::kBoth) return node;
      node = child(node, found == Side::kLeft);
    }
    return node;
  }
  bool add(const Value& value) {
    values.push_back(value);
    held.insert(held.end(), current_.begin(), current_.end());
    return values.size() <= max_leaves_;
  }
  template <class Go>
  bool split(NodeIndex node, const std::vector<std::size_t>& variable, Go go) {
    const std::size_t n = tree_.index(node);
    const Words& left = tree_.left[n];
    std::uint64_t* cells = &current_[offset_[variable[tree_.place[n]]]];
    const Words before(cells, cells + left.size());
    bool fits = true;
    for (const bool is_left : {true, false}) {
      for (std::size_t i = 0; i < left.size(); ++i) {
        cells[i] = before[i] & (is_left ? left[i] : ~left[i]);
      }
      fits = fits && go();
    }
    std::copy(before.begin(), before.end(), cells);
    return fits;
  }
  bool differences(NodeIndex a, NodeIndex b) {
    a = descend(a, start_);
    b = descend(b, target_);
    const bool a_leaf = forest_.is_leaf(a), b_leaf = forest_.is_leaf(b);
    if (a == b && tree_.sensitive[tree_.index(a)] == 0) return add(Value{});
    if (a_leaf && b_leaf) return add(forest_.value(b) - forest_.value(a));
    const bool on_a = !a_leaf && (a <= b || b_leaf);
    return split(on_a ? a : b, on_a ? start_ : target_, [&] { return differences(a, b); });
  }
  bool one(NodeIndex node, bool is_target) {
    const std::vector<std::size_t>& variable = is_target ? target_ : start_;
    node = descend(node, variable);
    if (forest_.is_leaf(node)) {
      return add(is_target ? forest_.value(node) : Value{} - forest_.value(node));
    }
    return split(node, variable, [&] { return one(node, is_target); });
  }

  const Forest<Value>& forest_;
  const CutTree& tree_;
  const std::vector<std::size_t>& start_;
  const std::vector<std::size_t>& target_;
  std::size_t max_leaves_;
  std::vector<std::size_t> offset_;  // per variable
  Words current_;                    // the segments that the walk has left
};

// value / 2^shift, rounded up.
Bound rounded_up(std::int64_t value, int shift) {
  XCOUNT_ASSERT(shift == 0);
  static_cast<void>(shift);
  return value;
}

Bound rounded_up(Int128 value, int shift) {
  const Int128 floor = value >> shift;
  return static_cast<Bound>(floor) + ((floor << shift) != value ? 1 : 0);
}

template <std::size_t N>
Bound rounded_up(const WideInt<N>& value, int shift) {
  const auto limb = static_cast<std::size_t>(shift) / 64;
  const int bit = shift % 64;
  std::uint64_t word = value.limbs[limb] >> bit;
  const std::uint64_t next =
      limb + 1 < N ? value.limbs[limb + 1] : (value.negative() ? ~std::uint64_t{0} : 0);
  if (bit != 0) word |= next << (64 - bit);
  bool exact = bit == 0 || (value.limbs[limb] << (64 - bit)) == 0;
  for (std::size_t i = 0; i < limb; ++i) exact = exact && value.limbs[i] == 0;
  return static_cast<Bound>(word) + (exact ? 0 : 1);
}

// value / 2^shift, rounded down.
Bound shifted(std::int64_t value, int /*shift*/) { return value; }
Bound shifted(Int128 value, int shift) { return static_cast<Bound>(value >> shift); }
Bound shifted(const Int2304& value, int shift) {
  const auto limb = static_cast<std::size_t>(shift) / 64;
  const int bit = shift % 64;
  std::uint64_t word = value.limbs[limb] >> bit;
  if (bit != 0 && limb + 1 < value.limbs.size()) word |= value.limbs[limb + 1] << (64 - bit);
  return static_cast<Bound>(word);
}

}  // namespace

template <class Value>
PairTrees<Value>::PairTrees(const Forest<Value>& forest, std::vector<Feature> sensitive,
                            bool with_levels, std::size_t max_leaves)
    : forest_(&forest), sensitive_(std::move(sensitive)) {
  max_leaves = std::min(max_leaves, kMaxLeaves);
  std::vector<std::uint8_t> tested(forest.axes.size());
  std::vector<std::uint8_t> differs;
  for (const NodeIndex root : forest.roots) {
    const std::vector<NodeIndex> nodes = nodes_below(forest, root);
    const bool own = std::any_of(nodes.begin(), nodes.end(), [&](NodeIndex node) {
      return std::find(sensitive_.begin(), sensitive_.end(), forest.test(node).feature) !=
             sensitive_.end();
    });
    if (!own && !with_levels) continue;
    roots_.push_back(root);
    differs.push_back(own);
    for (const NodeIndex node : nodes) {
      if (!forest.is_leaf(node)) tested[static_cast<std::size_t>(forest.test(node).feature)] = 1;
    }
  }
  common_of_.assign(forest.axes.size(), kNone);
  for (Feature f = 0; static_cast<std::size_t>(f) < forest.axes.size(); ++f) {
    const bool is_sensitive =
        std::find(sensitive_.begin(), sensitive_.end(), f) != sensitive_.end();
    if (tested[static_cast<std::size_t>(f)] == 0 || is_sensitive) continue;
    common_of_[static_cast<std::size_t>(f)] = variables_.size();
    variables_.push_back({f, Role::kCommon, forest.axis(f).n_cells});
  }
  n_common_ = variables_.size();
  for (const Feature f : sensitive_) {
    variables_.push_back({f, Role::kStart, forest.axis(f).n_cells});
    variables_.push_back({f, Role::kTarget, forest.axis(f).n_cells});
  }
  for (std::size_t i = 0; i < roots_.size(); ++i) {
    add_factors(roots_[i], differs[i] != 0, with_levels, max_leaves);
  }
  round_values();
}

template <class Value>
void PairTrees<Value>::add_factors(NodeIndex root, bool tests_sensitive, bool with_levels,
                                   std::size_t max_leaves) {
  const CutTree tree(*forest_, root, sensitive_);
  // The variables that the factors of this tree may have, and their segments.
  std::vector<std::size_t> start, target;
  std::vector<Segments> segments;
  for (std::size_t i = 0; i < tree.features.size(); ++i) {
    const auto own = std::find(sensitive_.begin(), sensitive_.end(), tree.features[i]);
    const auto add = [&](std::size_t variable) {
      segments.push_back(tree.segments[i]);
      segments.back().variable = variable;
      return segments.size() - 1;
    };
    if (own == sensitive_.end()) {
      start.push_back(add(common_of_[static_cast<std::size_t>(tree.features[i])]));
      target.push_back(start.back());
    } else {
      const auto number = static_cast<std::size_t>(own - sensitive_.begin());
      start.push_back(add(start_of(number)));
      target.push_back(add(target_of(number)));
    }
  }
  using Lister = LeafLister<Value>;
  const auto make = [&](std::size_t sum, const Lister& leaves) {
    const std::size_t n = leaves.values.size(), width = leaves.n_words();
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return leaves.values[b] < leaves.values[a];
    });
    Factor<Value> factor;
    factor.sum = sum;
    for (const std::size_t leaf : order) factor.exact.push_back(leaves.values[leaf]);
    for (std::size_t v = 0; v < segments.size(); ++v) {
      const Words all = all_of(segments[v].size());
      const std::uint64_t* held = leaves.held.data() + leaves.offset(v);
      const bool is_tested = std::any_of(order.begin(), order.end(), [&](std::size_t leaf) {
        return !std::equal(all.begin(), all.end(), held + leaf * width);
      });
      if (!is_tested) continue;
      factor.segments.push_back(segments[v]);
      factor.segments.back().first_column = factor.columns.size() / n;
      for (std::size_t w = 0; w < all.size(); ++w) {
        for (const std::size_t leaf : order) factor.columns.push_back(held[leaf * width + w]);
      }
    }
    factors_.push_back(std::move(factor));
  };
  const auto lister = [&](std::size_t most) {
    return Lister(*forest_, tree, start, target, segments, most);
  };
  const auto single = [&](std::size_t sum, bool is_target) {
    Lister leaves = lister(kMaxLeaves);
    if (!leaves.list_one(is_target)) {
      throw std::length_error("a tree has more than 65,536 leaves; ask about a smaller model");
    }
    make(sum, leaves);
  };
  if (tests_sensitive) {
    Lister leaves = lister(max_leaves);
    if (leaves.list_differences()) {
      make(kDifferenceSum, leaves);
    } else {
      single(kDifferenceSum, true);
      single(kDifferenceSum, false);
    }
  }
  if (with_levels) {
    single(kTargetSum, true);
    single(kStartSum, false);
  }
}

template <class Value>
void PairTrees<Value>::round_values() {
  if constexpr (!std::is_same_v<Value, std::int64_t>) {
    Value total{};
    for (const Factor<Value>& factor : factors_) {
      const Value& first = factor.exact.front();
      const Value last = Value{} - factor.exact.back();
      const Value& largest = first < last ? last : first;
      if (Value{} < largest) total += largest;
    }
    shift_ = std::max(0, ValueTraits<Value>::bit_width(total) - kBoundBits);
  }
  for (Factor<Value>& factor : factors_) {
    for (const Value& value : factor.exact) factor.values.push_back(rounded_up(value, shift_));
    if (shift_ == 0) release(factor.exact);
  }
}

template <class Value>
Bound PairTrees<Value>::rounded_down(const Value& value) const {
  return shifted(value, shift_);
}

template <class Value>
std::size_t PairTrees<Value>::max_leaves(std::size_t n_trees) {
  return std::max(kLeastLeaves, kMaxPairLeaves / std::max<std::size_t>(1, n_trees));
}

template <class Value>
std::size_t PairTrees<Value>::bytes() const {
  std::size_t total = 0;
  for (const Factor<Value>& factor : factors_) {
    total += held_bytes(factor.values) + held_bytes(factor.exact) + held_bytes(factor.columns);
    for (const Segments& s : factor.segments) total += held_bytes(s.starts) + held_bytes(s.of_cell);
  }
  return total;
}

template class PairTrees<std::int64_t>;
template class PairTrees<Int128>;
template class PairTrees<Int2304>;

}  // namespace xcount

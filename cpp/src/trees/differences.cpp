#include "xcount/trees/differences.hpp"

#include <algorithm>

#include "xcount/support/assert.hpp"

namespace xcount {

template <class Value>
DifferenceBuilder<Value>::DifferenceBuilder(const Forest<Value>& forest, const MaskSpace& masks)
    : forest_(forest),
      masks_(masks),
      below_(forest.n_nodes()),
      sensitive_(forest.axes.size()),
      sensitive_nodes_(forest.roots.size()),
      domains_(forest.axes.size()),
      cells_a_(forest.axes.size()),
      cells_b_(forest.axes.size()) {
  for (const Feature feature : masks.sensitive()) {
    sensitive_[static_cast<std::size_t>(feature)] = 1;
  }
  for (std::size_t i = forest.n_nodes(); i-- > 0;) {
    const Feature feature = forest.tests[i].feature;
    if (feature == kLeaf) continue;
    below_[i] = sensitive_[static_cast<std::size_t>(feature)] |
                below_[static_cast<std::size_t>(forest.left[i])] |
                below_[static_cast<std::size_t>(forest.right[i])];
  }
  std::vector<std::uint32_t> depth(forest.n_nodes());
  for (std::size_t i = 0; i < forest.n_nodes(); ++i) {
    if (forest.tests[i].feature == kLeaf) continue;
    depth[static_cast<std::size_t>(forest.left[i])] = depth[i] + 1;
    depth[static_cast<std::size_t>(forest.right[i])] = depth[i] + 1;
    is_too_deep_ = is_too_deep_ || depth[i] >= kMaxDepth;
  }
  for (std::size_t tree = 0; tree < forest.roots.size(); ++tree) {
    std::vector<NodeIndex> open{forest.roots[tree]};
    while (!open.empty()) {
      const NodeIndex node = open.back();
      open.pop_back();
      if (below_[static_cast<std::size_t>(node)] == 0) continue;
      const Feature feature = forest.test(node).feature;
      if (sensitive_[static_cast<std::size_t>(feature)] != 0) {
        sensitive_nodes_[tree].push_back(node);
      }
      open.push_back(forest.left[static_cast<std::size_t>(node)]);
      open.push_back(forest.right[static_cast<std::size_t>(node)]);
    }
  }
  for (std::size_t f = 0; f < domains_.size(); ++f) domains_[f] = full(static_cast<Feature>(f));
}

template <class Value>
void DifferenceBuilder<Value>::build(MaskIndex a, MaskIndex b, ResidualStore<Value>& store,
                                     std::vector<ResidualId>& roots, Value& offset,
                                     const Check& check) {
  XCOUNT_ASSERT(&store.forest() == &forest_);
  masks_.write_cells(a, cells_a_);
  masks_.write_cells(b, cells_b_);
  for (std::size_t tree = 0; tree < forest_.roots.size(); ++tree) {
    if (!separated(tree)) continue;
    const ResidualId root = walk(forest_.roots[tree], forest_.roots[tree], store, check);
    if (store.is_leaf(root)) {
      offset += store[root].min;
    } else {
      roots.push_back(root);
    }
  }
}

template <class Value>
bool DifferenceBuilder<Value>::may_exceed(MaskIndex a, MaskIndex b, const Gap<Value>& gap,
                                          ResidualStore<Value>& store, const Check& check) {
  std::vector<ResidualId> roots;
  Value min{};
  build(a, b, store, roots, min, check);
  Value max = min;
  for (const ResidualId root : roots) {
    min += store[root].min;
    max += store[root].max;
  }
  return gap.may_exceed(min, max);
}

template <class Value>
bool DifferenceBuilder<Value>::separated(std::size_t tree) const {
  return std::any_of(
      sensitive_nodes_[tree].begin(), sensitive_nodes_[tree].end(), [&](NodeIndex node) {
        const Test& test = forest_.test(node);
        const auto f = static_cast<std::size_t>(test.feature);
        return forest_.goes_left(test, cells_a_[f]) != forest_.goes_left(test, cells_b_[f]);
      });
}

// Follows the tests that the mask or the path decides.
template <class Value>
NodeIndex DifferenceBuilder<Value>::descend(NodeIndex node, const std::vector<Cell>& mask) const {
  while (!forest_.is_leaf(node)) {
    const Test& test = forest_.test(node);
    const auto f = static_cast<std::size_t>(test.feature);
    if (sensitive_[f] != 0) {
      node = forest_.child(node, mask[f]);
      continue;
    }
    const Side decided = side(test);
    if (decided == Side::kBoth) return node;
    const auto i = static_cast<std::size_t>(node);
    node = decided == Side::kLeft ? forest_.left[i] : forest_.right[i];
  }
  return node;
}

// The child of a node that asks the test; any other node is left to `descend`.
template <class Value>
NodeIndex DifferenceBuilder<Value>::step(NodeIndex node, const Test& test, bool left) const {
  if (!(forest_.test(node) == test)) return node;
  const auto i = static_cast<std::size_t>(node);
  return left ? forest_.left[i] : forest_.right[i];
}

template <class Value>
ResidualId DifferenceBuilder<Value>::walk(NodeIndex a, NodeIndex b, ResidualStore<Value>& store,
                                          const Check& check) {
  if (++n_walks_ % kWalksPerCheck == 0) check();
  a = descend(a, cells_a_);
  b = descend(b, cells_b_);
  if (a == b && below_[static_cast<std::size_t>(a)] == 0) return store.leaf(Value{});
  const bool a_is_leaf = forest_.is_leaf(a);
  if (a_is_leaf && forest_.is_leaf(b)) return store.leaf(forest_.value(a) - forest_.value(b));
  const Test test = forest_.test(a_is_leaf ? b : a);
  const Restoring saved(domain(test.feature));
  XCOUNT_ASSERT(sensitive_[static_cast<std::size_t>(test.feature)] == 0);
  saved.domain = restricted(test, true);
  XCOUNT_ASSERT(!is_empty(test.feature));
  const ResidualId low = walk(step(a, test, true), step(b, test, true), store, check);
  saved.domain = saved.before;
  saved.domain = restricted(test, false);
  XCOUNT_ASSERT(!is_empty(test.feature));
  const ResidualId high = walk(step(a, test, false), step(b, test, false), store, check);
  return store.node(test, low, high);
}

template <class Value>
typename DifferenceBuilder<Value>::Domain DifferenceBuilder<Value>::full(Feature feature) const {
  const Axis& axis = forest_.axis(feature);
  Domain result;
  if (is_short(feature)) result.allowed = ~std::uint64_t{0} >> (64 - axis.n_cells);
  result.missing = axis.missing_cell >= 0;
  result.end = result.missing ? axis.missing_cell : axis.n_cells;
  return result;
}

template <class Value>
std::uint64_t DifferenceBuilder<Value>::left_bits(const Test& test) const {
  XCOUNT_ASSERT(is_short(test.feature));
  const Axis& axis = forest_.axis(test.feature);
  std::uint64_t bits = 0;
  if (test.cut >= 0) {
    bits = test.cut >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << test.cut) - 1;
    if (test.missing_left && axis.missing_cell >= 0) bits |= std::uint64_t{1} << axis.missing_cell;
    return bits;
  }
  for (Cell cell = 0; cell < axis.n_cells; ++cell) {
    if (forest_.goes_left(test, cell)) bits |= std::uint64_t{1} << cell;
  }
  return bits;
}

template <class Value>
typename DifferenceBuilder<Value>::Side DifferenceBuilder<Value>::side(const Test& test) const {
  const Domain& d = domain(test.feature);
  if (is_short(test.feature)) {
    const std::uint64_t left = d.allowed & left_bits(test);
    if (left == d.allowed) return Side::kLeft;
    return left == 0 ? Side::kRight : Side::kBoth;
  }
  if (test.cut < 0) return Side::kBoth;  // a set test on a long axis: left to the elimination
  const bool some_left = d.begin < std::min(d.end, test.cut) || (d.missing && test.missing_left);
  const bool some_right = std::max(d.begin, test.cut) < d.end || (d.missing && !test.missing_left);
  if (some_left && some_right) return Side::kBoth;
  return some_left ? Side::kLeft : Side::kRight;
}

template <class Value>
typename DifferenceBuilder<Value>::Domain DifferenceBuilder<Value>::restricted(const Test& test,
                                                                               bool left) const {
  Domain d = domain(test.feature);
  if (is_short(test.feature)) {
    const std::uint64_t bits = left_bits(test);
    d.allowed &= left ? bits : ~bits;
    return d;
  }
  if (test.cut < 0) return d;
  if (left) {
    d.end = std::min(d.end, test.cut);
  } else {
    d.begin = std::max(d.begin, test.cut);
  }
  d.missing = d.missing && test.missing_left == left;
  return d;
}

template class DifferenceBuilder<std::int64_t>;
template class DifferenceBuilder<Int128>;
template class DifferenceBuilder<Int2304>;

}  // namespace xcount

#include "xcount/diagrams/add.hpp"

#include <algorithm>

namespace xcount {

template <class Value>
Adds<Value>::Adds(std::span<const std::uint32_t> group_sizes, DiagramLimits limits)
    : Diagrams(group_sizes, limits) {
  // The Boolean terminals are the numbers 0 and 1.
  for (const NodeId node : {kFalse, kTrue}) {
    values_.push_back(Value(static_cast<std::int64_t>(node)));
    terminals_.emplace(values_.back(), node);
  }
}

template <class Value>
Ref Adds<Value>::terminal(const Value& value) {
  return run([&] { return terminal_node(value); });
}

template <class Value>
NodeId Adds<Value>::terminal_node(const Value& value) {
  if (const auto found = terminals_.find(value); found != terminals_.end()) return found->second;
  std::uint32_t index = static_cast<std::uint32_t>(values_.size());
  const bool reuse = !free_values_.empty();
  if (reuse) index = free_values_.back();
  const NodeId node = new_terminal(index);  // may throw: nothing is changed before
  if (reuse) {
    free_values_.pop_back();
    values_[index] = value;
  } else {
    values_.push_back(value);
  }
  terminals_.emplace(value, node);
  return node;
}

template <class Value>
void Adds<Value>::forget_terminal(std::uint32_t value_index) {
  terminals_.erase(values_[value_index]);
  free_values_.push_back(value_index);
}

template <class Value>
std::size_t Adds<Value>::terminal_bytes() const {
  // A node of unordered_map holds a pointer, a hash, the key and the value; a bucket is a pointer.
  constexpr std::size_t per_entry = sizeof(Value) + 4 * sizeof(void*);
  return terminals_.size() * per_entry + values_.capacity() * sizeof(Value);
}

template <class Value>
Ref Adds<Value>::arithmetic(AddOp op, const Ref& f, const Ref& g, bool monotone) {
  check_ours(f);
  check_ours(g);
  return run([&] { return arithmetic_nodes(op, f.node(), g.node(), monotone); });
}

template <class Value>
bool Adds<Value>::is_simple(AddOp op, NodeId f, NodeId g, NodeId& result) const {
  if (op == AddOp::kPlus && (f == kFalse || g == kFalse)) {
    result = f == kFalse ? g : f;
    return true;
  }
  if (op == AddOp::kMinus && (g == kFalse || f == g)) {
    result = f == g ? kFalse : f;
    return true;
  }
  if ((op == AddOp::kMax || op == AddOp::kMin) && f == g) {
    result = f;
    return true;
  }
  return false;
}

template <class Value>
NodeId Adds<Value>::arithmetic_nodes(AddOp op, NodeId f, NodeId g, bool monotone) {
  NodeId result = 0;
  if (op != AddOp::kMinus && g < f) std::swap(f, g);
  if (is_simple(op, f, g, result)) return result;
  if (is_terminal(f) && is_terminal(g)) {
    const Value a = value(f), b = value(g);
    if (op == AddOp::kPlus) return terminal_node(a + b);
    if (op == AddOp::kMinus) return terminal_node(a - b);
    return (a < b) == (op == AddOp::kMax) ? g : f;
  }
  const std::uint32_t code =
      kArithmeticCode + 2 * static_cast<std::uint32_t>(op) + (monotone ? 1 : 0);
  if (lookup(code, f, g, result)) return result;
  step();
  const Level at = std::min(level(f), level(g));
  const Cofactors fs = monotone ? monotone_cofactors(f, at) : cofactors(f, at);
  const Cofactors gs = monotone ? monotone_cofactors(g, at) : cofactors(g, at);
  const bool in_order = op == AddOp::kMinus || fs.high <= gs.high;
  expect_lookup(code, in_order ? fs.high : gs.high, in_order ? gs.high : fs.high);
  const NodeId low_result = arithmetic_nodes(op, fs.low, gs.low, monotone);
  const NodeId high_result = arithmetic_nodes(op, fs.high, gs.high, monotone);
  result =
      monotone ? make_monotone(at, low_result, high_result) : make(at, low_result, high_result);
  remember(code, f, g, result);
  return result;
}

template <class Value>
Ref Adds<Value>::exceeds(const Ref& f, const Value& bound) {
  check_ours(f);
  return run([&] { return exceeds_nodes(fresh_code(), f.node(), bound); });
}

template <class Value>
NodeId Adds<Value>::exceeds_nodes(std::uint32_t code, NodeId f, const Value& bound) {
  if (is_terminal(f)) return value(f) > bound || value(f) < -bound ? kTrue : kFalse;
  NodeId result = 0;
  if (lookup(code, f, 0, result)) return result;
  step();
  const NodeId low_result = exceeds_nodes(code, low(f), bound);
  const NodeId high_result = exceeds_nodes(code, high(f), bound);
  result = make(level(f), low_result, high_result);
  remember(code, f, 0, result);
  return result;
}

template <class Value>
Ref Adds<Value>::encode(const Forest<Value>& forest, std::size_t tree, std::span<const Cell> cells,
                        const GuardLayout& layout, bool only_fixed) {
  const std::size_t n_features = forest.axes.size();
  if (tree >= forest.roots.size()) throw std::invalid_argument("no such tree");
  if (cells.size() != n_features || layout.first_level.size() != n_features) {
    throw std::invalid_argument("one cell and one first guard per feature needed");
  }
  for (std::size_t f = 0; f < n_features; ++f) {
    const Cell n_cells = forest.axes[f].n_cells;
    const bool fits = layout.first_level[f] + static_cast<Level>(n_cells) - 1 <= n_variables();
    if (cells[f] >= n_cells || (cells[f] < 0 && !fits)) {
      throw std::invalid_argument("a feature's cell or guards are out of range");
    }
  }
  return run([&] { return encode_node(forest, forest.roots[tree], cells, layout, !only_fixed); });
}

template <class Value>
NodeId Adds<Value>::encode_node(const Forest<Value>& forest, NodeIndex node,
                                std::span<const Cell> cells, const GuardLayout& layout,
                                bool with_values) {
  if (forest.is_leaf(node)) return terminal_node(with_values ? forest.value(node) : Value{});
  const Test& test = forest.test(node);
  const auto feature = static_cast<std::size_t>(test.feature);
  if (cells[feature] >= 0) {
    return encode_node(forest, forest.child(node, cells[feature]), cells, layout, true);
  }
  const auto i = static_cast<std::size_t>(node);
  const NodeId left = encode_node(forest, forest.left[i], cells, layout, with_values);
  const NodeId right = encode_node(forest, forest.right[i], cells, layout, with_values);
  return encode_test(forest, test, left, right, layout.first_level[feature]);
}

template <class Value>
NodeId Adds<Value>::encode_test(const Forest<Value>& forest, const Test& test, NodeId left,
                                NodeId right, Level first_level) {
  // Bit i says cell <= i. Read from the last cell down, a bit is needed where the side changes: a
  // plain threshold needs only its own guard, a set of cells one bit per change.
  const Cell n_cells = forest.axis(test.feature).n_cells;
  bool side = forest.goes_left(test, n_cells - 1);
  NodeId result = side ? left : right;
  for (Cell cell = n_cells - 1; cell-- > 0;) {
    if (forest.goes_left(test, cell) == side) continue;
    side = !side;
    const NodeId guard = make(first_level + static_cast<Level>(cell), kFalse, kTrue);
    result = ite_nodes(guard, side ? left : right, result);
  }
  return result;
}

template class Adds<std::int64_t>;
template class Adds<Int128>;
template class Adds<Int2304>;

}  // namespace xcount

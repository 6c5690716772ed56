// Algebraic decision diagrams: terminals are integers of one value type, added without rounding.
#pragma once

#include <unordered_map>

#include "xcount/diagrams/bdd.hpp"
#include "xcount/support/value.hpp"
#include "xcount/trees/forest.hpp"

namespace xcount {

enum class AddOp : std::uint32_t { kPlus, kMinus, kMax, kMin };

// Where the guards of a forest's features are: bit i of feature f is variable first_level[f] + i.
struct GuardLayout {
  std::vector<Level> first_level;
};

template <class Value>
class Adds final : public Diagrams {
 public:
  Adds(std::span<const std::uint32_t> group_sizes, DiagramLimits limits);

  [[nodiscard]] Ref terminal(const Value& value);
  [[nodiscard]] const Value& value(NodeId node) const { return values_[nodes_[node].low]; }

  // Pointwise arithmetic. With monotone set, the result is right at monotone points only, and the
  // smallest such diagram when f and g are.
  [[nodiscard]] Ref arithmetic(AddOp op, const Ref& f, const Ref& g, bool monotone);
  // The BDD of |f| > bound.
  [[nodiscard]] Ref exceeds(const Ref& f, const Value& bound);
  // The diagram of a tree, with PruneTree folded in: cells[f] fixes the cell of feature f, negative
  // leaves it open. With only_fixed set, a branch that tests no fixed feature is 0.
  [[nodiscard]] Ref encode(const Forest<Value>& forest, std::size_t tree,
                           std::span<const Cell> cells, const GuardLayout& layout,
                           bool only_fixed = false);

 private:
  struct ValueHash {
    std::size_t operator()(const Value& value) const {
      return ValueTraits<Value>::hash(value) * 0x9E3779B97F4A7C15ULL;
    }
  };

  NodeId terminal_node(const Value& value);
  NodeId arithmetic_nodes(AddOp op, NodeId f, NodeId g, bool monotone);
  [[nodiscard]] bool is_simple(AddOp op, NodeId f, NodeId g, NodeId& result) const;
  NodeId exceeds_nodes(std::uint32_t code, NodeId f, const Value& bound);
  NodeId encode_node(const Forest<Value>& forest, NodeIndex node, std::span<const Cell> cells,
                     const GuardLayout& layout, bool with_values);
  NodeId encode_test(const Forest<Value>& forest, const Test& test, NodeId left, NodeId right,
                     Level first_level);
  void forget_terminal(std::uint32_t value_index) override;
  [[nodiscard]] std::size_t terminal_bytes() const override;

  std::vector<Value> values_;
  std::vector<std::uint32_t> free_values_;
  std::unordered_map<Value, NodeId, ValueHash> terminals_;
};

extern template class Adds<std::int64_t>;
extern template class Adds<Int128>;
extern template class Adds<Int2304>;

}  // namespace xcount

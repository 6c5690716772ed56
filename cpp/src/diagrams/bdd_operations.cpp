// Boolean operations, quantification, renaming. Every recursion has the same shape: terminal cases,
// computed table, cofactors, reduce, remember.
#include <algorithm>

#include "xcount/diagrams/bdd.hpp"

namespace xcount {

Ref Diagrams::variable(Level level) {
  if (level >= n_variables()) throw std::invalid_argument("no such variable");
  return run([&] { return make(level, kFalse, kTrue); });
}

Ref Diagrams::apply(BoolOp op, const Ref& f, const Ref& g) {
  check_bdd(f);
  check_bdd(g);
  return run([&] { return apply_nodes(op, f.node(), g.node()); });
}

NodeId Diagrams::apply_nodes(BoolOp op, NodeId f, NodeId g) {
  if (g < f) std::swap(f, g);  // all three commute
  if (f == g) return op == BoolOp::kXor ? kFalse : f;
  if (f == kFalse) return op == BoolOp::kAnd ? kFalse : g;
  if (f == kTrue && op != BoolOp::kXor) return op == BoolOp::kAnd ? g : kTrue;
  const std::uint32_t code = 1 + static_cast<std::uint32_t>(op);
  NodeId result = 0;
  if (lookup(code, f, g, result)) return result;
  step();
  const Level at = std::min(level(f), level(g));
  const Cofactors fs = cofactors(f, at), gs = cofactors(g, at);
  const NodeId low = apply_nodes(op, fs.low, gs.low);
  const NodeId high = apply_nodes(op, fs.high, gs.high);
  result = make(at, low, high);
  remember(code, f, g, result);
  return result;
}

Ref Diagrams::ite(const Ref& f, const Ref& g, const Ref& h) {
  check_bdd(f);
  check_ours(g);
  check_ours(h);
  return run([&] { return ite_nodes(f.node(), g.node(), h.node()); });
}

NodeId Diagrams::ite_nodes(NodeId f, NodeId g, NodeId h) {
  if (f == kTrue || g == h) return g;
  if (f == kFalse) return h;
  NodeId result = 0;
  if (lookup(kIteCode | f, g, h, result)) return result;
  step();
  const Level at = std::min({level(f), level(g), level(h)});
  const Cofactors fs = cofactors(f, at), gs = cofactors(g, at), hs = cofactors(h, at);
  const NodeId low = ite_nodes(fs.low, gs.low, hs.low);
  const NodeId high = ite_nodes(fs.high, gs.high, hs.high);
  result = make(at, low, high);
  remember(kIteCode | f, g, h, result);
  return result;
}

Ref Diagrams::restrict_to(const Ref& f, std::span<const std::int8_t> values) {
  check_ours(f);
  if (values.size() != n_variables()) throw std::invalid_argument("one value per variable needed");
  return run([&] { return restrict_nodes(fresh_code(), f.node(), values); });
}

NodeId Diagrams::restrict_nodes(std::uint32_t code, NodeId f, std::span<const std::int8_t> values) {
  if (is_terminal(f)) return f;
  const Level at = level(f);
  if (values[at] >= 0) return restrict_nodes(code, values[at] != 0 ? high(f) : low(f), values);
  NodeId result = 0;
  if (lookup(code, f, 0, result)) return result;
  step();
  const NodeId low_result = restrict_nodes(code, low(f), values);
  const NodeId high_result = restrict_nodes(code, high(f), values);
  result = make(at, low_result, high_result);
  remember(code, f, 0, result);
  return result;
}

Ref Diagrams::exists(const Ref& f, std::span<const std::uint8_t> marked) {
  check_bdd(f);
  if (marked.size() != n_variables()) throw std::invalid_argument("one mark per variable needed");
  return run([&] { return exists_nodes(fresh_code(), f.node(), marked); });
}

NodeId Diagrams::exists_nodes(std::uint32_t code, NodeId f, std::span<const std::uint8_t> marked) {
  if (is_terminal(f)) return f;
  NodeId result = 0;
  if (lookup(code, f, 0, result)) return result;
  step();
  const Level at = level(f);
  const NodeId low_result = exists_nodes(code, low(f), marked);
  if (marked[at] != 0 && low_result == kTrue) {
    result = kTrue;
  } else {
    const NodeId high_result = exists_nodes(code, high(f), marked);
    result = marked[at] != 0 ? apply_nodes(BoolOp::kOr, low_result, high_result)
                             : make(at, low_result, high_result);
  }
  remember(code, f, 0, result);
  return result;
}

Ref Diagrams::permute(const Ref& f, std::span<const Level> target) {
  check_ours(f);
  if (target.size() != n_variables()) throw std::invalid_argument("one target per variable needed");
  for (const Level to : target) {
    if (to >= n_variables()) throw std::invalid_argument("no such variable to rename to");
  }
  return run([&] { return permute_nodes(fresh_code(), f.node(), target); });
}

NodeId Diagrams::permute_nodes(std::uint32_t code, NodeId f, std::span<const Level> target) {
  if (is_terminal(f)) return f;
  NodeId result = 0;
  if (lookup(code, f, 0, result)) return result;
  step();
  const Level to = target[level(f)];
  const NodeId low_result = permute_nodes(code, low(f), target);
  const NodeId high_result = permute_nodes(code, high(f), target);
  if (to < level(low_result) && to < level(high_result)) {
    result = make(to, low_result, high_result);
  } else {  // the order changes: let ite put the variable where it belongs
    result = ite_nodes(make(to, kFalse, kTrue), high_result, low_result);
  }
  remember(code, f, 0, result);
  return result;
}

Ref Diagrams::simplify(const Ref& f) {
  check_ours(f);
  return run([&] { return simplify_nodes(f.node()); });
}

NodeId Diagrams::simplify_nodes(NodeId f) {
  if (is_terminal(f)) return f;
  NodeId result = 0;
  if (lookup(kSimplifyCode, f, 0, result)) return result;
  step();
  const Level at = level(f);
  const NodeId low_result = simplify_nodes(low(f));
  const NodeId high_result = simplify_nodes(implied(high(f), group_of_[at]));
  result = make_monotone(at, low_result, high_result);
  remember(kSimplifyCode, f, 0, result);
  return result;
}

Ref Diagrams::monotone(std::span<const std::uint32_t> groups) {
  std::vector<std::uint32_t> sorted(groups.begin(), groups.end());
  std::sort(sorted.begin(), sorted.end());
  if (!sorted.empty() && sorted.back() + 1 >= first_level_.size()) {
    throw std::invalid_argument("no such group of variables");
  }
  return run([&] {
    NodeId rest = kTrue;
    for (std::size_t i = sorted.size(); i-- > 0;) {
      NodeId all_ones = rest, monotone_rest = rest;
      for (Level at = first_level_[sorted[i] + 1]; at-- > first_level_[sorted[i]];) {
        monotone_rest = make(at, monotone_rest, all_ones);
        all_ones = make(at, kFalse, all_ones);
      }
      rest = monotone_rest;
    }
    return rest;
  });
}

}  // namespace xcount

// The unique table, the computed table, garbage collection and limits.
#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>

#include "xcount/diagrams/bdd.hpp"
#include "xcount/support/assert.hpp"

namespace xcount {

namespace {

constexpr std::size_t kFirstNodes = std::size_t{1} << 10;
constexpr std::size_t kMaxComputed = std::size_t{1} << 24;
constexpr std::uint64_t kMaxLevels = 32768;

}  // namespace

Diagrams::Diagrams(std::span<const std::uint32_t> group_sizes, DiagramLimits limits)
    : limits_(limits) {
  // Operations recur once for each level.
  if (std::accumulate(group_sizes.begin(), group_sizes.end(), std::uint64_t{0}) > kMaxLevels) {
    throw std::length_error("too many guards for decision diagrams; use --method auto or exact");
  }
  first_level_.push_back(0);
  for (std::uint32_t group = 0; group < group_sizes.size(); ++group) {
    group_of_.insert(group_of_.end(), group_sizes[group], group);
    first_level_.push_back(static_cast<std::uint32_t>(group_of_.size()));
  }
  unique_.resize(2 * kFirstNodes);
  computed_.resize(kFirstNodes);
  nodes_.reserve(kFirstNodes);
  for (const NodeId terminal : {kFalse, kTrue}) {
    nodes_.push_back({kTerminalLevel, terminal, terminal});
    retain(terminal);
  }
}

std::size_t Diagrams::n_bytes() const {
  return nodes_.capacity() * sizeof(Node) + unique_.size() * sizeof(Slot) +
         computed_.size() * sizeof(Computed) + terminal_bytes();
}

bool Diagrams::has_room_for(std::size_t bytes) const {
  return n_bytes() + bytes <= limits_.max_bytes;
}

void Diagrams::check_room_for(std::size_t bytes) const {
  if (!has_room_for(bytes)) {
    throw DiagramLimit(DiagramLimit::Kind::kMemory, "the memory limit of diagrams was reached");
  }
}

void Diagrams::checkpoint() {
  if (limits_.deadline && std::chrono::steady_clock::now() >= *limits_.deadline) {
    throw DiagramLimit(DiagramLimit::Kind::kTime, "the time limit was reached");
  }
  if (checkpoint_) checkpoint_();
}

void Diagrams::check_ours(const Ref& f) const {
  if (f.table() != this) throw std::invalid_argument("a diagram belongs to another table");
}

void Diagrams::check_bdd(const Ref& f) const {
  check_ours(f);
  for (const NodeId node : reachable(f.node())) {
    if (is_terminal(node) && node > kTrue) {
      throw std::invalid_argument("a Boolean operation was asked of a diagram with other values");
    }
  }
}

NodeId Diagrams::make(Level level, NodeId low, NodeId high) {
  if (low == high) return low;
  XCOUNT_ASSERT(level < nodes_[low].level && level < nodes_[high].level);
  XCOUNT_ASSERT(level < group_of_.size());
  const std::uint64_t hashed = hash({level, low, high});
  const auto tag = static_cast<std::uint32_t>(hashed >> 32);
  const std::size_t mask = unique_.size() - 1;
  for (std::size_t at = hashed & mask; unique_[at].node != 0; at = (at + 1) & mask) {
    if (unique_[at].tag != tag) continue;
    const Node& n = nodes_[unique_[at].node];
    if (n.level == level && n.low == low && n.high == high) return unique_[at].node;
  }
  if (3 * (n_unique_ + 1) > 2 * unique_.size()) grow_unique();
  const NodeId node = allocate();
  nodes_[node] = {level, low, high};
  place(node);
  return node;
}

void Diagrams::place(NodeId node) {
  XCOUNT_ASSERT(nodes_[node].level < kTerminalLevel && n_unique_ < unique_.size());
  const std::uint64_t hashed = hash(nodes_[node]);
  const std::size_t mask = unique_.size() - 1;
  std::size_t at = hashed & mask;
  while (unique_[at].node != 0) at = (at + 1) & mask;
  unique_[at] = {node, static_cast<std::uint32_t>(hashed >> 32)};
  ++n_unique_;
}

NodeId Diagrams::make_monotone(Level level, NodeId low, NodeId high) {
  XCOUNT_ASSERT(level < nodes_[low].level && level < nodes_[high].level);
  // Where this bit is 1 the next one of its group is 1 too: if that one already leads to `high`,
  // this test is redundant.
  const Level below = nodes_[low].level;
  if (below < kTerminalLevel && group_of_[below] == group_of_[level] && nodes_[low].high == high) {
    return low;
  }
  return make(level, low, high);
}

NodeId Diagrams::new_terminal(std::uint32_t value_index) {
  const NodeId node = allocate();
  nodes_[node] = {kTerminalLevel, value_index, value_index};
  return node;
}

NodeId Diagrams::allocate() {
  if (n_free_ == 0) {
    if (nodes_.size() >= limits_.max_nodes) {
      throw DiagramLimit(DiagramLimit::Kind::kNodes, "the limit of diagram nodes was reached");
    }
    if (nodes_.size() == nodes_.capacity()) grow_nodes();
    nodes_.push_back({kFreeLevel, 0, 0});
    peak_nodes_ = std::max(peak_nodes_, nodes_.size());
    return static_cast<NodeId>(nodes_.size() - 1);
  }
  const NodeId node = free_head_;
  XCOUNT_ASSERT(node < nodes_.size() && nodes_[node].level == kFreeLevel);
  free_head_ = nodes_[node].low;
  --n_free_;
  peak_nodes_ = std::max(peak_nodes_, n_nodes());
  return node;
}

void Diagrams::grow_nodes() {
  const std::size_t capacity = nodes_.capacity() + nodes_.capacity() / 2;
  // While a vector grows, the old and the new array exist side by side.
  check_room_for(capacity * sizeof(Node));
  nodes_.reserve(capacity);
  const bool is_small = capacity > computed_.size() && computed_.size() < kMaxComputed;
  if (is_small && has_room_for(2 * computed_.size() * sizeof(Computed))) grow_computed();
}

void Diagrams::grow_unique() {
  check_room_for(2 * unique_.size() * sizeof(Slot));
  std::vector<Slot>(2 * unique_.size()).swap(unique_);
  n_unique_ = 0;
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].level < kTerminalLevel) place(node);
  }
}

void Diagrams::grow_computed() {
  std::vector<Computed> old(computed_.size() * 2);
  old.swap(computed_);
  for (const Computed& entry : old) {
    if (entry.code != 0) computed_[slot(entry.code, entry.f, entry.g)] = entry;
  }
}

std::uint32_t Diagrams::fresh_code() {
  if (next_code_ == kIteCode) {
    std::fill(computed_.begin(), computed_.end(), Computed{});
    next_code_ = kFirstFreshCode;
  }
  return next_code_++;
}

std::vector<bool> Diagrams::marked_nodes() const {
  std::vector<bool> marked(nodes_.size(), false);
  std::vector<NodeId> todo;
  for (const auto& [node, n] : references_) todo.push_back(node);
  while (!todo.empty()) {
    const NodeId node = todo.back();
    todo.pop_back();
    if (marked[node]) continue;
    XCOUNT_ASSERT(nodes_[node].level != kFreeLevel);
    marked[node] = true;
    if (is_terminal(node)) continue;
    todo.push_back(nodes_[node].low);
    todo.push_back(nodes_[node].high);
  }
  return marked;
}

void Diagrams::collect_garbage() {
  const std::vector<bool> marked = marked_nodes();
  std::fill(unique_.begin(), unique_.end(), Slot{});
  n_unique_ = 0;
  std::fill(computed_.begin(), computed_.end(), Computed{});
  free_head_ = 0;
  n_free_ = 0;
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    Node& n = nodes_[node];
    if (!marked[node]) {
      if (n.level == kTerminalLevel) forget_terminal(n.low);
      n = {kFreeLevel, free_head_, 0};
      free_head_ = node;
      ++n_free_;
    } else if (n.level < kTerminalLevel) {
      place(node);
    }
  }
  XCOUNT_ASSERT(n_free_ < nodes_.size() && n_unique_ <= n_nodes());
  collect_at_ = std::max(std::size_t{1} << 18, 2 * n_nodes());
}

std::vector<NodeId> Diagrams::reachable(NodeId root) const {
  std::vector<NodeId> order, todo{root};
  std::vector<bool> seen(nodes_.size(), false), expanded(nodes_.size(), false);
  while (!todo.empty()) {
    const NodeId node = todo.back();
    if (seen[node]) {
      todo.pop_back();
      continue;
    }
    if (is_terminal(node) || expanded[node]) {
      todo.pop_back();
      seen[node] = true;
      order.push_back(node);
      continue;
    }
    expanded[node] = true;
    todo.push_back(nodes_[node].high);
    todo.push_back(nodes_[node].low);
  }
  return order;
}

std::size_t Diagrams::size(const Ref& f) const {
  check_ours(f);
  return reachable(f.node()).size();
}

}  // namespace xcount

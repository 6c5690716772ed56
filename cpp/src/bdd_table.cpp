// The unique table, the computed table, garbage collection and limits.
#include <algorithm>
#include <bit>

#include "xcount/bdd.hpp"

namespace xcount {

namespace {

constexpr std::size_t kFirstNodes = std::size_t{1} << 10;
constexpr std::size_t kMaxComputed = std::size_t{1} << 24;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a + 0x9E3779B97F4A7C15ULL) ^ (b * 0xC2B2AE3D27D4EB4FULL);
  x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9ULL;
  return x ^ (x >> 32);
}

std::uint64_t pack(std::uint32_t a, std::uint32_t b) {
  return (static_cast<std::uint64_t>(a) << 32) | b;
}

}  // namespace

Diagrams::Diagrams(std::span<const std::uint32_t> group_sizes, DiagramLimits limits)
    : limits_(limits) {
  first_level_.push_back(0);
  for (std::uint32_t group = 0; group < group_sizes.size(); ++group) {
    group_of_.insert(group_of_.end(), group_sizes[group], group);
    first_level_.push_back(static_cast<std::uint32_t>(group_of_.size()));
  }
  buckets_.assign(kFirstNodes, 0);
  computed_.resize(kFirstNodes);
  nodes_.reserve(kFirstNodes);
  references_.reserve(kFirstNodes);
  for (const NodeId terminal : {kFalse, kTrue}) {
    nodes_.push_back({kTerminalLevel, terminal, terminal, 0});
    references_.push_back(1);
  }
}

std::size_t Diagrams::n_bytes() const {
  return nodes_.capacity() * sizeof(Node) + references_.capacity() * sizeof(std::uint32_t) +
         buckets_.size() * sizeof(NodeId) + computed_.size() * sizeof(Computed) + terminal_bytes();
}

void Diagrams::check_room_for(std::size_t bytes) const {
  if (n_bytes() + bytes > limits_.max_bytes) {
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

std::size_t Diagrams::bucket(Level level, NodeId low, NodeId high) const {
  return mix(level, pack(low, high)) & (buckets_.size() - 1);
}

NodeId Diagrams::make(Level level, NodeId low, NodeId high) {
  if (low == high) return low;
  const std::size_t at = bucket(level, low, high);
  for (NodeId node = buckets_[at]; node != 0; node = nodes_[node].next) {
    const Node& n = nodes_[node];
    if (n.level == level && n.low == low && n.high == high) return node;
  }
  const NodeId node = allocate();
  const std::size_t head = bucket(level, low, high);  // allocate may have grown the table
  nodes_[node] = {level, low, high, buckets_[head]};
  buckets_[head] = node;
  return node;
}

NodeId Diagrams::make_monotone(Level level, NodeId low, NodeId high) {
  // Where this bit is 1 the next one of its group is 1 too: if that one already leads to `high`,
  // this test tells nothing apart.
  const Level below = nodes_[low].level;
  if (below < kTerminalLevel && group_of_[below] == group_of_[level] && nodes_[low].high == high) {
    return low;
  }
  return make(level, low, high);
}

NodeId Diagrams::new_terminal(std::uint32_t value_index) {
  const NodeId node = allocate();
  nodes_[node] = {kTerminalLevel, value_index, value_index, 0};
  return node;
}

NodeId Diagrams::allocate() {
  if (n_free_ == 0) {
    if (nodes_.size() >= limits_.max_nodes) {
      throw DiagramLimit(DiagramLimit::Kind::kNodes, "the limit of diagram nodes was reached");
    }
    if (nodes_.size() == nodes_.capacity()) grow_nodes();
    nodes_.push_back({kFreeLevel, 0, 0, 0});
    references_.push_back(0);
    peak_nodes_ = std::max(peak_nodes_, nodes_.size());
    return static_cast<NodeId>(nodes_.size() - 1);
  }
  const NodeId node = free_head_;
  free_head_ = nodes_[node].next;
  --n_free_;
  peak_nodes_ = std::max(peak_nodes_, n_nodes());
  return node;
}

void Diagrams::grow_nodes() {
  const std::size_t capacity = nodes_.capacity() + nodes_.capacity() / 2;
  // While a vector grows, the old and the new array exist side by side.
  const std::size_t per_node =
      sizeof(Node) + sizeof(std::uint32_t) + 2 * sizeof(NodeId) + sizeof(Computed);
  check_room_for(capacity * per_node);
  nodes_.reserve(capacity);
  references_.reserve(capacity);
  if (capacity > buckets_.size()) grow_buckets();
  if (capacity > computed_.size() && computed_.size() < kMaxComputed) grow_computed();
}

void Diagrams::grow_buckets() {
  buckets_.assign(buckets_.size() * 2, 0);
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    Node& n = nodes_[node];
    if (n.level >= kTerminalLevel) continue;
    const std::size_t at = bucket(n.level, n.low, n.high);
    n.next = buckets_[at];
    buckets_[at] = node;
  }
}

void Diagrams::grow_computed() {
  std::vector<Computed> old(computed_.size() * 2);
  old.swap(computed_);
  for (const Computed& entry : old) {
    if (entry.code != 0) computed_[slot(entry.code, entry.f, entry.g, entry.h)] = entry;
  }
}

std::size_t Diagrams::slot(std::uint32_t code, NodeId f, NodeId g, NodeId h) const {
  return mix(pack(code, f), pack(g, h)) & (computed_.size() - 1);
}

bool Diagrams::lookup(std::uint32_t code, NodeId f, NodeId g, NodeId h, NodeId& result) const {
  const Computed& entry = computed_[slot(code, f, g, h)];
  if (entry.code != code || entry.f != f || entry.g != g || entry.h != h) return false;
  result = entry.result;
  return true;
}

void Diagrams::remember(std::uint32_t code, NodeId f, NodeId g, NodeId h, NodeId result) {
  computed_[slot(code, f, g, h)] = {code, f, g, h, result};
}

std::uint32_t Diagrams::fresh_code() {
  if (next_code_ == 0xffffffff) {
    std::fill(computed_.begin(), computed_.end(), Computed{});
    next_code_ = kFirstFreshCode;
  }
  return next_code_++;
}

std::vector<bool> Diagrams::marked_nodes() const {
  std::vector<bool> marked(nodes_.size(), false);
  std::vector<NodeId> todo;
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    if (references_[node] > 0) todo.push_back(node);
  }
  while (!todo.empty()) {
    const NodeId node = todo.back();
    todo.pop_back();
    if (marked[node]) continue;
    marked[node] = true;
    if (is_terminal(node)) continue;
    todo.push_back(nodes_[node].low);
    todo.push_back(nodes_[node].high);
  }
  return marked;
}

void Diagrams::collect_garbage() {
  const std::vector<bool> marked = marked_nodes();
  std::fill(buckets_.begin(), buckets_.end(), 0);
  std::fill(computed_.begin(), computed_.end(), Computed{});
  free_head_ = 0;
  n_free_ = 0;
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    Node& n = nodes_[node];
    if (!marked[node]) {
      if (n.level == kTerminalLevel) forget_terminal(n.low);
      n = {kFreeLevel, 0, 0, free_head_};
      free_head_ = node;
      ++n_free_;
    } else if (n.level < kTerminalLevel) {
      const std::size_t at = bucket(n.level, n.low, n.high);
      n.next = buckets_[at];
      buckets_[at] = node;
    }
  }
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

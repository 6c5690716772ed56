// Decision diagrams over the guards: shared nodes, Boolean operations, garbage collection, limits.
//
// One table holds binary (BDD) and algebraic (ADD) diagrams: a BDD is a diagram whose only
// terminals are kFalse and kTrue. What the other terminals are worth is known to Adds (add.hpp)
// alone.
//
//   R. E. Bryant, Graph-based algorithms for Boolean function manipulation, 1986.
//   R. I. Bahar et al., Algebraic decision diagrams and their applications, 1997.
//
// A variable is its level: smaller levels are tested first. Variables come in groups of
// neighbouring levels, one group for the guards of one feature; within a group the bits of a region
// are monotone,
//
//   b[i] = 1 iff cell <= i,   hence b[i] => b[i+1],
//
// and the operations that are called monotone use that to leave out what no region can reach: their
// results are right at every monotone point and arbitrary elsewhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace xcount {

using NodeId = std::uint32_t;
using Level = std::uint32_t;

inline constexpr NodeId kFalse = 0;
inline constexpr NodeId kTrue = 1;
inline constexpr Level kTerminalLevel = 0x7fffffff;
inline constexpr Level kFreeLevel = 0xffffffff;

// Thrown when a diagram outgrows its limits; the diagrams that existed before stay valid.
class DiagramLimit : public std::runtime_error {
 public:
  enum class Kind { kMemory, kNodes, kTime };
  DiagramLimit(Kind which, const std::string& message) : std::runtime_error(message), kind(which) {}
  Kind kind;
};

struct DiagramLimits {
  std::size_t max_nodes = std::size_t{1} << 31;
  std::size_t max_bytes = std::size_t{1} << 62;
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

enum class BoolOp : std::uint32_t { kAnd, kOr, kXor };

class Diagrams;

// A diagram that garbage collection keeps. It must not outlive its table.
class Ref {
 public:
  Ref() = default;
  Ref(Diagrams* table, NodeId node);
  Ref(const Ref& other);
  Ref(Ref&& other) noexcept : table_(std::exchange(other.table_, nullptr)), node_(other.node_) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(table_, other.table_);
    std::swap(node_, other.node_);
    return *this;
  }
  ~Ref();

  [[nodiscard]] NodeId node() const { return node_; }
  [[nodiscard]] Diagrams* table() const { return table_; }
  // Diagrams are canonical: equal functions (over one table) are equal nodes.
  friend bool operator==(const Ref& a, const Ref& b) {
    return a.table_ == b.table_ && a.node_ == b.node_;
  }

 private:
  Diagrams* table_ = nullptr;
  NodeId node_ = kFalse;
};

class Diagrams {
 public:
  // group_sizes: how many neighbouring variables each group has; levels are numbered through.
  Diagrams(std::span<const std::uint32_t> group_sizes, DiagramLimits limits);
  virtual ~Diagrams() = default;
  Diagrams(const Diagrams&) = delete;
  Diagrams& operator=(const Diagrams&) = delete;

  [[nodiscard]] Level n_variables() const { return static_cast<Level>(group_of_.size()); }
  [[nodiscard]] std::size_t n_nodes() const { return nodes_.size() - n_free_; }
  [[nodiscard]] std::size_t peak_nodes() const { return peak_nodes_; }
  [[nodiscard]] std::size_t n_bytes() const;
  [[nodiscard]] bool has_room_for(std::size_t bytes) const;
  // Throws when this many bytes beside the table would break its limit.
  void check_room_for(std::size_t bytes) const;
  // Called every few thousand steps of work; what it throws ends the operation.
  void set_checkpoint(std::function<void()> checkpoint) { checkpoint_ = std::move(checkpoint); }
  void set_deadline(std::optional<std::chrono::steady_clock::time_point> deadline) {
    limits_.deadline = deadline;
  }

  [[nodiscard]] Ref constant(bool value) { return {this, value ? kTrue : kFalse}; }
  [[nodiscard]] Ref variable(Level level);
  [[nodiscard]] Ref apply(BoolOp op, const Ref& f, const Ref& g);
  [[nodiscard]] Ref negate(const Ref& f) { return apply(BoolOp::kXor, f, constant(true)); }
  // if f then g else h; f is a BDD, g and h are any diagrams.
  [[nodiscard]] Ref ite(const Ref& f, const Ref& g, const Ref& h);
  // Fixes variables: values[level] is 0 or 1, or negative where the variable stays free.
  [[nodiscard]] Ref restrict_to(const Ref& f, std::span<const std::int8_t> values);
  // Quantifies the variables with marked[level] != 0; f is a BDD.
  [[nodiscard]] Ref exists(const Ref& f, std::span<const std::uint8_t> marked);
  // Puts variable target[level] in the place of every level (a swap, or a renaming).
  [[nodiscard]] Ref permute(const Ref& f, std::span<const Level> target);
  // The one smallest diagram among those that agree with f at all monotone points.
  [[nodiscard]] Ref simplify(const Ref& f);
  // The BDD of "the bits of these groups are monotone".
  [[nodiscard]] Ref monotone(std::span<const std::uint32_t> groups);

  void collect_garbage();
  // How many nodes f has, terminals included.
  [[nodiscard]] std::size_t size(const Ref& f) const;

  [[nodiscard]] Level level(NodeId node) const { return nodes_[node].level; }
  [[nodiscard]] NodeId low(NodeId node) const { return nodes_[node].low; }
  [[nodiscard]] NodeId high(NodeId node) const { return nodes_[node].high; }
  [[nodiscard]] bool is_terminal(NodeId node) const { return level(node) == kTerminalLevel; }
  // The reachable nodes, children before parents.
  [[nodiscard]] std::vector<NodeId> reachable(NodeId root) const;
  void checkpoint();

 protected:
  friend class Ref;

  struct Node {
    Level level;
    NodeId low, high;  // of a free node, low is the next free one
  };
  struct Cofactors {
    NodeId low, high;
  };

  // Codes of operations in the computed table; operations with further arguments get a fresh code.
  // The code of if-then-else holds its first argument.
  static constexpr std::uint32_t kIteCode = 0x80000000;
  static constexpr std::uint32_t kSimplifyCode = 9;
  static constexpr std::uint32_t kArithmeticCode = 16;
  static constexpr std::uint32_t kFirstFreshCode = 64;

  // Runs an operation; where memory is short, once more after a collection, unless there was too
  // little garbage before it to make a difference.
  template <class Operation>
  Ref run(Operation operation) {
    if (n_nodes() >= collect_at_) collect_garbage();
    const std::size_t n_before = n_nodes();
    try {
      return Ref(this, operation());
    } catch (const DiagramLimit& limit) {
      if (limit.kind == DiagramLimit::Kind::kTime) throw;
      const std::size_t n_made = n_nodes() - n_before;
      collect_garbage();
      if (n_before - n_nodes() < n_made / 4) throw;
    }
    return Ref(this, operation());
  }
  void check_bdd(const Ref& f) const;
  void check_ours(const Ref& f) const;

  NodeId make(Level level, NodeId low, NodeId high);
  // As make, and equal to what it stands for at monotone points only.
  NodeId make_monotone(Level level, NodeId low, NodeId high);
  NodeId new_terminal(std::uint32_t value_index);
  // What a diagram becomes where all variables of the group (from here down) are 1.
  [[nodiscard]] NodeId implied(NodeId node, std::uint32_t group) const {
    while (level(node) < kTerminalLevel && group_of_[level(node)] == group) node = high(node);
    return node;
  }
  [[nodiscard]] Cofactors cofactors(NodeId node, Level at) const {
    if (level(node) == at) return {low(node), high(node)};
    return {node, node};
  }
  [[nodiscard]] Cofactors monotone_cofactors(NodeId node, Level at) const {
    const Cofactors plain = cofactors(node, at);
    return {plain.low, implied(plain.high, group_of_[at])};
  }

  [[nodiscard]] bool lookup(std::uint32_t code, NodeId f, NodeId g, NodeId& result) const {
    const Computed& entry = computed_[slot(code, f, g)];
    result = entry.result;
    return entry.code == code && entry.f == f && entry.g == g;
  }
  void remember(std::uint32_t code, NodeId f, NodeId g, NodeId result) {
    computed_[slot(code, f, g)] = {code, f, g, result};
  }
  // Says that a look-up will follow: memory is far slower than what is done in between.
  void expect_lookup(std::uint32_t code, NodeId f, NodeId g) const {
    __builtin_prefetch(&computed_[slot(code, f, g)]);
  }
  std::uint32_t fresh_code();
  NodeId ite_nodes(NodeId f, NodeId g, NodeId h);
  NodeId apply_nodes(BoolOp op, NodeId f, NodeId g);
  void step() {
    if ((++steps_ & 0x3fff) == 0) checkpoint();
  }
  // The values of terminals belong to the derived class; it forgets those that are collected.
  virtual void forget_terminal(std::uint32_t value_index) = 0;
  [[nodiscard]] virtual std::size_t terminal_bytes() const = 0;

  std::vector<Node> nodes_;
  std::vector<std::uint32_t> group_of_;  // by level

 private:
  struct Computed {
    std::uint32_t code = 0;  // 0: empty
    NodeId f = 0, g = 0;
    NodeId result = 0;
  };
  // Of the unique table, an open-addressing one. The tag is part of the hash: a node is looked at
  // only where it agrees.
  struct Slot {
    NodeId node = 0;  // 0: empty
    std::uint32_t tag = 0;
  };

  static std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    std::uint64_t x = (a + 0x9E3779B97F4A7C15ULL) ^ (b * 0xC2B2AE3D27D4EB4FULL);
    x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9ULL;
    return x ^ (x >> 32);
  }
  static std::uint64_t pack(std::uint32_t a, std::uint32_t b) {
    return (static_cast<std::uint64_t>(a) << 32) | b;
  }
  [[nodiscard]] std::size_t slot(std::uint32_t code, NodeId f, NodeId g) const {
    return mix(code, pack(f, g)) & (computed_.size() - 1);
  }
  static std::uint64_t hash(const Node& n) { return mix(n.level, pack(n.low, n.high)); }

  NodeId allocate();
  void grow_nodes();
  void grow_unique();
  void grow_computed();
  void place(NodeId node);  // in the unique table
  void retain(NodeId node) { ++references_[node]; }
  void release(NodeId node) {
    if (const auto found = references_.find(node); --found->second == 0) references_.erase(found);
  }
  [[nodiscard]] std::vector<bool> marked_nodes() const;

  NodeId restrict_nodes(std::uint32_t code, NodeId f, std::span<const std::int8_t> values);
  NodeId exists_nodes(std::uint32_t code, NodeId f, std::span<const std::uint8_t> marked);
  NodeId permute_nodes(std::uint32_t code, NodeId f, std::span<const Level> target);
  NodeId simplify_nodes(NodeId f);

  DiagramLimits limits_;
  std::unordered_map<NodeId, std::uint32_t> references_;  // how many Refs hold a node
  std::vector<Slot> unique_;
  std::size_t n_unique_ = 0;
  std::vector<Computed> computed_;
  std::vector<std::uint32_t> first_level_;  // by group; one more at the end
  NodeId free_head_ = 0;
  std::size_t n_free_ = 0;
  std::size_t peak_nodes_ = 0;
  std::size_t collect_at_ = std::size_t{1} << 18;
  std::uint64_t steps_ = 0;
  std::uint32_t next_code_ = kFirstFreshCode;
  std::function<void()> checkpoint_;
};

inline Ref::Ref(Diagrams* table, NodeId node) : table_(table), node_(node) {
  if (table_ != nullptr) table_->retain(node_);
}
inline Ref::Ref(const Ref& other) : Ref(other.table_, other.node_) {}
inline Ref::~Ref() {
  if (table_ != nullptr) table_->release(node_);
}

}  // namespace xcount

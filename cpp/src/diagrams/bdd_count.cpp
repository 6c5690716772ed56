#include "xcount/diagrams/bdd_count.hpp"

#include <algorithm>
#include <unordered_map>

#include "xcount/support/value.hpp"

namespace xcount {

namespace {

using Limbs = std::vector<std::uint64_t>;

constexpr unsigned kBits = 64;

void trim(Limbs& x) {
  while (!x.empty() && x.back() == 0) x.pop_back();
}

Limbs shifted_left(std::span<const std::uint64_t> x, std::size_t shift) {
  if (x.empty()) return {};
  const std::size_t words = shift / kBits;
  const unsigned bits = static_cast<unsigned>(shift % kBits);
  Limbs result(x.size() + words + 1, 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const UInt128 wide = static_cast<UInt128>(x[i]) << bits;
    result[i + words] |= static_cast<std::uint64_t>(wide);
    result[i + words + 1] |= static_cast<std::uint64_t>(wide >> kBits);
  }
  trim(result);
  return result;
}

void shift_right(Limbs& x, std::size_t shift) {
  const std::size_t words = std::min(shift / kBits, x.size());
  x.erase(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(words));
  const unsigned bits = static_cast<unsigned>(shift % kBits);
  if (bits == 0) return;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] >>= bits;
    if (i + 1 < x.size()) x[i] |= x[i + 1] << (kBits - bits);
  }
  trim(x);
}

void add(Limbs& x, const Limbs& y) {
  if (x.size() < y.size()) x.resize(y.size(), 0);
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const UInt128 sum = static_cast<UInt128>(x[i]) + (i < y.size() ? y[i] : 0) + carry;
    x[i] = static_cast<std::uint64_t>(sum);
    carry = static_cast<std::uint64_t>(sum >> kBits);
  }
  if (carry != 0) x.push_back(carry);
}

// x -= y, for x >= y; both without leading zeros.
void subtract(Limbs& x, const Limbs& y) {
  std::uint64_t borrow = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const UInt128 need = static_cast<UInt128>(i < y.size() ? y[i] : 0) + borrow;
    borrow = need > x[i] ? 1 : 0;
    x[i] -= static_cast<std::uint64_t>(need);
  }
  trim(x);
}

bool less(const Limbs& x, std::span<const std::uint64_t> y) {
  if (x.size() != y.size()) return x.size() < y.size();
  for (std::size_t i = x.size(); i-- > 0;) {
    if (x[i] != y[i]) return x[i] < y[i];
  }
  return false;
}

std::uint8_t bit_of(const Limbs& x, std::size_t i) {
  if (i / kBits >= x.size()) return 0;
  return static_cast<std::uint8_t>((x[i / kBits] >> (i % kBits)) & 1);
}

}  // namespace

Solutions::Solutions(Diagrams& table, const Ref& f, std::span<const Level> levels)
    : n_variables_(levels.size()) {
  if (f.table() != &table) throw std::invalid_argument("a diagram belongs to another table");
  std::unordered_map<Level, std::uint32_t> position_of;
  for (const Level level : levels) {
    if (!position_of.emplace(level, static_cast<std::uint32_t>(position_of.size())).second) {
      throw std::invalid_argument("a variable is counted twice");
    }
  }
  if (!std::is_sorted(levels.begin(), levels.end())) {
    throw std::invalid_argument("counted variables must ascend");
  }
  std::unordered_map<NodeId, std::uint32_t> index_of;
  std::size_t steps = 0;
  for (const NodeId node : table.reachable(f.node())) {
    if ((++steps & 0xfff) == 0) {
      table.checkpoint();
      table.check_room_for(2 * (nodes_.size() * 2 * sizeof(Node) + limbs_.size() * 8));
    }
    index_of.emplace(node, static_cast<std::uint32_t>(nodes_.size()));
    if (table.is_terminal(node)) {
      if (node > kTrue) throw std::invalid_argument("only a BDD has solutions");
      store({static_cast<std::uint32_t>(n_variables_), node, node, 0, 0}, Limbs(node, 1));
      continue;
    }
    const auto position = position_of.find(table.level(node));
    if (position == position_of.end()) {
      throw std::invalid_argument("the diagram tests a variable that is not counted");
    }
    const Node made{position->second, index_of.at(table.low(node)), index_of.at(table.high(node)),
                    0, 0};
    Limbs total = completions(made.low, made.position + 1);
    add(total, completions(made.high, made.position + 1));
    store(made, total);
  }
  root_ = static_cast<std::uint32_t>(nodes_.size() - 1);
  count_ = completions(root_, 0);
  if (count_.empty()) count_.push_back(0);
}

void Solutions::store(Node node, const Limbs& count) {
  node.limbs_at = limbs_.size();
  node.n_limbs = static_cast<std::uint32_t>(count.size());
  limbs_.insert(limbs_.end(), count.begin(), count.end());
  nodes_.push_back(node);
}

Solutions::Limbs Solutions::completions(std::uint32_t node, std::uint32_t position) const {
  return shifted_left(limbs(node), nodes_[node].position - position);
}

void Solutions::unrank(std::span<const std::uint64_t> rank, std::span<std::uint8_t> bits) const {
  Limbs rest(rank.begin(), rank.end());
  trim(rest);
  Limbs total = count_;
  trim(total);
  if (bits.size() != n_variables_) throw std::invalid_argument("one bit per variable needed");
  if (!less(rest, total)) throw std::invalid_argument("a rank must lie below the count");
  std::uint32_t node = root_;
  std::uint32_t position = 0;
  while (true) {
    // The variables that are skipped are free: the low bits of the rank choose them.
    const std::uint32_t skipped = nodes_[node].position - position;
    for (std::uint32_t i = 0; i < skipped; ++i) bits[position + i] = bit_of(rest, i);
    shift_right(rest, skipped);
    position = nodes_[node].position;
    if (position == n_variables_) return;
    const Limbs below = completions(nodes_[node].low, position + 1);
    const bool goes_low = less(rest, below);
    if (!goes_low) subtract(rest, below);
    bits[position] = goes_low ? 0 : 1;
    node = goes_low ? nodes_[node].low : nodes_[node].high;
    ++position;
  }
}

bool Solutions::contains(std::span<const std::uint8_t> bits) const {
  if (bits.size() != n_variables_) throw std::invalid_argument("one bit per variable needed");
  std::uint32_t node = root_;
  while (nodes_[node].position < n_variables_) {
    node = bits[nodes_[node].position] != 0 ? nodes_[node].high : nodes_[node].low;
  }
  return nodes_[node].low == kTrue;
}

}  // namespace xcount

#include "xcount/sampling/sliced_forest.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "row_loops.hpp"
#include "xcount/sampling/slice_indices.hpp"

namespace xcount {

// Cells of one sensitive axis of the scope, by their places: runs [first, last), in order and apart
// from each other. An axis may be long, but a path leaves a few runs of it.
using CellRuns = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
// A product of cell sets, one per sensitive axis.
using MaskSet = std::vector<CellRuns>;

namespace {

constexpr std::size_t kMaxLeaves = std::size_t{1} << kMaxBits;
constexpr std::size_t kMaxCodes = 0xFFFE;
constexpr int kRoundedBits = 30;  // of the sum of all trees' spans: differences of sums fit 32

// Adds a run behind all others.
void append(std::uint32_t first, std::uint32_t last, CellRuns& runs) {
  if (first >= last) return;
  if (!runs.empty() && runs.back().second == first) {
    runs.back().second = last;
  } else {
    runs.emplace_back(first, last);
  }
}

std::size_t bits_for(std::size_t n_leaves) { return std::bit_width(n_leaves - 1); }

// The bits [first, first + n) of a value that is not negative, n < 32.
template <class Value>
std::int32_t bits_of(const Value& value, int first, int n) {
  const std::int64_t below = (std::int64_t{1} << n) - 1;
  if constexpr (requires { value >> first; }) {
    return static_cast<std::int32_t>((value >> first) & below);
  } else {
    const auto limb = static_cast<std::size_t>(first / 64);
    UInt128 both = value.limbs[limb];
    if (limb + 1 < value.limbs.size()) both |= static_cast<UInt128>(value.limbs[limb + 1]) << 64;
    return static_cast<std::int32_t>((both >> (first % 64)) & static_cast<UInt128>(below));
  }
}

// number * 2^exponent; what does not fit is lost.
template <class Value>
Value shifted(std::int32_t number, int exponent) {
  if constexpr (std::is_same_v<Value, std::int64_t>) {
    return static_cast<Value>(static_cast<std::uint64_t>(std::int64_t{number}) << exponent);
  } else if constexpr (std::is_same_v<Value, Int128>) {
    return static_cast<Value>(static_cast<UInt128>(Int128{number}) << exponent);
  } else {
    const auto limb = static_cast<std::size_t>(exponent / 64);
    const auto size = static_cast<UInt128>(std::abs(std::int64_t{number})) << (exponent % 64);
    Value found;
    found.limbs[limb] = static_cast<std::uint64_t>(size);
    if (limb + 1 < found.limbs.size())
      found.limbs[limb + 1] = static_cast<std::uint64_t>(size >> 64);
    return number < 0 ? -found : found;
  }
}

}  // namespace

template <class Value>
class SliceCompiler {
 public:
  SliceCompiler(const Forest<Value>& forest, const MaskSpace& masks, const MaskScope& scope,
                SlicedForest<Value>& out)
      : forest_(forest), scope_(scope), out_(out), axis_of_(forest.axes.size(), -1) {
    for (std::size_t i = 0; i < masks.sensitive().size(); ++i) {
      const Feature feature = masks.sensitive()[i];
      axis_of_[static_cast<std::size_t>(feature)] = static_cast<int>(i);
      const auto n_cells = static_cast<std::uint32_t>(scope.cells()[i].size());
      out_.extents_.push_back(n_cells);
      everything_.push_back({{0, n_cells}});
    }
    find_sensitive_subtrees();
    make_columns();
    choose_unit();
  }

  void compile() {
    for (const NodeIndex root : forest_.roots) {
      if (!contributes(root)) continue;
      ++out_.n_trees_;
      least_ = span_of(root).first;
      next_slot_ = first_free_slot_;
      known_.clear();
      correct(root, everything_, kEveryone);
    }
    out_.n_slots_ = std::max<std::size_t>(out_.n_slots_, n_used_slots_);
  }

 private:
  // A subtree at one mask: only tests of other features are left.
  struct Plain {
    std::uint32_t test = 0;  // slot; kNobody for a leaf
    std::uint32_t left = 0, right = 0;
    NodeIndex leaf = 0;
    std::size_t n_leaves = 1;
  };

  [[nodiscard]] static std::size_t at(NodeIndex node) { return static_cast<std::size_t>(node); }
  [[nodiscard]] bool contributes(NodeIndex node) const { return below_[at(node)] != 0; }
  [[nodiscard]] int sensitive_axis(NodeIndex node) const {
    return axis_of_[static_cast<std::size_t>(forest_.test(node).feature)];
  }

  // Whether the node tells some masks of the scope from others.
  [[nodiscard]] bool separates(NodeIndex node) const {
    const int axis = sensitive_axis(node);
    if (axis < 0) return false;
    const auto place = static_cast<std::size_t>(axis);
    const auto [left, right] = split(forest_.test(node), everything_[place], place);
    return !left.empty() && !right.empty();
  }

  // The cells that go left, and those that go right.
  [[nodiscard]] std::pair<CellRuns, CellRuns> split(const Test& test, const CellRuns& runs,
                                                    std::size_t axis) const {
    std::pair<CellRuns, CellRuns> sides;
    const std::vector<Cell>& kept = scope_.cells()[axis];
    if (test.cut < 0) {
      for (const auto& [first, last] : runs) {
        for (std::uint32_t c = first; c < last; ++c) {
          append(c, c + 1, forest_.goes_left(test, kept[c]) ? sides.first : sides.second);
        }
      }
      return sides;
    }
    // Left are the cells below the cut and, if it goes there, the missing one, which is the last.
    const auto n = static_cast<std::uint32_t>(kept.size());
    const Cell missing = forest_.axis(test.feature).missing_cell;
    const bool last_left = test.missing_left && n > 0 && missing >= 0 && kept.back() == missing;
    const auto end = kept.end() - (last_left ? 1 : 0);
    const auto cut =
        static_cast<std::uint32_t>(std::lower_bound(kept.begin(), end, test.cut) - kept.begin());
    const std::uint32_t right_end = last_left ? n - 1 : n;
    for (const auto& [first, last] : runs) {
      append(first, std::min(last, cut), sides.first);
      append(std::max(first, cut), std::min(last, right_end), sides.second);
      if (last_left && last == n) append(n - 1, n, sides.first);
    }
    return sides;
  }

  // Children have larger indices, so one backward pass sees them first.
  void find_sensitive_subtrees() {
    below_.assign(forest_.n_nodes(), 0);
    for (std::size_t i = forest_.n_nodes(); i-- > 0;) {
      const auto node = static_cast<NodeIndex>(i);
      if (forest_.is_leaf(node)) continue;
      below_[i] = separates(node) || contributes(forest_.left[i]) || contributes(forest_.right[i]);
    }
  }

  // Codes are ranks among the cuts that occur, so that 16 bits are enough for any axis.
  void make_columns() {
    using Key = std::pair<Feature, bool>;  // with missing cells below all others
    std::map<Key, std::vector<NodeIndex>> tested;
    for (const NodeIndex node : plain_tests()) {
      const Test& test = forest_.test(node);
      tested[{test.feature, test.cut >= 0 && test.missing_left}].push_back(node);
    }
    slot_of_.assign(forest_.n_nodes(), kNobody);
    for (const auto& [key, nodes] : tested) make_column(key.first, key.second, nodes);
    first_free_slot_ = static_cast<std::uint32_t>(out_.n_slots_);
    n_used_slots_ = first_free_slot_;
  }

  // The non-sensitive tests of all trees that contribute.
  [[nodiscard]] std::vector<NodeIndex> plain_tests() const {
    std::vector<NodeIndex> found;
    std::vector<NodeIndex> open;
    for (const NodeIndex root : forest_.roots) {
      if (contributes(root)) open.push_back(root);
    }
    while (!open.empty()) {
      const NodeIndex node = open.back();
      open.pop_back();
      if (forest_.is_leaf(node)) continue;
      if (sensitive_axis(node) < 0) found.push_back(node);
      open.push_back(forest_.left[at(node)]);
      open.push_back(forest_.right[at(node)]);
    }
    return found;
  }

  void make_column(Feature feature, bool missing_low, const std::vector<NodeIndex>& nodes) {
    std::vector<std::int32_t> cuts;
    bool has_sets = false;
    for (const NodeIndex node : nodes) {
      const std::int32_t cut = forest_.test(node).cut;
      if (cut >= 0) cuts.push_back(cut);
      has_sets = has_sets || cut < 0;
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    const Axis& axis = forest_.axis(feature);
    Column column{feature, missing_low, false, {}, 0, 0, 0, 0};
    std::size_t n_codes = 1;
    for (Cell cell = 0; cell < axis.n_cells; ++cell) {
      const auto rank = has_sets
                            ? static_cast<std::size_t>(cell)
                            : static_cast<std::size_t>(
                                  std::upper_bound(cuts.begin(), cuts.end(), cell) - cuts.begin());
      if (rank + 1 >= kMaxCodes)
        throw std::length_error("too many cells on one feature to sample rows of masks");
      const bool low = missing_low && cell == axis.missing_cell;
      column.code_of_cell.push_back(low ? Code{0} : static_cast<Code>(rank + 1));
      n_codes = std::max(n_codes, rank + 2);
    }
    column.is_narrow = n_codes <= 256;
    add_cuts(nodes, has_sets, cuts, column);
    add_sets(nodes, column);
    out_.columns_.push_back(std::move(column));
  }

  void add_cuts(const std::vector<NodeIndex>& nodes, bool has_sets,
                const std::vector<std::int32_t>& cuts, Column& column) {
    column.first_cut = static_cast<std::uint32_t>(out_.cuts_.size());
    std::map<std::int32_t, std::uint32_t> slots;
    const Axis& axis = forest_.axis(column.feature);
    // Missing cells above all others go right at any cut; below, left.
    const Cell end = column.missing_low ? axis.n_ordered() : axis.n_cells;
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      if (cuts[i] >= end) continue;  // nothing goes right
      const auto code = has_sets ? static_cast<std::size_t>(cuts[i]) + 1 : i + 2;
      slots[cuts[i]] = static_cast<std::uint32_t>(out_.n_slots_++);
      out_.cuts_.push_back({static_cast<Code>(code), slots[cuts[i]]});
    }
    column.last_cut = static_cast<std::uint32_t>(out_.cuts_.size());
    for (const NodeIndex node : nodes) {
      const auto found = slots.find(forest_.test(node).cut);
      if (found != slots.end()) slot_of_[at(node)] = found->second;
    }
  }

  void add_sets(const std::vector<NodeIndex>& nodes, Column& column) {
    column.first_set = static_cast<std::uint32_t>(out_.sets_.size());
    std::map<std::string, std::uint32_t> slots;  // by where the codes go
    for (const NodeIndex node : nodes) {
      const Test& test = forest_.test(node);
      if (test.cut >= 0) continue;
      std::vector<std::uint8_t> right(column.code_of_cell.size() + 1);
      for (std::size_t c = 0; c < column.code_of_cell.size(); ++c) {
        right[column.code_of_cell[c]] = forest_.goes_left(test, static_cast<Cell>(c)) ? 0 : 1;
      }
      const auto [found, is_new] = slots.try_emplace(std::string(right.begin(), right.end()), 0);
      if (is_new) {
        found->second = static_cast<std::uint32_t>(out_.n_slots_++);
        out_.sets_.push_back({found->second, right});
      }
      slot_of_[at(node)] = found->second;
    }
    column.last_set = static_cast<std::uint32_t>(out_.sets_.size());
  }

  // The least and the largest leaf of a tree.
  [[nodiscard]] std::pair<Value, Value> span_of(NodeIndex root) const {
    std::pair<Value, Value> span;
    bool is_first = true;
    std::vector<NodeIndex> open{root};
    while (!open.empty()) {
      const NodeIndex node = open.back();
      open.pop_back();
      if (!forest_.is_leaf(node)) {
        open.push_back(forest_.left[at(node)]);
        open.push_back(forest_.right[at(node)]);
        continue;
      }
      const Value& value = forest_.value(node);
      if (is_first || value < span.first) span.first = value;
      if (is_first || value > span.second) span.second = value;
      is_first = false;
    }
    return span;
  }

  void choose_unit() {
    Value total{};
    std::size_t n_trees = 0;
    int widest = 0;
    for (const NodeIndex root : forest_.roots) {
      if (!contributes(root)) continue;
      const auto [least, most] = span_of(root);
      total += most - least;
      ++n_trees;
      widest = std::max(widest, ValueTraits<Value>::bit_width(Value(most - least)));
    }
    out_.shift_ = std::max(0, ValueTraits<Value>::bit_width(total) - kRoundedBits);
    // If nothing is rounded, one digit holds all of a leaf.
    SliceTables& exact = out_.exact_;
    exact.n_digit_bits =
        out_.shift_ == 0 ? kRoundedBits : kRoundedBits - static_cast<int>(std::bit_width(n_trees));
    const auto bits = static_cast<std::size_t>(exact.n_digit_bits);
    exact.n_digits = std::max<std::size_t>(1, (static_cast<std::size_t>(widest) + bits - 1) / bits);
  }

  // A leaf in units of rounded sums, from the tree's least one on.
  [[nodiscard]] std::int32_t rounded(const Value& value) const {
    const double units = ValueTraits<Value>::scaled(Value(value - least_), -out_.shift_);
    return static_cast<std::int32_t>(std::llrint(units));
  }

  // A digit of a leaf, from the tree's least one on.
  [[nodiscard]] std::int32_t digit(const Value& value, std::size_t place) const {
    const int n_bits = out_.exact_.n_digit_bits;
    return bits_of(Value(value - least_), n_bits * static_cast<int>(place), n_bits);
  }

  // What the sensitive tests below a node add, at the samples of the guard, to the node's value at
  // the first of the masks.
  void correct(NodeIndex node, const MaskSet& masks, std::uint32_t guard) {
    if (forest_.is_leaf(node) || !contributes(node)) return;
    const NodeIndex left = forest_.left[at(node)];
    const NodeIndex right = forest_.right[at(node)];
    if (sensitive_axis(node) < 0) {
      const std::uint32_t test = slot_of_[at(node)];
      if (contributes(left)) correct(left, masks, mux(test, guard, kNobody));
      if (contributes(right) && test != kNobody) correct(right, masks, mux(test, kNobody, guard));
      return;
    }
    const auto axis = static_cast<std::size_t>(sensitive_axis(node));
    auto [to_left, to_right] = split(forest_.test(node), masks[axis], axis);
    if (to_left.empty() || to_right.empty()) {
      return correct(to_right.empty() ? left : right, masks, guard);
    }
    const bool left_is_near = to_left.front().first == masks[axis].front().first;
    const NodeIndex near = left_is_near ? left : right;
    const NodeIndex far = left_is_near ? right : left;
    MaskSet near_masks = masks;
    MaskSet far_masks = masks;
    near_masks[axis] = left_is_near ? std::move(to_left) : std::move(to_right);
    far_masks[axis] = left_is_near ? std::move(to_right) : std::move(to_left);
    plain_.clear();
    const std::uint32_t added = plain_at(far, far_masks);
    const std::uint32_t removed = plain_at(near, masks);
    add_difference(added, removed, guard, corners(far_masks));
    correct(near, near_masks, guard);
    correct(far, far_masks, guard);
  }

  // The subtree of a node at the first of the masks.
  std::uint32_t plain_at(NodeIndex node, const MaskSet& masks) {
    while (!forest_.is_leaf(node)) {
      const int axis = sensitive_axis(node);
      if (axis >= 0) {
        const auto place = static_cast<std::size_t>(axis);
        node = forest_.child(node, scope_.cells()[place][masks[place].front().first]);
      } else if (slot_of_[at(node)] == kNobody) {
        node = forest_.left[at(node)];
      } else {
        break;
      }
    }
    Plain plain;
    plain.leaf = node;
    if (!forest_.is_leaf(node)) {
      plain.test = slot_of_[at(node)];
      plain.left = plain_at(forest_.left[at(node)], masks);
      plain.right = plain_at(forest_.right[at(node)], masks);
      plain.n_leaves = plain_[plain.left].n_leaves + plain_[plain.right].n_leaves;
    }
    plain_.push_back(plain);
    return static_cast<std::uint32_t>(plain_.size() - 1);
  }

  // The entries of a row that stand for 1 on a product of cell sets, in difference form.
  [[nodiscard]] std::vector<Target> corners(const MaskSet& masks) const {
    std::vector<Target> found{{0, false}};
    for (std::size_t axis = 0; axis < masks.size(); ++axis) {
      std::vector<Target> longer;
      const std::uint32_t extent = out_.extents_[axis];
      for (const auto& [mask, negative] : found) {
        for (const auto& [first, last] : masks[axis]) {
          longer.push_back({mask * extent + first, negative});
          if (last < extent) longer.push_back({mask * extent + last, !negative});
        }
      }
      found = std::move(longer);
    }
    return found;
  }

  // One lookup if a table can hold both numbers of leaves, else several.
  void add_difference(std::uint32_t added, std::uint32_t removed, std::uint32_t guard,
                      const std::vector<Target>& targets) {
    const auto first_target = static_cast<std::uint32_t>(out_.program_.targets.size());
    out_.program_.targets.insert(out_.program_.targets.end(), targets.begin(), targets.end());
    const auto middle = static_cast<std::uint32_t>(out_.program_.targets.size());
    Lookup lookup;
    lookup.guard = guard;
    lookup.first_target = first_target;
    lookup.last_target = middle;
    const std::size_t n_bits =
        bits_for(plain_[added].n_leaves) + bits_for(plain_[removed].n_leaves);
    if (n_bits <= kMaxBits) return add_lookup(lookup, added, &removed);
    add_pieces(lookup, added);
    for (const auto& [mask, negative] : targets) {
      out_.program_.targets.push_back({mask, !negative});
    }
    lookup.first_target = middle;
    lookup.last_target = static_cast<std::uint32_t>(out_.program_.targets.size());
    add_pieces(lookup, removed);
  }

  // A tree with too many leaves is looked up in pieces, each with its own guard.
  void add_pieces(Lookup lookup, std::uint32_t plain) {
    if (plain_[plain].n_leaves <= kMaxLeaves) return add_lookup(lookup, plain, nullptr);
    const Plain node = plain_[plain];
    const std::uint32_t guard = lookup.guard;
    lookup.guard = mux(node.test, guard, kNobody);
    add_pieces(lookup, node.left);
    lookup.guard = mux(node.test, kNobody, guard);
    add_pieces(lookup, node.right);
  }

  void add_lookup(Lookup lookup, std::uint32_t added, const std::uint32_t* removed) {
    std::vector<NodeIndex> added_leaves = leaves_of(added);
    std::vector<NodeIndex> removed_leaves;
    add_bits(added, lookup);
    const std::size_t n_added = std::size_t{1} << lookup.n_bits;
    if (removed != nullptr) {
      removed_leaves = leaves_of(*removed);
      add_bits(*removed, lookup);
    }
    lookup.first_mux = n_run_;
    lookup.last_mux = static_cast<std::uint32_t>(out_.program_.muxes.size());
    n_run_ = lookup.last_mux;
    lookup.table = n_entries_;
    n_entries_ += static_cast<std::uint32_t>(lookup.n_entries());
    std::vector<std::int32_t> entries(lookup.n_entries());
    const auto add_table = [&](SliceTables& tables, const auto& number_of) {
      for (std::size_t i = 0; i < std::max<std::size_t>(1, removed_leaves.size()); ++i) {
        const std::int32_t less =
            removed == nullptr ? 0 : number_of(forest_.value(removed_leaves[i]));
        for (std::size_t k = 0; k < added_leaves.size(); ++k) {
          entries[i * n_added + k] = number_of(forest_.value(added_leaves[k])) - less;
        }
      }
      tables.add(entries);
    };
    add_table(out_.rounded_, [&](const Value& value) { return rounded(value); });
    for (std::size_t d = 0; d < out_.exact_.n_digits; ++d) {
      add_table(out_.exact_, [&](const Value& value) { return digit(value, d); });
    }
    out_.program_.lookups.push_back(lookup);
  }

  // The leaves from left to right: a leaf's number is its place.
  [[nodiscard]] std::vector<NodeIndex> leaves_of(std::uint32_t plain) const {
    std::vector<NodeIndex> found;
    std::vector<std::uint32_t> open{plain};
    while (!open.empty()) {
      const Plain& node = plain_[open.back()];
      open.pop_back();
      if (node.test == kNobody) {
        found.push_back(node.leaf);
        continue;
      }
      open.push_back(node.right);
      open.push_back(node.left);
    }
    return found;
  }

  // Appends the slots of the bits of the leaf's number.
  void add_bits(std::uint32_t plain, Lookup& lookup) {
    const std::size_t n = bits_for(plain_[plain].n_leaves);
    for (std::size_t d = 0; d < n; ++d) {
      lookup.bits[lookup.n_bits++] = bit_of(plain, 0, d);
    }
  }

  // The slot of one bit of the leaf's number; `first` is the number of the subtree's first leaf.
  std::uint32_t bit_of(std::uint32_t plain, std::size_t first, std::size_t bit) {
    const Plain node = plain_[plain];
    const std::size_t last = first + node.n_leaves - 1;
    if (first >> bit == last >> bit) return (first >> bit & 1) != 0 ? kEveryone : kNobody;
    const std::uint32_t low = bit_of(node.left, first, bit);
    const std::uint32_t high = bit_of(node.right, first + plain_[node.left].n_leaves, bit);
    return mux(node.test, low, high);
  }

  // The slot of "high where the test is set, low elsewhere".
  std::uint32_t mux(std::uint32_t test, std::uint32_t low, std::uint32_t high) {
    if (low == high) return low;
    if (low == kNobody && high == kEveryone) return test;
    if (test == kNobody) return low;
    const auto [found, is_new] = known_.try_emplace({test, low, high}, next_slot_);
    if (is_new) {
      out_.program_.muxes.push_back({test, low, high, next_slot_});
      ++next_slot_;
      n_used_slots_ = std::max(n_used_slots_, next_slot_);
    }
    return found->second;
  }

  const Forest<Value>& forest_;
  const MaskScope& scope_;
  SlicedForest<Value>& out_;
  std::vector<int> axis_of_;  // per feature: its place among the sensitive ones, or -1
  std::vector<std::uint8_t> below_;
  MaskSet everything_;
  std::vector<std::uint32_t> slot_of_;  // per node: the slot of its test; kNobody if all go left
  std::vector<Plain> plain_;
  Value least_{};  // of the present tree's leaves
  std::uint32_t first_free_slot_ = 2, next_slot_ = 2, n_used_slots_ = 2;
  std::uint32_t n_run_ = 0;      // multiplexers that lookups so far run
  std::uint32_t n_entries_ = 0;  // of all tables so far
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> known_;
};

template <class Value>
SlicedForest<Value>::SlicedForest(const Forest<Value>& forest, const MaskSpace& masks,
                                  const MaskScope& scope)
    : n_masks_(scope.n_masks()) {
  SliceCompiler<Value>(forest, masks, scope, *this).compile();
}

template <class Value>
typename SlicedForest<Value>::Workspace SlicedForest<Value>::workspace() const {
  Workspace work{std::vector<Code>(columns_.size() * kBlock), std::vector<Slice>(n_slots_)};
  work.slots[kEveryone].words.fill(~std::uint64_t{0});
  return work;
}

template <class Value>
void SlicedForest<Value>::test(Workspace& work) const {
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const Column& column = columns_[c];
    const auto codes = std::span<const Code>(work.codes).subspan(c * kBlock, kBlock);
    const auto cuts =
        std::span(cuts_).subspan(column.first_cut, column.last_cut - column.first_cut);
    slice_kernels().cut(codes, column.is_narrow, cuts, work.slots.data());
    for (std::uint32_t s = column.first_set; s < column.last_set; ++s) {
      Slice& slice = work.slots[sets_[s].slot];
      slice = {};
      for (std::size_t i = 0; i < kBlock; ++i) {
        slice.words[i / 64] |= std::uint64_t{sets_[s].goes_right[codes[i]]} << (i % 64);
      }
    }
  }
}

template <class Value>
void SlicedForest<Value>::sum(const BlockRange& range, Workspace& work,
                              std::span<std::int32_t> rows) const {
  XCOUNT_ASSERT(range.begin % kGroup == 0 && range.n % kGroup == 0 && range.n <= range.width);
  std::fill(rows.begin(), rows.end(), 0);
  slice_kernels().sum(program_, rounded_, range, rows.size(), work.slots.data(), rows.data());
}

template <class Value>
void SlicedForest<Value>::sum_exactly(const BlockRange& range, bool as_values, Workspace& work,
                                      std::span<std::int32_t> digits, std::span<Value> rows) const {
  if (digits.empty()) {
    sum_lookups(range, work, rows);
    if (as_values) integrate_rows<Value>(extents_, range.width, rows.data());
    return;
  }
  XCOUNT_ASSERT(digits.size() == n_digits() * rows.size());
  const SliceKernels& kernels = slice_kernels();
  std::fill(digits.begin(), digits.end(), 0);
  kernels.sum(program_, exact_, range, rows.size(), work.slots.data(), digits.data());
  for (std::size_t d = 0; as_values && d < n_digits(); ++d) {
    kernels.integrate(extents_, range.width, digits.data() + d * rows.size());
  }
  join_digits(digits, rows);
}

template <class Value>
void SlicedForest<Value>::join_digits(std::span<const std::int32_t> digits,
                                      std::span<Value> rows) const {
  for (std::size_t d = 0; d < n_digits(); ++d) {
    const std::int32_t* own = digits.data() + d * rows.size();
    const int exponent = exact_.n_digit_bits * static_cast<int>(d);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (d == 0) rows[i] = Value{};
      wrapping_add(rows[i], shifted<Value>(own[i], exponent));
    }
  }
}

template <class Value>
void SlicedForest<Value>::sum_lookups(const BlockRange& range, Workspace& work,
                                      std::span<Value> rows) const {
  std::fill(rows.begin(), rows.end(), Value{});
  std::vector<Value> values(range.n);
  std::vector<std::int32_t> digits;
  std::vector<Value> table;
  for (const Lookup& lookup : program_.lookups) {
    slice_kernels().run(program_.muxes_of(lookup), work.slots.data());
    const LeafNumbers leaves(lookup, work.slots.data(), range);
    digits.clear();
    for (std::size_t d = 0; d < n_digits(); ++d) {
      for (std::size_t i = 0; i < lookup.n_entries(); ++i) {
        digits.push_back(exact_.digit(lookup, d, i));
      }
    }
    table.resize(lookup.n_entries());
    join_digits(digits, table);
    for (std::size_t i = 0; i < range.n; ++i) {
      values[i] = leaves.is_out(i) ? Value{} : table[leaves[i]];
    }
    for (std::uint32_t t = lookup.first_target; t < lookup.last_target; ++t) {
      const Target& target = program_.targets[t];
      Value* row = rows.data() + target.mask * range.width;
      for (std::size_t i = 0; i < range.n; ++i) {
        wrapping_add(row[i], target.negative ? Value(-values[i]) : values[i]);
      }
    }
  }
}

template class SlicedForest<std::int64_t>;
template class SlicedForest<Int128>;
template class SlicedForest<Int2304>;

}  // namespace xcount

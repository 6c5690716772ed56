#include "xcount/sampling/profile_forest.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace xcount {

// Cells of one sensitive axis of the scope, by their places: runs [first, last), in order and apart
// from each other. An axis may be long, but a path leaves a few runs of it.
using CellRuns = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
// A product of cell sets, one per sensitive axis.
using MaskSet = std::vector<CellRuns>;

namespace {

// Adds a run behind all others.
void append(std::uint32_t first, std::uint32_t last, CellRuns& runs) {
  if (first >= last) return;
  if (!runs.empty() && runs.back().second == first) {
    runs.back().second = last;
  } else {
    runs.emplace_back(first, last);
  }
}

}  // namespace

template <class Value>
class ProfileCompiler {
 public:
  ProfileCompiler(const Forest<Value>& forest, const MaskSpace& masks, const MaskScope& scope,
                  ProfileForest<Value>& out)
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
  }

  void compile() {
    for (const NodeIndex root : forest_.roots) {
      if (!contributes(root)) continue;
      out_.roots_.push_back(new_piece(root, everything_, false));
    }
  }

 private:
  [[nodiscard]] static std::size_t at(NodeIndex node) { return static_cast<std::size_t>(node); }
  [[nodiscard]] bool contributes(NodeIndex node) const { return below_[at(node)] != 0; }
  [[nodiscard]] int sensitive_axis(NodeIndex node) const {
    return axis_of_[static_cast<std::size_t>(forest_.test(node).feature)];
  }

  // Whether the node tells some masks of the scope from others.
  [[nodiscard]] bool separates(NodeIndex node) const {
    const int axis = sensitive_axis(node);
    return axis >= 0 && tells_apart(forest_.test(node), everything_[static_cast<std::size_t>(axis)],
                                    static_cast<std::size_t>(axis));
  }

  [[nodiscard]] bool tells_apart(const Test& test, const CellRuns& runs, std::size_t axis) const {
    const auto [left, right] = split(test, runs, axis);
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
    std::map<std::pair<Feature, bool>, std::vector<std::int32_t>> cuts;
    std::map<std::pair<Feature, bool>, bool> with_sets;
    for (const NodeIndex node : walked_nodes()) {
      const Test& test = forest_.test(node);
      if (test.cut < 0) with_sets[{test.feature, false}] = true;
      cuts[{test.feature, test.cut >= 0 && test.missing_left}].push_back(test.cut);
    }
    for (auto& [key, list] : cuts) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
      column_of_[key] = static_cast<std::uint16_t>(out_.columns_.size());
      out_.columns_.push_back(make_column(key.first, key.second, list, with_sets.contains(key)));
      if (out_.columns_.size() >= kSetCut)
        throw std::length_error("too many features to sample rows of masks");
    }
  }

  // The non-sensitive tests that some piece contains.
  [[nodiscard]] std::vector<NodeIndex> walked_nodes() const {
    std::vector<NodeIndex> found;
    std::vector<std::pair<NodeIndex, bool>> open;  // (node, below a sensitive test)
    for (const NodeIndex root : forest_.roots) open.emplace_back(root, false);
    while (!open.empty()) {
      const auto [node, below] = open.back();
      open.pop_back();
      if (forest_.is_leaf(node) || !(below || contributes(node))) continue;
      const bool sensitive = sensitive_axis(node) >= 0;
      if (!sensitive) found.push_back(node);
      open.emplace_back(forest_.left[at(node)], below || sensitive);
      open.emplace_back(forest_.right[at(node)], below || sensitive);
    }
    return found;
  }

  [[nodiscard]] Column make_column(Feature feature, bool missing_low,
                                   const std::vector<std::int32_t>& cuts, bool with_sets) const {
    const Axis& axis = forest_.axis(feature);
    Column column{feature, missing_low, {}};
    for (Cell cell = 0; cell < axis.n_cells; ++cell) {
      const auto rank = with_sets ? static_cast<std::ptrdiff_t>(cell)
                                  : std::upper_bound(cuts.begin(), cuts.end(), cell) - cuts.begin();
      if (rank + 1 >= kSetCut)
        throw std::length_error("too many cells on one feature to sample rows of masks");
      const bool low = missing_low && cell == axis.missing_cell;
      column.code_of_cell.push_back(low ? Code{0} : static_cast<Code>(rank + 1));
    }
    return column;
  }

  std::uint32_t new_piece(NodeIndex source, const MaskSet& masks, bool below_sensitive) {
    const auto index = static_cast<std::uint32_t>(out_.pieces_.size());
    out_.pieces_.emplace_back();
    std::vector<std::uint32_t> children;
    Piece piece;
    piece.root = new_nodes(1);
    piece.depth = place(source, piece.root, masks, below_sensitive, piece, children);
    piece.first_child = static_cast<std::uint32_t>(out_.children_.size());
    out_.children_.insert(out_.children_.end(), children.begin(), children.end());
    piece.last_child = static_cast<std::uint32_t>(out_.children_.size());
    out_.pieces_[index] = piece;
    return index;
  }

  std::uint32_t new_nodes(std::uint32_t n) {
    const auto first = static_cast<std::uint32_t>(out_.nodes_.size());
    for (std::uint32_t i = 0; i < n; ++i) out_.nodes_.push_back({0, kNoCut, first + i});
    out_.terminal_of_.resize(out_.nodes_.size(), -1);
    out_.set_of_.resize(out_.nodes_.size(), 0);
    return first;
  }

  // Writes the subtree of `source` at node `to`; returns the depth of its longest walk.
  std::uint32_t place(NodeIndex source, std::uint32_t to, const MaskSet& masks,
                      bool below_sensitive, Piece& piece, std::vector<std::uint32_t>& children) {
    source = skip_idle_tests(source, masks);
    if (!below_sensitive && !contributes(source)) return 0;
    if (forest_.is_leaf(source) || sensitive_axis(source) >= 0) {
      end_at(source, to, masks, children);
      return 0;
    }
    const std::uint32_t next = new_nodes(2);
    write_test(source, to, next, piece);
    const auto left =
        place(forest_.left[at(source)], next, masks, below_sensitive, piece, children);
    const auto right =
        place(forest_.right[at(source)], next + 1, masks, below_sensitive, piece, children);
    return 1 + std::max(left, right);
  }

  // Where the given masks go before a test tells them apart.
  [[nodiscard]] NodeIndex skip_idle_tests(NodeIndex node, const MaskSet& masks) const {
    while (!forest_.is_leaf(node) && sensitive_axis(node) >= 0) {
      const auto axis = static_cast<std::size_t>(sensitive_axis(node));
      const auto [left, right] = split(forest_.test(node), masks[axis], axis);
      if (!left.empty() && !right.empty()) break;
      node = right.empty() ? forest_.left[at(node)] : forest_.right[at(node)];
    }
    return node;
  }

  void write_test(NodeIndex source, std::uint32_t to, std::uint32_t next, Piece& piece) {
    const Test& test = forest_.test(source);
    const std::uint16_t column = column_of_.at({test.feature, test.cut >= 0 && test.missing_left});
    if (test.cut < 0) {
      piece.has_sets = true;
      out_.set_of_[to] = add_set(test, out_.columns_[column]);
      out_.nodes_[to] = {column, kSetCut, next};
      return;
    }
    // Left iff code < cut, where cut is the code of the first cell that goes right.
    const auto& codes = out_.columns_[column].code_of_cell;
    const auto first_right = static_cast<std::size_t>(test.cut);
    const std::uint16_t cut = first_right < codes.size()
                                  ? codes[first_right] == 0 ? last_code(codes) : codes[first_right]
                                  : last_code(codes);
    out_.nodes_[to] = {column, cut, next};
  }

  // One more than every code.
  [[nodiscard]] static std::uint16_t last_code(const std::vector<Code>& codes) {
    return static_cast<std::uint16_t>(*std::max_element(codes.begin(), codes.end()) + 1);
  }

  std::uint32_t add_set(const Test& test, const Column& column) {
    const auto start = static_cast<std::uint32_t>(out_.sets_.size());
    out_.sets_.push_back(0);  // code 0 is not used by columns with sets
    for (std::size_t cell = 0; cell < column.code_of_cell.size(); ++cell) {
      out_.sets_.push_back(forest_.goes_left(test, static_cast<Cell>(cell)) ? 1 : 0);
    }
    return start;
  }

  void end_at(NodeIndex source, std::uint32_t to, const MaskSet& masks,
              std::vector<std::uint32_t>& children) {
    std::vector<Emission<Value>> emissions;
    std::vector<std::uint32_t> pieces;
    attach(source, masks, emissions, pieces);
    tidy(emissions);
    if (emissions.empty() && pieces.empty()) return;
    Terminal terminal;
    terminal.first_emission = static_cast<std::uint32_t>(out_.emissions_.size());
    out_.emissions_.insert(out_.emissions_.end(), emissions.begin(), emissions.end());
    terminal.last_emission = static_cast<std::uint32_t>(out_.emissions_.size());
    terminal.first_piece = static_cast<std::uint32_t>(out_.terminal_pieces_.size());
    out_.terminal_pieces_.insert(out_.terminal_pieces_.end(), pieces.begin(), pieces.end());
    terminal.last_piece = static_cast<std::uint32_t>(out_.terminal_pieces_.size());
    children.insert(children.end(), pieces.begin(), pieces.end());
    out_.terminal_of_[to] = static_cast<std::int32_t>(out_.terminals_.size());
    out_.terminals_.push_back(terminal);
  }

  // What happens at `source` for the given masks: values to add, or pieces to walk.
  void attach(NodeIndex source, const MaskSet& masks, std::vector<Emission<Value>>& emissions,
              std::vector<std::uint32_t>& pieces) {
    source = skip_idle_tests(source, masks);
    if (forest_.is_leaf(source)) {
      emit(forest_.value(source), masks, emissions);
      return;
    }
    const int axis = sensitive_axis(source);
    if (axis < 0) {
      pieces.push_back(new_piece(source, masks, true));
      return;
    }
    const auto place = static_cast<std::size_t>(axis);
    auto sides = split(forest_.test(source), masks[place], place);
    MaskSet side = masks;
    side[place] = std::move(sides.first);
    attach(forest_.left[at(source)], side, emissions, pieces);
    side[place] = std::move(sides.second);
    attach(forest_.right[at(source)], side, emissions, pieces);
  }

  // The value on a product of cell sets, in difference form along every axis.
  void emit(const Value& value, const MaskSet& masks, std::vector<Emission<Value>>& out) {
    std::vector<std::pair<std::uint32_t, bool>> entries{{0, true}};  // (mask, positive)
    for (std::size_t axis = 0; axis < masks.size(); ++axis) {
      std::vector<std::pair<std::uint32_t, bool>> longer;
      for (const auto& [mask, positive] : entries) {
        for (const auto& [first, last] : masks[axis]) {
          longer.emplace_back(mask * out_.extents_[axis] + first, positive);
          if (last == out_.extents_[axis]) continue;
          longer.emplace_back(mask * out_.extents_[axis] + last, !positive);
        }
      }
      entries = std::move(longer);
    }
    for (const auto& [mask, positive] : entries) {
      // Entry 0 is the same for all masks: only differences of masks matter.
      if (mask != 0) out.push_back({mask, positive ? value : -value});
    }
  }

  static void tidy(std::vector<Emission<Value>>& emissions) {
    std::stable_sort(emissions.begin(), emissions.end(),
                     [](const auto& a, const auto& b) { return a.mask < b.mask; });
    std::vector<Emission<Value>> merged;
    for (const auto& emission : emissions) {
      if (!merged.empty() && merged.back().mask == emission.mask) {
        wrapping_add(merged.back().value, emission.value);
      } else {
        merged.push_back(emission);
      }
    }
    std::erase_if(merged, [](const auto& emission) { return emission.value == Value{}; });
    emissions = std::move(merged);
  }

  const Forest<Value>& forest_;
  const MaskScope& scope_;
  ProfileForest<Value>& out_;
  std::vector<int> axis_of_;  // per feature: its place among the sensitive ones, or -1
  std::vector<std::uint8_t> below_;
  MaskSet everything_;
  std::map<std::pair<Feature, bool>, std::uint16_t> column_of_;
};

template <class Value>
ProfileForest<Value>::ProfileForest(const Forest<Value>& forest, const MaskSpace& masks,
                                    const MaskScope& scope)
    : n_masks_(scope.n_masks()) {
  ProfileCompiler<Value>(forest, masks, scope, *this).compile();
}

template <class Value>
typename ProfileForest<Value>::Workspace ProfileForest<Value>::workspace(std::size_t block) const {
  Workspace work;
  work.everyone.resize(block);
  std::iota(work.everyone.begin(), work.everyone.end(), SampleIndex{0});
  work.queues.resize(pieces_.size());
  work.at.resize(block);
  return work;
}

template <class Value>
void ProfileForest<Value>::evaluate(std::span<const Code> codes, std::size_t block,
                                    std::size_t count, Workspace& work, std::span<Value> rows,
                                    bool as_jumps) const {
  const std::span<const SampleIndex> everyone(work.everyone.data(), count);
  for (const std::uint32_t root : roots_) run(root, everyone, codes, block, work, rows);
  if (as_jumps) return;
  for (std::size_t i = 0; i < count; ++i) integrate(rows.subspan(i * n_masks_, n_masks_));
}

template <class Value>
void ProfileForest<Value>::run(std::uint32_t index, std::span<const SampleIndex> samples,
                               std::span<const Code> codes, std::size_t block, Workspace& work,
                               std::span<Value> rows) const {
  const Piece& piece = pieces_[index];
  if (piece.has_sets) {
    walk<true>(piece, samples, codes.data(), block, work.at.data());
  } else {
    walk<false>(piece, samples, codes.data(), block, work.at.data());
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::int32_t found = terminal_of_[work.at[i]];
    if (found < 0) continue;
    const Terminal& terminal = terminals_[static_cast<std::size_t>(found)];
    Value* row = rows.data() + samples[i] * n_masks_;
    for (std::uint32_t e = terminal.first_emission; e < terminal.last_emission; ++e) {
      wrapping_add(row[emissions_[e].mask], emissions_[e].value);
    }
    for (std::uint32_t p = terminal.first_piece; p < terminal.last_piece; ++p) {
      work.queues[terminal_pieces_[p]].push_back(samples[i]);
    }
  }
  for (std::uint32_t c = piece.first_child; c < piece.last_child; ++c) {
    auto& queue = work.queues[children_[c]];
    if (queue.empty()) continue;
    run(children_[c], queue, codes, block, work, rows);
    queue.clear();
  }
}

// Walks eight samples side by side without branches: their loads overlap.
template <class Value>
template <bool kSets>
void ProfileForest<Value>::walk(const Piece& piece, std::span<const SampleIndex> samples,
                                const Code* codes, std::size_t block, std::uint32_t* at) const {
  constexpr std::size_t kLanes = 8;
  const WalkNode* nodes = nodes_.data();
  const std::size_t n = samples.size();
  for (std::size_t begin = 0; begin < n; begin += kLanes) {
    std::uint32_t node[kLanes];
    std::uint32_t sample[kLanes];
    for (std::size_t j = 0; j < kLanes; ++j) {
      node[j] = piece.root;
      sample[j] = samples[std::min(begin + j, n - 1)];
    }
    for (std::uint32_t level = 0; level < piece.depth; ++level) {
      for (std::size_t j = 0; j < kLanes; ++j) {
        const WalkNode step = nodes[node[j]];
        const Code code = codes[step.column * block + sample[j]];
        std::uint32_t right = code >= step.cut ? 1U : 0U;
        if constexpr (kSets) {
          if (step.cut == kSetCut) right = sets_[set_of_[node[j]] + code] != 0 ? 0U : 1U;
        }
        node[j] = step.next + right;
      }
    }
    for (std::size_t j = 0; j < kLanes && begin + j < n; ++j) at[begin + j] = node[j];
  }
}

// Difference form -> values: a prefix sum along every axis.
template <class Value>
void ProfileForest<Value>::integrate(std::span<Value> row) const {
  std::size_t stride = 1;
  for (std::size_t axis = extents_.size(); axis-- > 0;) {
    const std::size_t span = stride * extents_[axis];
    for (std::size_t start = 0; start < row.size(); start += span) {
      for (std::size_t i = start + stride; i < start + span; ++i) {
        wrapping_add(row[i], row[i - stride]);
      }
    }
    stride = span;
  }
}

template class ProfileForest<std::int64_t>;
template class ProfileForest<Int128>;
template class ProfileForest<Int2304>;

}  // namespace xcount

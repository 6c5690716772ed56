#include "xcount/sampling/region_trees.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace xcount {

template <class Value>
class RegionCompiler {
 public:
  RegionCompiler(const std::vector<Feature>& sensitive, bool whole, RegionTrees<Value>& out)
      : sensitive_(sensitive), whole_(whole), out_(out) {
    out_.values_.push_back(Value{});
  }

  void compile(const Forest<Value>& forest, std::uint32_t sum) {
    forest_ = &forest;
    set_of_.clear();  // a forest numbers its own sets
    cell_set_of_.clear();
    place_axes();
    find_contributing();
    for (const NodeIndex root : forest.roots) {
      const bool contributes = contributes_[static_cast<std::size_t>(root)] != 0;
      out_.tells_masks_apart_ = out_.tells_masks_apart_ || contributes;
      if (!contributes && !whole_) continue;
      out_.roots_.push_back(place(root, whole_));
      out_.sum_of_.push_back(sum);
    }
  }

 private:
  using Node = typename RegionTrees<Value>::Node;

  void place_axes() {
    axis_of_.assign(forest_->axes.size(), -1);
    for (std::size_t i = 0; i < sensitive_.size(); ++i) {
      if (sensitive_[i] < 0 || static_cast<std::size_t>(sensitive_[i]) >= axis_of_.size()) {
        throw std::invalid_argument("regions: a sensitive feature is out of range");
      }
      axis_of_[static_cast<std::size_t>(sensitive_[i])] = static_cast<int>(i);
    }
  }

  // Children have larger indices, so one backward pass sees them first.
  void find_contributing() {
    const Forest<Value>& forest = *forest_;
    contributes_.assign(forest.n_nodes(), 0);
    for (std::size_t i = forest.n_nodes(); i-- > 0;) {
      const auto node = static_cast<NodeIndex>(i);
      if (forest.is_leaf(node)) continue;
      contributes_[i] = axis_of(node) >= 0 ||
                        contributes_[static_cast<std::size_t>(forest.left[i])] != 0 ||
                        contributes_[static_cast<std::size_t>(forest.right[i])] != 0;
    }
  }

  [[nodiscard]] int axis_of(NodeIndex node) const {
    return axis_of_[static_cast<std::size_t>(forest_->test(node).feature)];
  }

  // What no sensitive test is above or below is the same for all masks, and counts as 0 unless
  // it is kept.
  std::uint32_t place(NodeIndex source, bool keep) {
    const auto at = static_cast<std::size_t>(source);
    const auto index = static_cast<std::uint32_t>(out_.nodes_.size());
    out_.nodes_.push_back({RegionTrees<Value>::kLeafColumn, 0, 0, 0});
    if (!keep && contributes_[at] == 0) return index;
    if (forest_->is_leaf(source)) {
      out_.nodes_[index].low = static_cast<std::uint32_t>(out_.values_.size());
      out_.values_.push_back(forest_->value(source));
      return index;
    }
    const int axis = axis_of(source);
    const Test& test = forest_->test(source);
    Node node;
    node.column = axis >= 0 ? -1 - axis : column(test);
    node.cut = axis >= 0 ? sensitive_cut(test) : plain_cut(test);
    node.low = place(forest_->left[at], keep || axis >= 0);
    node.high = place(forest_->right[at], keep || axis >= 0);
    out_.nodes_[index] = node;
    return index;
  }

  std::int32_t column(const Test& test) {
    const bool missing_low = test.cut >= 0 && test.missing_left;
    const auto [found, is_new] =
        column_of_.try_emplace({test.feature, missing_low}, out_.columns_.size());
    if (is_new) out_.columns_.push_back({test.feature, missing_low});
    return static_cast<std::int32_t>(found->second);
  }

  std::int32_t plain_cut(const Test& test) {
    if (test.cut >= 0) return test.cut;
    const auto [found, is_new] = set_of_.try_emplace({test.feature, test.cut}, out_.sets_.size());
    if (is_new) {
      for (Cell cell = 0; cell < forest_->axis(test.feature).n_cells; ++cell) {
        out_.sets_.push_back(forest_->goes_left(test, cell) ? 1 : 0);
      }
    }
    return -1 - static_cast<std::int32_t>(found->second);
  }

  // A prefix of the axis stays a cut.
  std::int32_t sensitive_cut(const Test& test) {
    const Axis& axis = forest_->axis(test.feature);
    if (test.cut >= 0 && !(test.missing_left && axis.missing_cell >= 0)) return test.cut;
    const std::int32_t key = test.cut < 0 ? test.cut : 1 + test.cut;
    const auto [found, is_new] =
        cell_set_of_.try_emplace({test.feature, key}, out_.cell_sets_.size());
    if (is_new && test.cut >= 0) {
      out_.cell_sets_.push_back({test.cut, axis.missing_cell, 0});
    } else if (is_new) {
      out_.cell_sets_.push_back({-1, -1, out_.counts_.size()});
      std::int32_t count = 0;
      out_.counts_.push_back(0);
      for (Cell cell = 0; cell < axis.n_cells; ++cell) {
        count += forest_->goes_left(test, cell) ? 1 : 0;
        out_.counts_.push_back(count);
      }
    }
    return -1 - static_cast<std::int32_t>(found->second);
  }

  const Forest<Value>* forest_ = nullptr;
  const std::vector<Feature>& sensitive_;
  bool whole_;
  RegionTrees<Value>& out_;
  std::vector<int> axis_of_;  // per feature: its place among the sensitive ones, or -1
  std::vector<std::uint8_t> contributes_;
  std::map<std::pair<Feature, bool>, std::size_t> column_of_;
  std::map<std::pair<Feature, std::int32_t>, std::size_t> set_of_, cell_set_of_;
};

template <class Value>
RegionTrees<Value>::RegionTrees(std::span<const Forest<Value>* const> forests,
                                const std::vector<Feature>& sensitive, bool whole) {
  RegionCompiler<Value> compiler(sensitive, whole, *this);
  for (std::size_t sum = 0; sum < forests.size(); ++sum) {
    compiler.compile(*forests[sum], static_cast<std::uint32_t>(sum));
  }
}

template <class Value>
void Residue<Value>::set_difference(const Residue& a, const Residue& b) {
  nodes = a.nodes;
  roots = a.roots;
  const auto shift = static_cast<std::uint32_t>(nodes.size());
  for (const ResidueNode<Value>& node : b.nodes) {
    nodes.push_back(
        {node.axis, node.cut, node.low + shift, node.high + shift, -node.max, -node.min});
  }
  for (const std::uint32_t root : b.roots) roots.push_back(root + shift);
  offset = a.offset - b.offset;
  least = a.least - b.most;
  most = a.most - b.least;
}

template <class Value>
typename RegionTrees<Value>::Side RegionTrees<Value>::side(std::int32_t cut,
                                                           const CellRange& range) const {
  if (cut >= 0) {
    if (range.high <= cut) return Side::kLow;
    return range.low >= cut ? Side::kHigh : Side::kBoth;
  }
  const CellSet& set = cell_sets_[static_cast<std::size_t>(-1 - cut)];
  std::int32_t inside = 0;
  if (set.cut >= 0) {
    inside = std::min(range.high, set.cut) - std::min(range.low, set.cut) +
             (range.contains(set.missing) ? 1 : 0);
  } else {
    const std::int32_t* counts = counts_.data() + set.first_count;
    inside = counts[range.high] - counts[range.low];
  }
  if (inside == 0) return Side::kHigh;
  return inside == range.high - range.low ? Side::kLow : Side::kBoth;
}

template <class Value>
std::uint32_t RegionTrees<Value>::leaf(const Value& value, Residue<Value>& out) {
  const auto index = static_cast<std::uint32_t>(out.nodes.size());
  out.nodes.push_back({-1, 0, 0, 0, value, value});
  return index;
}

// A test that tells cells of the box apart; its sides are grown on their parts of the box.
template <class Value>
template <class Low, class High>
std::uint32_t RegionTrees<Value>::branch(std::size_t axis, std::int32_t cut, MaskBox& box,
                                         Residue<Value>& out, Low grow_low, High grow_high) const {
  const CellRange range = box[axis];
  if (cut >= 0) box[axis].high = cut;
  const std::uint32_t low = grow_low();
  box[axis] = range;
  if (cut >= 0) box[axis].low = cut;
  const std::uint32_t high = grow_high();
  box[axis] = range;
  const auto& a = out.nodes[low];
  const auto& b = out.nodes[high];
  if (a.axis < 0 && b.axis < 0 && a.min == b.min) {
    out.nodes.pop_back();
    return low;
  }
  const auto index = static_cast<std::uint32_t>(out.nodes.size());
  out.nodes.push_back({static_cast<std::int32_t>(axis), cut, low, high, std::min(a.min, b.min),
                       std::max(a.max, b.max)});
  return index;
}

template <class Value>
std::uint32_t RegionTrees<Value>::grow(std::uint32_t index, std::span<const Cell> cells,
                                       MaskBox& box, Residue<Value>& out) const {
  for (;;) {
    const Node& node = nodes_[index];
    if (node.column >= 0) {
      const Cell cell = cells[static_cast<std::size_t>(node.column)];
      const bool low = node.cut >= 0 ? cell < node.cut
                                     : sets_[static_cast<std::size_t>(-1 - node.cut + cell)] != 0;
      index = low ? node.low : node.high;
      continue;
    }
    if (node.column == kLeafColumn) return leaf(values_[node.low], out);
    const auto axis = static_cast<std::size_t>(-1 - node.column);
    const Side where = side(node.cut, box[axis]);
    if (where == Side::kBoth) {
      return branch(
          axis, node.cut, box, out, [&] { return grow(node.low, cells, box, out); },
          [&] { return grow(node.high, cells, box, out); });
    }
    index = where == Side::kLow ? node.low : node.high;
  }
}

template <class Value>
std::uint32_t RegionTrees<Value>::regrow(const Residue<Value>& from, std::uint32_t index,
                                         MaskBox& box, Residue<Value>& out) const {
  for (;;) {
    const ResidueNode<Value>& node = from.nodes[index];
    if (node.axis < 0) return leaf(node.min, out);
    const auto axis = static_cast<std::size_t>(node.axis);
    const Side where = side(node.cut, box[axis]);
    if (where == Side::kBoth) {
      return branch(
          axis, node.cut, box, out, [&] { return regrow(from, node.low, box, out); },
          [&] { return regrow(from, node.high, box, out); });
    }
    index = where == Side::kLow ? node.low : node.high;
  }
}

template <class Value>
void RegionTrees<Value>::add_root(std::uint32_t root, Residue<Value>& out) {
  const auto& node = out.nodes[root];
  out.least += node.min;
  out.most += node.max;
  if (node.axis >= 0) {
    out.roots.push_back(root);
  } else {
    out.offset += node.min;
    out.nodes.resize(root);
  }
}

template <class Value>
void RegionTrees<Value>::restrict(std::size_t tree, std::span<const Cell> cells, MaskBox& box,
                                  Residue<Value>& out) const {
  add_root(grow(roots_[tree], cells, box, out), out);
}

template <class Value>
void RegionTrees<Value>::narrow(const Residue<Value>& from, MaskBox& box,
                                Residue<Value>& out) const {
  out.clear();
  out.offset = out.least = out.most = from.offset;
  for (const std::uint32_t root : from.roots) add_root(regrow(from, root, box, out), out);
}

template <class Value>
Value RegionTrees<Value>::value_at(const Residue<Value>& residue,
                                   std::span<const Cell> mask) const {
  Value sum = residue.offset;
  for (std::uint32_t index : residue.roots) {
    while (residue.nodes[index].axis >= 0) {
      const ResidueNode<Value>& node = residue.nodes[index];
      const Cell cell = mask[static_cast<std::size_t>(node.axis)];
      const bool low = side(node.cut, {cell, cell + 1}) == Side::kLow;
      index = low ? node.low : node.high;
    }
    sum += residue.nodes[index].min;
  }
  return sum;
}

template struct Residue<std::int64_t>;
template struct Residue<Int128>;
template struct Residue<Int2304>;
template class RegionTrees<std::int64_t>;
template class RegionTrees<Int128>;
template class RegionTrees<Int2304>;

}  // namespace xcount

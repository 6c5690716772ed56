#include "xcount/sampling/region_search.hpp"

#include <algorithm>

namespace xcount {

namespace {

constexpr std::size_t kMaxBoxes = 64;  // of a ball; beyond it, boxes are wider than need be

}  // namespace

std::int64_t Ball::distance(std::size_t i, const CellRange& range) const {
  const Axis& axis = axes[i];
  const Cell cell = centre[i];
  if (range.contains(cell)) return 0;
  if (!axis.coordinates.empty()) {
    std::int64_t least = axis.furthest();
    for (Cell other = range.low; other < range.high; ++other) {
      least = std::min(least, axis.distance(cell, other));
    }
    return least;
  }
  if (!axis.ordered || cell == axis.missing_cell || range.contains(axis.missing_cell)) return 1;
  return axis.distance(cell, cell < range.low ? range.low : range.high - 1);
}

bool Ball::meets(const MaskBox& box) const {
  if (radius == kEverywhere) return true;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < box.size(); ++i) total += distance(i, box[i]);
  return total <= radius;
}

std::vector<MaskBox> Ball::boxes() const {
  std::vector<MaskBox> found{MaskBox{}};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Axis& axis = axes[i];
    std::vector<CellRange> ranges{{0, axis.n_cells}};
    if (radius != kEverywhere && axis.ordered && centre[i] != axis.missing_cell) {
      const auto [first, last] = axis.near(centre[i], radius);
      ranges[0] = {first, last};
      if (axis.missing_cell >= 0 && 2 * found.size() <= kMaxBoxes) {
        ranges.push_back({axis.missing_cell, axis.n_cells});
      } else if (axis.missing_cell >= 0) {
        ranges[0].high = axis.n_cells;  // the missing cell is the last
      }
    }
    std::vector<MaskBox> longer;
    for (const MaskBox& box : found) {
      for (const CellRange& range : ranges) {
        longer.push_back(box);
        longer.back().push_back(range);
      }
    }
    found = std::move(longer);
    std::erase_if(found, [&](const MaskBox& box) { return !meets(box); });
  }
  return found;
}

template <class Value>
bool RegionSearch<Value>::run(const Residue<Value>& residue, const MaskBox& box, const Ball& ball,
                              std::span<const Value> values, std::span<Answer> answers,
                              std::uint64_t& budget) {
  ball_ = &ball;
  values_ = values;
  answers_ = answers;
  budget_ = &budget;
  update_open();
  if (any_open_ && ball.radius == Ball::kEverywhere) compare_with_each_other();
  return !any_open_ || !is_open(residue) || explore(residue, box, 0);
}

// Where every mask is a neighbour, so are those whose values are given.
template <class Value>
void RegionSearch<Value>::compare_with_each_other() {
  const auto [least, most] = std::minmax_element(values_.begin(), values_.end());
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (gap_.may_exceed(*least - values_[i], *most - values_[i])) answers_[i] = Answer::kSensitive;
  }
  update_open();
}

template <class Value>
void RegionSearch<Value>::update_open() {
  any_open_ = false;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (answers_[i] != Answer::kOpen) continue;
    if (!any_open_ || values_[i] < lowest_) lowest_ = values_[i];
    if (!any_open_ || highest_ < values_[i]) highest_ = values_[i];
    any_open_ = true;
  }
}

template <class Value>
bool RegionSearch<Value>::can_differ(const Residue<Value>& residue) const {
  return any_open_ && gap_.may_exceed(residue.least - highest_, residue.most - lowest_);
}

template <class Value>
Value RegionSearch<Value>::promise(const Residue<Value>& residue) const {
  return std::max(residue.most - lowest_, highest_ - residue.least);
}

template <class Value>
bool RegionSearch<Value>::is_open(const Residue<Value>& residue) {
  if (!can_differ(residue)) return false;
  if (gap_.must_exceed(residue.least - lowest_, residue.most - highest_)) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (gap_.must_exceed(residue.least - values_[i], residue.most - values_[i])) {
        answers_[i] = Answer::kSensitive;
      }
    }
    update_open();
  }
  return !residue.is_constant() && can_differ(residue);
}

// Splits the box and looks into the more promising half first.
template <class Value>
bool RegionSearch<Value>::explore(const Residue<Value>& residue, const MaskBox& box,
                                  std::size_t depth) {
  const std::uint64_t cost = 2 * residue.nodes.size();
  if (*budget_ < cost) {
    *budget_ = 0;
    return false;
  }
  *budget_ -= cost;
  const Split split = choose_split(residue, box);
  Level* halves[2] = {&level(2 * depth), &level(2 * depth + 1)};
  bool open[2];
  for (const std::size_t half : {0, 1}) {
    Level& part = *halves[half];
    part.box = box;
    CellRange& range = part.box[split.axis];
    (half == 0 ? range.high : range.low) = split.at;
    open[half] = ball_->meets(part.box);
    if (!open[half]) continue;
    trees_.narrow(residue, part.box, part.residue);
    open[half] = is_open(part.residue);
  }
  const bool swap = open[0] && open[1] && promise(halves[0]->residue) < promise(halves[1]->residue);
  for (const std::size_t turn : {0, 1}) {
    const std::size_t half = swap ? 1 - turn : turn;
    if (!open[half] || !can_differ(halves[half]->residue)) continue;
    if (!explore(halves[half]->residue, halves[half]->box, depth + 1)) return false;
  }
  return true;
}

template <class Value>
typename RegionSearch<Value>::Level& RegionSearch<Value>::level(std::size_t index) {
  while (levels_.size() <= index) levels_.push_back(std::make_unique<Level>());
  return *levels_[index];
}

// The axis whose tests at the roots carry the most range, at the median of their cuts.
template <class Value>
typename RegionSearch<Value>::Split RegionSearch<Value>::choose_split(const Residue<Value>& residue,
                                                                      const MaskBox& box) {
  scores_.resize(box.size());
  for (const std::uint32_t root : residue.roots) {
    const auto& node = residue.nodes[root];
    scores_.add(static_cast<std::uint32_t>(node.axis), node.cut, range_of(node));
  }
  const RootScores::Choice choice = scores_.choose();
  const std::size_t axis = choice.feature;
  const CellRange range = box[axis];
  cuts_.clear();
  for (const std::uint32_t root : residue.roots) {
    const auto& node = residue.nodes[root];
    if (static_cast<std::size_t>(node.axis) != axis) continue;
    // A test that is no prefix may tell any two cells apart.
    const Cell at = node.cut >= 0 ? node.cut : range.low + (range.high - range.low) / 2;
    cuts_.emplace_back(at, range_of(node));
  }
  std::sort(cuts_.begin(), cuts_.end());
  double left = choice.total / 2;
  for (const auto& [at, weight] : cuts_) {
    left -= weight;
    if (left <= 0) return {axis, at};
  }
  return {axis, cuts_.back().first};
}

template class RegionSearch<std::int64_t>;
template class RegionSearch<Int128>;
template class RegionSearch<Int2304>;

}  // namespace xcount

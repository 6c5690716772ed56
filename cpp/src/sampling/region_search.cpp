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

std::vector<Cell> Ball::nearest(const MaskBox& box) const {
  std::vector<Cell> mask;
  for (std::size_t i = 0; i < box.size(); ++i) {
    Cell best = box[i].low;
    for (Cell cell = box[i].low; cell < box[i].high; ++cell) {
      if (axes[i].distance(centre[i], cell) < axes[i].distance(centre[i], best)) best = cell;
    }
    mask.push_back(best);
  }
  return mask;
}

std::int64_t Ball::distance(std::span<const Cell> mask) const {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < mask.size(); ++i) total += axes[i].distance(centre[i], mask[i]);
  return total;
}

bool Ball::meets(const MaskBox& box) const {
  if (radius == kEverywhere) return true;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < box.size(); ++i) total += distance(i, box[i]);
  return total <= radius;
}

void Ball::trim(MaskBox& box) const {
  if (radius == kEverywhere) return;
  std::int64_t left = radius;
  for (std::size_t i = 0; i < box.size(); ++i) left -= distance(i, box[i]);
  for (std::size_t i = 0; i < box.size(); ++i) {
    const Axis& axis = axes[i];
    const bool is_plain = axis.ordered && axis.coordinates.empty() &&
                          centre[i] != axis.missing_cell && !box[i].contains(axis.missing_cell);
    if (!is_plain) continue;
    const auto [first, last] = axis.near(centre[i], left + distance(i, box[i]));
    box[i].low = std::max(box[i].low, first);
    box[i].high = std::min(box[i].high, last);
  }
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
bool RegionSearch<Value>::run(std::span<Residue<Value>> residues, const MaskBox& box,
                              const Ball& ball, const Starts& starts, std::uint64_t& budget,
                              Stop& stop) {
  ball_ = &ball;
  starts_ = starts;
  budget_ = &budget;
  stop_ = &stop;
  is_in_doubt_ = false;
  narrowest_.resize(chance_ == nullptr ? residues.size() : 1);
  update_open();
  if (!any_open_) return true;
  Level& top = level(0);
  top.box = box;
  top.sums.clear();
  top.n_live = residues.size();
  if (top.residues.size() < residues.size()) top.residues.resize(residues.size());
  for (std::size_t sum = 0; sum < residues.size(); ++sum) {
    std::swap(top.residues[sum], residues[sum]);
    top.sums.push_back(sum);
  }
  update_chance(top);
  return (!is_open(top) || explore(top, 0)) && !is_in_doubt_;
}

template <class Value>
void RegionSearch<Value>::update_open() {
  any_open_ = false;
  std::fill(narrowest_.begin(), narrowest_.end(), Tolerance<Value>{});
  const std::size_t n_sums = narrowest_.size();
  for (std::size_t i = 0; i < starts_.answers.size(); ++i) {
    if (starts_.answers[i] != Answer::kOpen) continue;
    for (std::size_t sum = 0; sum < n_sums; ++sum) {
      const Tolerance<Value>& own = starts_.tolerances[i * n_sums + sum];
      Tolerance<Value>& ends = narrowest_[sum];
      ends.low = std::max(ends.low, own.low);
      ends.high = std::min(ends.high, own.high);
      ends.sure_low = std::max(ends.sure_low, own.sure_low);
      ends.sure_high = std::min(ends.sure_high, own.sure_high);
    }
    any_open_ = true;
  }
}

template <class Value>
void RegionSearch<Value>::update_chance(Level& level) const {
  if (chance_ == nullptr) return;
  double least = 0.0;
  double most = 0.0;
  for (std::size_t i = 0; i < level.n_live; ++i) {
    least += chance_->weight_of(level.residues[i].least);
    most += chance_->weight_of(level.residues[i].most);
  }
  level.least = ToleranceRule<Value>::chance_of(most);
  level.most = ToleranceRule<Value>::chance_of(least);
}

template <class Value>
bool RegionSearch<Value>::can_differ(const Level& level) const {
  if (!any_open_) return false;
  for (std::size_t i = 0; i < n_asked(level); ++i) {
    if (narrowest_[asked(level, i)].may_differ(least(level, i), most(level, i))) return true;
  }
  return false;
}

// How far beyond a tolerance a sum of the box may be.
template <class Value>
Value RegionSearch<Value>::promise(const Level& level) const {
  Value best = -ValueTraits<Value>::infinity();
  for (std::size_t i = 0; i < n_asked(level); ++i) {
    const Tolerance<Value>& ends = narrowest_[asked(level, i)];
    best = std::max({best, most(level, i) - ends.high, ends.low - least(level, i)});
  }
  return best;
}

template <class Value>
void RegionSearch<Value>::mark_sure(const Level& level) {
  bool any = false;
  const std::size_t n_sums = narrowest_.size();
  for (std::size_t i = 0; i < n_asked(level); ++i) {
    const std::size_t sum = asked(level, i);
    // Some open answer may be decided iff the narrowest of all ends is passed.
    if (!narrowest_[sum].must_differ(least(level, i), most(level, i))) continue;
    for (std::size_t k = 0; k < starts_.answers.size(); ++k) {
      if (starts_.answers[k] != Answer::kOpen) continue;
      const Tolerance<Value>& own = starts_.tolerances[k * n_sums + sum];
      if (!own.must_differ(least(level, i), most(level, i))) continue;
      starts_.answers[k] = Answer::kSensitive;
      found_ = level.box;
      any = true;
    }
  }
  if (any) update_open();
}

template <class Value>
bool RegionSearch<Value>::is_open(Level& level) {
  if (!can_differ(level)) return false;
  mark_sure(level);
  if (!any_open_) return false;
  if (chance_ == nullptr) return keep_live(level);
  if (!can_differ(level)) return false;
  const auto end = level.residues.begin() + static_cast<std::ptrdiff_t>(level.n_live);
  const bool varies =
      std::any_of(level.residues.begin(), end, [](const auto& r) { return !r.is_constant(); });
  is_in_doubt_ = is_in_doubt_ || !varies;
  return varies;
}

// Keeps the sums that may differ; returns whether any of them varies.
template <class Value>
bool RegionSearch<Value>::keep_live(Level& level) {
  std::size_t kept = 0;
  bool varies = false;
  for (std::size_t i = 0; i < level.n_live; ++i) {
    const Residue<Value>& residue = level.residues[i];
    if (!narrowest_[level.sums[i]].may_differ(residue.least, residue.most)) continue;
    if (residue.is_constant()) {
      is_in_doubt_ = true;  // one sum, neither surely beyond a tolerance nor surely within it
      continue;
    }
    varies = true;
    if (kept != i) {
      std::swap(level.residues[kept], level.residues[i]);
      level.sums[kept] = level.sums[i];
    }
    ++kept;
  }
  level.n_live = kept;
  return varies;
}

template <class Value>
void RegionSearch<Value>::narrow(const Level& from, Level& part) {
  part.n_live = from.n_live;
  part.sums.assign(from.sums.begin(), from.sums.begin() + static_cast<std::ptrdiff_t>(from.n_live));
  if (part.residues.size() < from.n_live) part.residues.resize(from.n_live);
  for (std::size_t i = 0; i < from.n_live; ++i) {
    trees_.narrow(from.residues[i], part.box, part.residues[i]);
  }
  update_chance(part);
}

// Splits the box and looks into the more promising half first.
template <class Value>
bool RegionSearch<Value>::explore(const Level& whole, std::size_t depth) {
  std::uint64_t cost = 0;
  for (std::size_t i = 0; i < whole.n_live; ++i) cost += 2 * whole.residues[i].nodes.size();
  if (*budget_ < cost || stop_->is_over()) {
    *budget_ = 0;
    return false;
  }
  *budget_ -= cost;
  const Split split = choose_split(whole);
  Level* halves[2] = {&level(2 * depth + 1), &level(2 * depth + 2)};
  bool open[2];
  for (const std::size_t half : {0U, 1U}) {
    Level& part = *halves[half];
    part.box = whole.box;
    CellRange& range = part.box[split.axis];
    (half == 0 ? range.high : range.low) = split.at;
    open[half] = ball_->meets(part.box);
    if (!open[half]) continue;
    ball_->trim(part.box);
    narrow(whole, part);
    open[half] = is_open(part);
  }
  const bool swap = open[0] && open[1] && promise(*halves[0]) < promise(*halves[1]);
  for (const std::size_t turn : {0U, 1U}) {
    const std::size_t half = swap ? 1 - turn : turn;
    if (!open[half] || !can_differ(*halves[half])) continue;
    if (!explore(*halves[half], depth + 1)) return false;
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
typename RegionSearch<Value>::Split RegionSearch<Value>::choose_split(const Level& level) {
  const auto for_each_root = [&](auto visit) {
    for (std::size_t i = 0; i < level.n_live; ++i) {
      const Residue<Value>& residue = level.residues[i];
      for (const std::uint32_t root : residue.roots) visit(residue.nodes[root]);
    }
  };
  scores_.resize(level.box.size());
  for_each_root([&](const auto& node) {
    scores_.add(static_cast<std::uint32_t>(node.axis), node.cut, range_of(node));
  });
  const RootScores::Choice choice = scores_.choose();
  const std::size_t axis = choice.feature;
  const CellRange range = level.box[axis];
  cuts_.clear();
  for_each_root([&](const auto& node) {
    if (static_cast<std::size_t>(node.axis) != axis) return;
    // A test that is no prefix may tell any two cells apart.
    const Cell at = node.cut >= 0 ? node.cut : range.low + (range.high - range.low) / 2;
    cuts_.emplace_back(at, range_of(node));
  });
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

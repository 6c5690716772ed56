#include "xcount/sampling/mask_decider.hpp"

#include <algorithm>

namespace xcount {

namespace {

constexpr std::size_t kMaxPairs = 100'000'000;
constexpr std::size_t kMaxMasks = std::size_t{1} << 24;

// Sliding maximum (or minimum) of windows of `width` entries, in log(width) passes: afterwards
// data[i] is the best of data[i .. i + width - 1], cut off at the end.
template <class Value, class Better>
void slide(std::span<Value> data, std::size_t width, Better better) {
  const std::size_t n = data.size();
  std::size_t done = 1;
  while (done < width) {
    const std::size_t step = std::min(done, width - done);
    for (std::size_t i = 0; i + step < n; ++i) {
      if (better(data[i + step], data[i])) data[i] = data[i + step];
    }
    done += step;
  }
}

}  // namespace

MaskScope::MaskScope(const Topology& forest, const MaskSpace& masks, const MaskQuestion& question) {
  std::vector<std::vector<std::uint8_t>> used;
  for (const Feature feature : masks.sensitive()) {
    const auto n_cells = static_cast<std::size_t>(forest.axis(feature).n_cells);
    used.emplace_back(n_cells, question.all_pairs ? std::uint8_t{1} : std::uint8_t{0});
  }
  for (const auto& pair : question.pairs) {
    for (const MaskIndex mask : {pair.first, pair.second}) {
      const std::vector<Cell> cells = masks.cells(mask);
      for (std::size_t i = 0; i < cells.size(); ++i)
        used[i][static_cast<std::size_t>(cells[i])] = 1;
    }
  }
  for (const auto& flags : used) {
    std::vector<Cell> kept;
    for (std::size_t c = 0; c < flags.size(); ++c) {
      if (flags[c] != 0) kept.push_back(static_cast<Cell>(c));
    }
    if (kept.empty()) kept.push_back(0);
    if (n_masks_ > kMaxMasks / kept.size())
      throw std::length_error("too many masks to sample; ask about fewer sensitive features");
    n_masks_ *= kept.size();
    cells_.push_back(std::move(kept));
  }
}

std::uint32_t MaskScope::index(const MaskSpace& masks, MaskIndex mask) const {
  const std::vector<Cell> cells = masks.cells(mask);
  std::size_t result = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto found = std::lower_bound(cells_[i].begin(), cells_[i].end(), cells[i]);
    if (found == cells_[i].end() || *found != cells[i]) {
      throw std::invalid_argument("sampling: an unresolved mask is in none of the pairs");
    }
    result = result * cells_[i].size() + static_cast<std::size_t>(found - cells_[i].begin());
  }
  return static_cast<std::uint32_t>(result);
}

template <class Value>
MaskDecider<Value>::MaskDecider(const Topology& forest, const MaskSpace& masks,
                                const MaskScope& scope, const MaskQuestion& question,
                                const Gap<Value>& gap)
    : gap_(gap) {
  if (!question.all_pairs) {
    kind_ = Kind::kPairs;
    for (const auto& [a, b] : question.pairs) {
      pairs_.emplace_back(scope.index(masks, a), scope.index(masks, b));
    }
    if (scope.cells().size() == 1 && !gap_.has_direction()) take_jumps(scope.n_masks());
    return;
  }
  const std::vector<Feature>& sensitive = masks.sensitive();
  std::int64_t diameter = 0;
  for (const Feature feature : sensitive) diameter += forest.axis(feature).furthest();
  if (masks.limit() >= diameter) return;
  if (sensitive.size() == 1 && forest.axis(sensitive[0]).regular()) {
    const Axis& axis = forest.axis(sensitive[0]);
    if (axis.ordered && axis.missing_cell < 0 && masks.limit() == 1 && !gap_.has_direction()) {
      kind_ = Kind::kJumps;
      matters_.assign(scope.n_masks(), 1);
      return;
    }
    kind_ = Kind::kWindow;
    n_ordered_ = static_cast<std::size_t>(axis.n_ordered());
    reach_ = static_cast<std::size_t>(masks.limit());
    return;
  }
  kind_ = Kind::kPairs;
  list_neighbours(masks);
}

// If all pairs are of next masks of the scope, jumps decide them.
template <class Value>
void MaskDecider<Value>::take_jumps(std::size_t n_masks) {
  matters_.assign(n_masks, 0);
  for (const auto& [a, b] : pairs_) {
    const auto [low, high] = std::minmax(a, b);
    if (high != low + 1) return;
    matters_[high] = 1;
  }
  kind_ = Kind::kJumps;
}

template <class Value>
void MaskDecider<Value>::list_neighbours(const MaskSpace& masks) {
  for (MaskIndex mask = 0; mask < masks.size(); ++mask) {
    for (const MaskIndex other : masks.neighbours(mask)) {
      if (other > mask) {
        pairs_.emplace_back(static_cast<std::uint32_t>(mask), static_cast<std::uint32_t>(other));
      }
    }
    if (pairs_.size() > kMaxPairs)
      throw std::length_error(
          "too many pairs of masks to sample; ask about a smaller distance, or any");
  }
}

template <class Value>
typename MaskDecider<Value>::Workspace MaskDecider<Value>::workspace() const {
  if (kind_ != Kind::kWindow) return {};
  return {std::vector<Value>(n_ordered_), std::vector<Value>(n_ordered_)};
}

template <class Value>
bool MaskDecider<Value>::decide(std::span<const Value> row, Workspace& work,
                                std::span<std::uint8_t> sensitive) const {
  if (kind_ == Kind::kJumps) return decide_by_jumps(row, sensitive);
  Value low = row[0];
  Value high = row[0];
  for (const Value& value : row) {
    if (value < low) low = value;
    if (high < value) high = value;
  }
  if (!(high - low > gap_.threshold())) {
    std::fill(sensitive.begin(), sensitive.end(), std::uint8_t{0});
    return false;
  }
  switch (kind_) {
    case Kind::kEveryone:
      for (std::size_t m = 0; m < row.size(); ++m) {
        sensitive[m] = gap_.may_exceed(low - row[m], high - row[m]);
      }
      return true;
    case Kind::kJumps:  // decided above
      break;
    case Kind::kWindow:
      decide_by_window(row, work, sensitive);
      break;
    case Kind::kPairs:
      decide_by_pairs(row, sensitive);
      break;
  }
  return std::any_of(sensitive.begin(), sensitive.end(), [](std::uint8_t s) { return s != 0; });
}

template <class Value>
bool MaskDecider<Value>::decide_by_jumps(std::span<const Value> row,
                                         std::span<std::uint8_t> sensitive) const {
  const std::size_t n = row.size();
  const Value threshold = gap_.threshold();
  std::uint8_t any = 0;
  sensitive[0] = 0;
  for (std::size_t m = 1; m < n; ++m) {
    const bool jumps = (row[m] > threshold) | (-row[m] > threshold);  // no branch: vectorised
    sensitive[m] = static_cast<std::uint8_t>(jumps ? matters_[m] : 0);
    any |= sensitive[m];
  }
  if (any == 0) return false;
  // A jump makes the masks on both of its sides sensitive.
  for (std::size_t m = 0; m + 1 < n; ++m) sensitive[m] |= sensitive[m + 1];
  return true;
}

template <class Value>
void MaskDecider<Value>::decide_by_window(std::span<const Value> row, Workspace& work,
                                          std::span<std::uint8_t> sensitive) const {
  const std::span<Value> low(work.low);
  const std::span<Value> high(work.high);
  std::copy_n(row.begin(), n_ordered_, low.begin());
  std::copy_n(row.begin(), n_ordered_, high.begin());
  // A difference of two cells lies within one window of reach + 1 cells that starts at either.
  slide(low, reach_ + 1, [](const Value& a, const Value& b) { return a < b; });
  slide(high, reach_ + 1, [](const Value& a, const Value& b) { return b < a; });
  const auto exceeds = [&](std::size_t window, std::size_t m) {
    return gap_.may_exceed(low[window] - row[m], high[window] - row[m]);
  };
  const bool has_missing = n_ordered_ < row.size();
  std::uint8_t missing_jumps = 0;
  for (std::size_t m = 0; m < n_ordered_; ++m) {
    // For m < reach the window from 0 ends to the right of m, still within m's own reach.
    bool jumps = exceeds(m, m) || exceeds(m < reach_ ? 0 : m - reach_, m);
    if (has_missing) {
      const Value to_missing = row[n_ordered_] - row[m];
      jumps = jumps || gap_.is_exceeded(to_missing);
      if (gap_.is_exceeded(-to_missing)) missing_jumps = 1;
    }
    sensitive[m] = jumps ? 1 : 0;
  }
  if (has_missing) sensitive[n_ordered_] = missing_jumps;
}

template <class Value>
void MaskDecider<Value>::decide_by_pairs(std::span<const Value> row,
                                         std::span<std::uint8_t> sensitive) const {
  std::fill(sensitive.begin(), sensitive.end(), std::uint8_t{0});
  for (const auto& [a, b] : pairs_) {
    const Value change = row[b] - row[a];
    if (gap_.is_exceeded(change)) sensitive[a] = 1;
    if (gap_.is_exceeded(-change)) sensitive[b] = 1;
  }
}

template class MaskDecider<std::int64_t>;
template class MaskDecider<Int128>;
template class MaskDecider<Int2304>;

}  // namespace xcount

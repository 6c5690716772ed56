#include "xcount/sampling/row_decider.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "row_loops.hpp"

namespace xcount {

namespace {

constexpr std::size_t kMaxPairs = 100'000'000;
constexpr std::size_t kRoundedBytes = 256 * 1024;  // of rows: they should stay in cache
constexpr std::size_t kExactBytes = 512 * 1024;
constexpr std::size_t kMaxRoundedMasks = std::size_t{1} << 18;
constexpr std::size_t kMaxDigitMasks = std::size_t{1} << 14;

}  // namespace

template <class Value>
RowDecider<Value>::RowDecider(const Forest<Value>& forest, const MaskSpace& masks,
                              const MaskQuestion& question, const Gap<Value>& gap, Asked asked)
    : scope_(forest, masks, question), forest_(forest, masks, scope_), gap_(gap) {
  choose_kind(forest, masks, question, asked);
  choose_widths();
  round_limits();
  for (std::uint32_t c = 0; c < forest_.columns().size(); ++c) {
    const Feature feature = forest_.columns()[c].feature;
    // The columns of a feature follow each other.
    if (drawn_.empty() || drawn_.back().feature != feature) {
      drawn_.push_back({feature, forest.axis(feature).n_cells, {}});
    }
    drawn_.back().columns.push_back(c);
  }
}

// By the row's extremes when all masks are neighbours, by the jumps between next masks when those
// are the pairs, by sliding windows on one ordered axis, by the pairs one after the other
// otherwise.
template <class Value>
void RowDecider<Value>::choose_kind(const Topology& forest, const MaskSpace& masks,
                                    const MaskQuestion& question, Asked asked) {
  if (!question.all_pairs) {
    kind_ = asked == Asked::kEachMask  ? Kind::kPairs
            : asked == Asked::kAnyPair ? Kind::kAnyPair
                                       : Kind::kAllPairs;
    for (const auto& [a, b] : question.pairs) {
      pairs_.emplace_back(scope_.index(masks, a), scope_.index(masks, b));
    }
    if (asked == Asked::kEachMask && scope_.cells().size() == 1 && !gap_.has_direction()) {
      take_jumps();
    }
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
      matters_.assign(scope_.n_masks(), 1);
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
void RowDecider<Value>::take_jumps() {
  matters_.assign(scope_.n_masks(), 0);
  for (const auto& [a, b] : pairs_) {
    const auto [low, high] = std::minmax(a, b);
    if (high != low + 1) return;
    matters_[high] = 1;
  }
  kind_ = Kind::kJumps;
}

template <class Value>
void RowDecider<Value>::list_neighbours(const MaskSpace& masks) {
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
void RowDecider<Value>::choose_widths() {
  rounds_ = n_masks() <= kMaxRoundedMasks;
  const std::size_t n_digits = forest_.n_digits();
  has_digits_ = n_masks() <= kMaxDigitMasks && n_digits <= SlicedForest<Value>::kMaxDigits;
  if (has_digits_) {
    const std::size_t bytes = (sizeof(Value) + sizeof(std::int32_t) * n_digits) * n_masks();
    exact_width_ = std::clamp<std::size_t>(kExactBytes / bytes / kGroup * kGroup, kGroup, kBlock);
  } else {
    const std::size_t exact = kExactBytes / (sizeof(Value) * n_masks());
    exact_width_ = std::clamp<std::size_t>(exact, 1, kBlock);
  }
  const std::size_t rounded = kRoundedBytes / (sizeof(std::int32_t) * n_masks());
  width_ =
      rounds_ ? std::clamp<std::size_t>(rounded / kGroup * kGroup, kGroup, kBlock) : exact_width_;
}

// Rounded sums of two masks are at most n_trees units further apart, or nearer, than exact ones (a
// little more because of floats).
template <class Value>
void RowDecider<Value>::round_limits() {
  const auto clipped = [](double limit) {
    constexpr double kLeast = std::numeric_limits<std::int32_t>::min();
    constexpr double kMost = std::numeric_limits<std::int32_t>::max();
    return static_cast<std::int32_t>(std::clamp(limit, kLeast, kMost));
  };
  const int shift = forest_.shift();
  const bool is_negative = gap_.threshold() < Value(0);
  const Value size = is_negative ? Value(-gap_.threshold()) : gap_.threshold();
  const double units = ValueTraits<Value>::scaled(size, -shift) * (is_negative ? -1.0 : 1.0);
  const double doubt = shift == 0 ? 0.0 : 1.001 * static_cast<double>(forest_.n_trees()) + 1.0;
  rounded_.sure = clipped(shift == 0 ? units : std::ceil(units + doubt) - 1);
  rounded_.maybe = clipped(shift == 0 ? units : std::floor(units - doubt));
  rounded_.up = gap_.counts_rises();
  rounded_.down = gap_.counts_falls();
}

template <class Value>
typename RowDecider<Value>::Workspace RowDecider<Value>::workspace() const {
  Workspace work;
  work.slices = forest_.workspace();
  work.aside = forest_.workspace();
  if (rounds_) {
    work.rounded.resize(n_masks() * width_);
    work.rounded_extremes.resize(2 * n_extremes() * width_);
  }
  work.flags.resize(n_flags() * width_);
  work.doubts.resize(width_);
  return work;
}

template <class Value>
BlockRange RowDecider<Value>::range_from(std::size_t begin, std::size_t count) const {
  const std::size_t left = std::min(width_, count - begin);
  return {begin, rounds_ ? (left + kGroup - 1) / kGroup * kGroup : left, width_};
}

template <class Value>
MaskComparison RowDecider<Value>::comparison() const {
  return {n_masks(), n_ordered_, reach_, pairs_, matters_};
}

template <class Value>
bool RowDecider<Value>::decide_range(const BlockRange& range, Workspace& work) const {
  if (!rounds_) {
    decide_exactly(range, work.slices, work, work.flags, work.doubts);
    return true;
  }
  const SliceKernels& kernels = slice_kernels();
  forest_.sum(range, work.slices, std::span(work.rounded));
  if (kind_ != Kind::kJumps) kernels.integrate(forest_.extents(), width_, work.rounded.data());
  const std::array decide{kernels.everyone, kernels.jumps,    kernels.windows,
                          kernels.pairs,    kernels.any_pair, kernels.all_pairs};
  return decide[static_cast<std::size_t>(kind_)](
      comparison(), rounded_,
      {work.rounded.data(), width_, work.rounded_extremes.data(),
       work.rounded_extremes.data() + n_extremes() * width_, work.flags.data(),
       work.doubts.data()});
}

template <class Value>
void RowDecider<Value>::extremes_of(const Value* rows, Value* low, Value* high) const {
  std::copy_n(rows, exact_width_, low);
  std::copy_n(rows, exact_width_, high);
  for (std::size_t m = 1; m < n_masks(); ++m) {
    const Value* row = rows + m * exact_width_;
    for (std::size_t i = 0; i < exact_width_; ++i) {
      low[i] = row[i] < low[i] ? row[i] : low[i];
      high[i] = high[i] < row[i] ? row[i] : high[i];
    }
  }
}

template <class Value>
void RowDecider<Value>::put_aside(std::size_t sample, std::uint64_t number, Workspace& work) const {
  const std::size_t place = work.numbers.size();
  for (std::size_t c = 0; c < forest_.columns().size(); ++c) {
    work.aside.codes[c * kBlock + place] = work.slices.codes[c * kBlock + sample];
  }
  work.numbers.push_back(number);
}

template <class Value>
void RowDecider<Value>::decide_exactly(const BlockRange& range,
                                       typename SlicedForest<Value>::Workspace& slices,
                                       Workspace& work, std::vector<std::uint8_t>& flags,
                                       std::vector<std::uint8_t>& doubts) const {
  static constexpr std::array<DecideRows<Value>, 6> kDecide{
      decide_everyone<Value>, decide_jumps<Value>,    decide_windows<Value>,
      decide_pairs<Value>,    decide_any_pair<Value>, decide_all_pairs<Value>};
  const Limits<Value> limits{gap_.threshold(), gap_.threshold(), gap_.counts_rises(),
                             gap_.counts_falls()};
  work.exact_extremes.resize(2 * n_extremes() * range.width);
  flags.resize(n_flags() * range.width);
  doubts.resize(range.width);
  Value* low = work.exact_extremes.data();
  sum_exactly(range, kind_ != Kind::kJumps, slices, work);
  kDecide[static_cast<std::size_t>(kind_)](
      comparison(), limits,
      {work.exact.data(), range.width, low, low + n_extremes() * range.width, flags.data(),
       doubts.data()});
}

template <class Value>
void RowDecider<Value>::sum_exactly(const BlockRange& range, bool as_values,
                                    typename SlicedForest<Value>::Workspace& slices,
                                    Workspace& work) const {
  work.exact.resize(n_masks() * range.width);
  if (has_digits_) work.digits.resize(forest_.n_digits() * work.exact.size());
  forest_.sum_exactly(range, as_values, slices, work.digits, work.exact);
}

template class RowDecider<std::int64_t>;
template class RowDecider<Int128>;
template class RowDecider<Int2304>;

}  // namespace xcount

#include "xcount/exact/wide_tile.hpp"

#include <algorithm>
#include <numeric>

#include "xcount/exact/tile_probability.hpp"
#include "xcount/support/assert.hpp"

namespace xcount {

// The ranks of what is compared at the masks of a region, and the extreme ranks around each mask.
// Only the first lane of the vectors is used.
class RankTables {
 public:
  RankTables(const MaskWindows& windows, VectorUnit most)
      : kernels_(choose_kernels<std::int32_t>(false, most)),
        tables_(n_vectors(windows)),
        order_(windows.n_masks) {
    near_.decided = tables_.data();
    near_.high = near_.decided + windows.n_masks;
    near_.low = near_.high + windows.n_masks;
    near_.highest = near_.low + windows.n_masks;
    near_.lowest = near_.highest + windows.table_size();
    rows_ = connect(windows, near_);
  }

  [[nodiscard]] static std::size_t n_vectors(const MaskWindows& windows) {
    return 3 * windows.n_masks + 2 * windows.table_size();
  }

  // Ranks the masks by value(mask) and finds the extremes around each.
  template <class Value>
  void rank(const Value& value) {
    std::iota(order_.begin(), order_.end(), std::uint32_t{0});
    std::sort(order_.begin(), order_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return value(a) < value(b); });
    std::uint32_t rank = 0;
    for (std::uint32_t i = 0; i < order_.size(); ++i) {
      if (i > 0 && value(order_[i - 1]) < value(order_[i])) rank = i;
      near_.decided[order_[i]].lane[0] = rank;
    }
    kernels_.find_extremes(near_);
  }

  // The masks with the highest and the lowest value around a mask.
  [[nodiscard]] std::size_t highest(std::size_t mask) const { return mask_of(near_.high[mask]); }
  [[nodiscard]] std::size_t lowest(std::size_t mask) const { return mask_of(near_.low[mask]); }

 private:
  [[nodiscard]] std::size_t mask_of(const Lanes<std::int32_t>& rank) const {
    XCOUNT_ASSERT(rank.lane[0] < order_.size());
    return order_[rank.lane[0]];
  }

  TileKernels<std::int32_t> kernels_;
  std::vector<Lanes<std::int32_t>> tables_;
  std::vector<NearExtremes<std::int32_t>> rows_;
  NearTables<std::int32_t> near_;
  std::vector<std::uint32_t> order_;  // masks, by value
};

namespace {

template <class T>
T number(const Lanes<T>& lanes) {
  return static_cast<T>(lanes.lane[0]);
}

// Whether the change happens at a value, given the extremes around it; gaps are larger by `band`.
template <class T>
bool exceeds(const Change<T>& change, const T& value, const T& high, const T& low,
             const T& band = T(0)) {
  const bool up = change.direction != Direction::kDown;
  const bool down = change.direction != Direction::kUp;
  if (change.form == ChangeForm::kSureLargest) return value < high || value > low;
  if (change.form == ChangeForm::kFlip) {
    return (up && value <= change.sure_below && high > T(change.threshold + change.band)) ||
           (down && value > change.sure_above && low <= change.threshold);
  }
  const T gap = change.threshold + band;
  return (up && T(high - value) > gap) || (down && T(value - low) > gap);
}

// Whether a change happens at a mask.
template <class T>
bool changes(const TileJob<T>& job, std::size_t change, std::size_t mask, const T& high,
             const T& low) {
  const TileQuestion<T>& question = job.question;
  const Change<T>& asked = question.changes.data[change];
  const T value = number(job.near.decided[mask]);
  XCOUNT_ASSERT(low <= value && value <= high);
  if (!exceeds(asked, value, high, low)) return false;
  if (asked.form == ChangeForm::kSureLargest) {
    return is_sure(question, job.column, change, mask, 0);
  }
  if (question.judge == nullptr || exceeds(asked, value, high, low, T(2 * kProbabilityDoubt))) {
    return true;
  }
  return question.judge->changes(job.column, change, mask, 0);
}

}  // namespace

template <class T>
WideTile<T>::WideTile(const MaskWindows& windows, VectorUnit most) {
  if (!windows.any) ranks_ = std::make_unique<RankTables>(windows, most);
}

template <class T>
WideTile<T>::~WideTile() {}  // not defaulted: that could not be instantiated by itself

template <class T>
std::size_t WideTile<T>::bytes_for(const MaskWindows& windows) {
  if (windows.any) return 0;
  return RankTables::n_vectors(windows) * sizeof(Lanes<std::int32_t>) +
         windows.n_masks * sizeof(std::uint32_t) +
         windows.near.size() * sizeof(NearExtremes<std::int32_t>);
}

// E and V of one output.
template <class T>
void WideTile<T>::sum_column(const TileJob<T>& job, std::size_t output, std::size_t column) const {
  const std::size_t n_masks = job.sums.n_masks;
  const Lanes<T>* slab = job.sums.slab[output] + column * n_masks;
  Lanes<T>* sums = job.sums.sums[output] + column * n_masks;
  Lanes<T>* out = job.column.sums + output * n_masks;
  for (std::size_t m = 0; m < n_masks; ++m) {
    if (job.sums.start == Start::kFresh) sums[m] = slab[m];
    if (job.sums.start == Start::kAdded) sums[m].lane[0] += slab[m].lane[0];
    out[m] = sums[m];
  }
  std::size_t stride = 1;
  for (std::size_t i = job.sums.axes.size; i-- > 0;) {
    const std::size_t period = stride * job.sums.axes.data[i];
    for (std::size_t m = 0; m < n_masks; ++m) {
      if (m % period >= stride) out[m].lane[0] += out[m - stride].lane[0];
    }
    stride = period;
  }
  XCOUNT_ASSERT(stride == n_masks);
}

// Sets what is compared: probabilities, or the index of the largest sum; a single sum is compared
// itself, in its place.
template <class T>
void WideTile<T>::set_decided(const TileJob<T>& job) const {
  const TileColumn<T>& column = job.column;
  if (job.question.changes.data[0].form == ChangeForm::kProbability) {
    return find_probabilities(job.question, column, job.near.decided, 0, 1);
  }
  for (std::size_t m = 0; column.n_outputs > 1 && m < column.n_masks; ++m) {
    std::int64_t largest = 0;
    T best = number(column.sums[m]);
    for (std::size_t k = 1; k < column.n_outputs; ++k) {
      const T other = number(column.sums[k * column.n_masks + m]);
      if (other > best) {
        best = other;
        largest = static_cast<std::int64_t>(k);
      }
    }
    job.near.decided[m].lane[0] = static_cast<LaneResidue<T>>(T(largest));
  }
}

template <class T>
void WideTile<T>::decide(const TileJob<T>& job, std::size_t column) {
  const std::size_t n_masks = job.sums.n_masks;
  const auto value = [&](std::size_t m) { return number(job.near.decided[m]); };
  std::size_t highest = 0, lowest = 0;
  if (ranks_) ranks_->rank(value);
  for (std::size_t m = 1; !ranks_ && m < n_masks; ++m) {
    if (value(highest) < value(m)) highest = m;
    if (value(m) < value(lowest)) lowest = m;
  }
  for (std::size_t m = 0; m < n_masks; ++m) {
    const T high = value(ranks_ ? ranks_->highest(m) : highest);
    const T low = value(ranks_ ? ranks_->lowest(m) : lowest);
    for (std::size_t i = 0; i < job.question.changes.size; ++i) {
      if (!changes(job, i, m, high, low)) continue;
      const std::size_t result = i * n_masks + m;
      ++job.results.counts[result];
      if (job.results.shares == nullptr) continue;
      job.results.shares[result * kShareLanes] += job.results.row_weights[column];
    }
  }
}

template <class T>
void WideTile<T>::count(const TileJob<T>& job) {
  for (std::size_t column = 0; column < job.sums.n_columns; ++column) {
    for (std::size_t k = 0; k < job.sums.n_outputs; ++k) sum_column(job, k, column);
    set_decided(job);
    decide(job, column);
  }
}

// A stream of narrower sums holds none of these, but its destructor names the pointer's type.
template WideTile<std::int32_t>::~WideTile();
template WideTile<std::int64_t>::~WideTile();
template class WideTile<Int128>;
template class WideTile<Int2304>;

}  // namespace xcount

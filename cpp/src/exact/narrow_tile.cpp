#include "xcount/exact/narrow_tile.hpp"

#include <algorithm>
#include <bit>

#include "xcount/support/assert.hpp"

namespace xcount {

namespace {

constexpr std::size_t kNarrowLanes = LaneTraits<std::uint16_t>::kLanes;
constexpr std::size_t kMostParts = 4;  // registers that the lanes take, each with its own doubts
constexpr std::size_t kMaxCuts = 8;
constexpr unsigned kHalfBits = 15;  // of q, on either side of the first mask
constexpr std::size_t kOften = 64;  // columns after which a smaller unit is tried
constexpr std::int64_t kSpareUnits = 256;
constexpr std::size_t kFirstSkipped = 16;
constexpr std::size_t kMostSkipped = std::size_t{1} << 16;

template <class T>
constexpr std::size_t kColumns = kNarrowLanes / LaneTraits<T>::kLanes;  // that fill the lanes

template <class T>
bool asks_flips(std::span<const Change<T>> changes) {
  return changes[0].form == ChangeForm::kFlip;
}

// Ascending, each once.
template <class T>
std::vector<T> cuts_of(std::span<const Change<T>> changes) {
  std::vector<T> cuts;
  if (!asks_flips(changes)) return cuts;
  for (const Change<T>& change : changes) {
    cuts.insert(cuts.end(), {change.threshold, T(change.threshold + change.band), change.sure_below,
                             change.sure_above});
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  XCOUNT_ASSERT(!cuts.empty());
  return cuts;
}

// With many masks, most columns have some doubts, and making their sums again takes long.
template <class T>
bool needs_fine(const TileJob<T>& job) {
  return job.sums.axes.size > 1 &&
         !asks_flips<T>({job.question.changes.data, job.question.changes.size});
}

// As the limits of 16 bits, for 2^16 times as many units.
template <class T>
void set_fine_limits(const T& gap, unsigned shift, NarrowChange& change) {
  if (shift <= 16) {  // units are no larger than 1
    change.fine_surely = change.fine_possibly = static_cast<std::int64_t>(
        std::min<UInt128>(static_cast<UInt128>(gap) << (16 - shift), UInt128{1} << 32));
    return;
  }
  const T unit = T(T(1) << (shift - 16));
  change.fine_surely = static_cast<std::int64_t>(gap / unit + (gap % unit != 0 ? 1 : 0));
  change.fine_possibly = static_cast<std::int64_t>((gap + 1) / unit - 1);
}

}  // namespace

template <class T>
bool NarrowRoom<T>::suits(std::span<const Change<T>> changes, std::size_t n_columns) {
  const bool flips = asks_flips(changes);
  const bool alike = std::all_of(changes.begin(), changes.end(), [&](const Change<T>& change) {
    return (change.form == ChangeForm::kFlip) == flips && change.threshold >= (flips ? -1 : 0);
  });
  return alike && cuts_of(changes).size() <= kMaxCuts && 2 * n_columns >= kColumns<T>;
}

template <class T>
std::size_t NarrowRoom<T>::bytes_for(std::size_t n_changes, const MaskWindows& windows) {
  const std::size_t n_results = n_changes * windows.n_masks;
  const std::size_t n_vectors = 2 * windows.n_masks + 2 * windows.table_size() + n_results;
  return n_vectors * sizeof(Lanes<std::uint16_t>) +
         2 * kColumns<T> * windows.plane_size() * sizeof(Lanes<T>) +
         n_results * sizeof(std::uint32_t) + kMostParts * n_results * sizeof(Doubt) +
         windows.near.size() * sizeof(NearExtremes<std::uint16_t>);
}

template <class T>
NarrowRoom<T>::NarrowRoom(const TileJob<T>& job, const MaskWindows& windows)
    : windows_(windows),
      decided_(windows.n_masks),
      fine_(needs_fine(job) ? windows.n_masks : 0),
      tables_(2 * windows.table_size()),
      sure_counts_(job.question.changes.size * windows.n_masks),
      counts_(job.results.counts),
      before_(kColumns<T> * 2 * windows.plane_size()),
      exact_(job.question.changes.data, job.question.changes.data + job.question.changes.size),
      is_held_(job.held.place != nullptr) {
  // Most of this is never touched.
  doubts_ = std::make_unique_for_overwrite<Doubt[]>(kMostParts * exact_.size() * windows.n_masks);
  set_cuts(exact_);
  NearTables<std::uint16_t>& near = narrow_.job.near;
  near.decided = decided_.data();
  near.highest = tables_.data();
  near.lowest = tables_.data() + windows.table_size();
  near_ = connect(windows, near);
  narrow_.job.changes = {changes_.data(), changes_.size()};
  narrow_.job.counts = sure_counts_.data();
  narrow_.job.doubts = {doubts_.get(), 0};
  narrow_.fine = fine_.data();
  narrow_.before = before_.data();
  narrow_.room = this;
}

template <class T>
void NarrowRoom<T>::set_cuts(std::span<const Change<T>> changes) {
  cuts_ = cuts_of(changes);
  narrow_.job.is_flip = asks_flips(changes);
  narrow_.cuts = {cuts_.data(), cuts_.size()};
  const auto index = [&](const T& cut) {  // V > cut where q > index
    return static_cast<std::uint16_t>(std::lower_bound(cuts_.begin(), cuts_.end(), cut) -
                                      cuts_.begin());
  };
  for (const Change<T>& change : changes) {
    NarrowChange& own = changes_.emplace_back();
    own.direction = change.direction;
    own.sure_below = index(change.sure_below);
    own.sure_above = index(change.sure_above);
    own.low = index(change.threshold);
    own.high = index(T(change.threshold + change.band));
  }
  if (!narrow_.job.is_flip) set_shift(0);
}

template <class T>
void NarrowRoom<T>::set_shift(unsigned shift) {
  constexpr T kMost = 65535;
  XCOUNT_ASSERT(shift + kHalfBits < 8 * sizeof(T));
  narrow_.shift = shift;
  is_usable_ = true;
  const T unit = T(T(1) << shift);
  for (std::size_t i = 0; i < exact_.size(); ++i) {
    const T gap = exact_[i].threshold;
    const T surely = T(gap / unit + (gap % unit != 0 ? 1 : 0));
    const T possibly = T((gap + 1) / unit - 1);
    is_usable_ = is_usable_ && possibly >= 0;
    changes_[i].surely = static_cast<std::uint16_t>(std::min(surely, kMost));
    changes_[i].possibly = static_cast<std::uint16_t>(std::min(possibly, kMost));
    set_fine_limits(gap, shift, changes_[i]);
    XCOUNT_ASSERT(!is_usable_ || changes_[i].possibly <= changes_[i].surely);
  }
}

template <class T>
auto NarrowRoom<T>::look_closer(const Doubt& doubt, std::size_t lane) const -> Verdict {
  XCOUNT_ASSERT(doubt.change < changes_.size() && doubt.mask < windows_.n_masks);
  const NarrowChange& change = changes_[doubt.change];
  const bool up = change.direction != Direction::kDown;
  const bool down = change.direction != Direction::kUp;
  const std::int32_t own = decided_[doubt.mask].lane[lane];
  const std::int32_t own_fine = fine_[doubt.mask].lane[lane];
  bool is_open = false;
  const bool surely = windows_.any_near(doubt.mask, [&](std::size_t m) {
    const std::int32_t rise = decided_[m].lane[lane] - own;
    if (!(up && rise > change.possibly) && !(down && -rise > change.possibly)) return false;
    const std::int64_t fine_rise = std::int64_t{rise} * (1 << 16) + fine_[m].lane[lane] - own_fine;
    const std::int64_t size = rise < 0 ? -fine_rise : fine_rise;
    is_open = is_open || size > change.fine_possibly;
    return size > change.fine_surely;
  });
  return surely ? Verdict::kYes : is_open ? Verdict::kOpen : Verdict::kNo;
}

template <class T>
void NarrowRoom<T>::settle_finely() {
  if (fine_.empty()) return;
  XCOUNT_ASSERT(narrow_.job.doubts.size <= kMostParts * exact_.size() * windows_.n_masks);
  std::size_t n_left = 0;
  for (std::size_t i = 0; i < narrow_.job.doubts.size; ++i) {
    Doubt& doubt = narrow_.job.doubts.data[i];
    bool is_left = false;
    for (std::size_t lane = 0; lane < kNarrowLanes; ++lane) {
      if (doubt.lanes.lane[lane] == 0) continue;
      const Verdict verdict = look_closer(doubt, lane);
      if (verdict == Verdict::kYes) ++counts_[doubt.change * windows_.n_masks + doubt.mask];
      if (verdict != Verdict::kOpen) doubt.lanes.lane[lane] = 0;
      is_left = is_left || verdict == Verdict::kOpen;
    }
    if (is_left) narrow_.job.doubts.data[n_left++] = doubt;
  }
  narrow_.job.doubts.size = n_left;
}

template <class T>
bool NarrowRoom<T>::skips() {
  if (n_to_skip_ == 0) return false;
  --n_to_skip_;
  return true;
}

template <class T>
bool NarrowRoom<T>::is_usable() const {
  return is_usable_;
}

template <class T>
bool NarrowRoom<T>::grows() {
  const auto n = static_cast<unsigned>(std::bit_width(narrow_.magnitude));
  const unsigned needed = n > kHalfBits ? n - kHalfBits : 0;
  least_shift_ = std::max(least_shift_, needed);
  if (needed <= narrow_.shift) return false;
  set_shift(needed);
  return true;
}

template <class T>
void NarrowRoom<T>::finish(bool well) {
  if (well) {
    n_skipped_ /= 2;
  } else {
    n_skipped_ = std::min(2 * n_skipped_ + kFirstSkipped, kMostSkipped);
    n_to_skip_ = n_skipped_;
  }
  if (narrow_.job.is_flip) return;
  ++n_seen_;
  const bool may_center = is_held_ && well;
  if (n_seen_ % kOften != 0 && !(may_center && n_seen_ == 1)) return;
  if (may_center) set_center();
  if (least_shift_ < narrow_.shift) set_shift(least_shift_);
  least_shift_ = 0;
}

// The unit that holds what is there, and a little more, on either side of the center.
template <class T>
void NarrowRoom<T>::set_center() {
  constexpr std::int64_t kMiddle = std::int64_t{1} << kHalfBits;
  std::int64_t least = kMiddle;
  std::int64_t most = kMiddle;
  for (const Lanes<std::uint16_t>& lanes : decided_) {
    for (const std::int64_t q : lanes.lane) {
      least = std::min(least, q);
      most = std::max(most, q);
    }
  }
  narrow_.center += static_cast<T>((least + most) / 2 - kMiddle) * T(T(1) << narrow_.shift);
  const auto n = static_cast<unsigned>(
      std::bit_width(static_cast<std::uint64_t>((most - least) / 2 + kSpareUnits)));
  least_shift_ = n + narrow_.shift > kHalfBits ? n + narrow_.shift - kHalfBits : 0;
}

template <class T>
bool NarrowRoom<T>::has_many_doubts() const {
  return static_cast<double>(narrow_.job.doubts.size) * windows_.n_near() >
         static_cast<double>(kNarrowLanes * windows_.n_masks);
}

template <class T>
bool NarrowRoom<T>::has_doubts(std::size_t lane) const {
  XCOUNT_ASSERT(lane + LaneTraits<T>::kLanes <= kNarrowLanes);
  const auto is_here = [&](const Doubt& doubt) {
    const auto* begin = doubt.lanes.lane + lane;
    return std::any_of(begin, begin + LaneTraits<T>::kLanes, [](auto q) { return q != 0; });
  };
  return std::any_of(narrow_.job.doubts.data, narrow_.job.doubts.data + narrow_.job.doubts.size,
                     is_here);
}

template <class T>
bool NarrowRoom<T>::differs(const TileJob<T>& job, const Doubt& doubt, std::size_t lane) const {
  const Change<T>& change = exact_[doubt.change];
  const auto at = [&](std::size_t m) { return static_cast<T>(job.near.decided[m].lane[lane]); };
  const T own = at(doubt.mask);
  const T none = T(change.threshold);
  return windows_.any_near(doubt.mask, [&](std::size_t m) {
    const T rise = at(m) - own;
    return (change.direction != Direction::kDown && rise > none) ||
           (change.direction != Direction::kUp && -rise > none);
  });
}

template <class T>
void NarrowRoom<T>::settle(const TileJob<T>& job, std::size_t lane) const {
  for (std::size_t i = 0; i < narrow_.job.doubts.size; ++i) {
    const Doubt& doubt = narrow_.job.doubts.data[i];
    for (std::size_t j = 0; j < LaneTraits<T>::kLanes; ++j) {
      if (doubt.lanes.lane[lane + j] == 0 || !differs(job, doubt, j)) continue;
      ++counts_[doubt.change * windows_.n_masks + doubt.mask];
    }
  }
}

template <class T>
const Lanes<T>* NarrowRoom<T>::filter(std::size_t lane) {
  XCOUNT_ASSERT(lane + LaneTraits<T>::kLanes <= kNarrowLanes);
  filter_.assign(exact_.size() * windows_.n_masks, Lanes<T>{});
  for (std::size_t i = 0; i < narrow_.job.doubts.size; ++i) {
    const Doubt& doubt = narrow_.job.doubts.data[i];
    Lanes<T>& lanes = filter_[doubt.change * windows_.n_masks + doubt.mask];
    for (std::size_t j = 0; j < LaneTraits<T>::kLanes; ++j) {
      if (doubt.lanes.lane[lane + j] != 0) lanes.lane[j] = static_cast<LaneResidue<T>>(-1);
    }
  }
  return filter_.data();
}

template class NarrowRoom<std::int32_t>;
template class NarrowRoom<std::int64_t>;

}  // namespace xcount

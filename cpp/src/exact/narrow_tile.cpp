#include "xcount/exact/narrow_tile.hpp"

#include <algorithm>
#include <bit>

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
  return cuts;
}

// Where masks are many, most columns have some doubts, and making their sums again takes long.
template <class T>
bool needs_fine(const TileJob<T>& job) {
  return job.n_sensitive > 1 && !asks_flips<T>({job.changes, job.n_changes});
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
void point_to_windows(const MaskWindows& windows, TileJob<T>& job,
                      std::vector<NearExtremes<T>>& near) {
  job.n_masks = windows.n_masks;
  job.ball_axes = windows.ball_axes.data();
  job.n_ball_axes = windows.ball_axes.size();
  job.n_levels = windows.n_levels;
  job.line = windows.line;
  job.width = windows.width;
  job.first = windows.first.data();
  job.grown = windows.grown.data();
  job.n_grown = windows.grown.size();
  job.growth = windows.growth.data();
  job.n_planes = windows.n_planes.data();
  job.n_growth = windows.growth.size();
  for (const NearRow& row : windows.near) {
    const bool is_window =
        windows.width > 1 && row.level == windows.n_levels && row.cell < windows.line.n_ordered;
    const std::size_t table = row.level + (is_window ? 1 : 0);  // 0: what is compared itself
    const std::size_t begin = row.cell * windows.line.stride;
    const std::size_t place = (table - 1) * windows.n_masks + begin;
    if (table == 0) {
      near.push_back({job.decided + begin, job.decided + begin});
    } else {
      near.push_back({job.highest + place, job.lowest + place});
    }
  }
  job.near = near.data();
}

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
         2 * kColumns<T> * windows.plane_size() * sizeof(Lanes<T>) + n_results +
         kMostParts * n_results * sizeof(Doubt) +
         windows.near.size() * sizeof(NearExtremes<std::uint16_t>);
}

template <class T>
NarrowRoom<T>::NarrowRoom(const TileJob<T>& job, const MaskWindows& windows)
    : windows_(windows),
      decided_(windows.n_masks),
      fine_(needs_fine(job) ? windows.n_masks : 0),
      tables_(2 * windows.table_size()),
      counts_(job.place != nullptr ? job.n_changes * windows.n_masks : 0),
      before_(kColumns<T> * 2 * windows.plane_size()),
      exact_(job.changes, job.changes + job.n_changes),
      is_held_(job.place != nullptr) {
  // Most of this is never touched.
  doubts_ = std::make_unique_for_overwrite<Doubt[]>(kMostParts * exact_.size() * windows.n_masks);
  set_cuts(exact_);
  TileJob<std::uint16_t>& tile = narrow_.tile;
  tile.decided = decided_.data();
  tile.highest = tables_.data();
  tile.lowest = tables_.data() + windows.table_size();
  tile.counts = job.counts;
  narrow_.fine = fine_.data();
  narrow_.before = before_.data();
  narrow_.counts = counts_.data();
  tile.n_changes = exact_.size();
  point_to_windows(windows, tile, near_);
  narrow_.changes = changes_.data();
  narrow_.doubts = doubts_.get();
  narrow_.room = this;
}

template <class T>
void NarrowRoom<T>::set_cuts(std::span<const Change<T>> changes) {
  cuts_ = cuts_of(changes);
  narrow_.is_flip = asks_flips(changes);
  narrow_.cuts = cuts_.data();
  narrow_.n_cuts = cuts_.size();
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
  if (!narrow_.is_flip) set_shift(0);
}

template <class T>
void NarrowRoom<T>::set_shift(unsigned shift) {
  constexpr T kMost = 65535;
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
  }
}

template <class T>
auto NarrowRoom<T>::look_closer(const Doubt& doubt, std::size_t lane) const -> Verdict {
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
  std::size_t n_left = 0;
  for (std::size_t i = 0; i < narrow_.n_doubts; ++i) {
    Doubt& doubt = narrow_.doubts[i];
    bool is_left = false;
    for (std::size_t lane = 0; lane < kNarrowLanes; ++lane) {
      if (doubt.lanes.lane[lane] == 0) continue;
      const Verdict verdict = look_closer(doubt, lane);
      if (verdict == Verdict::kYes)
        ++narrow_.tile.counts[doubt.change * windows_.n_masks + doubt.mask];
      if (verdict != Verdict::kOpen) doubt.lanes.lane[lane] = 0;
      is_left = is_left || verdict == Verdict::kOpen;
    }
    if (is_left) narrow_.doubts[n_left++] = doubt;
  }
  narrow_.n_doubts = n_left;
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
  if (narrow_.is_flip) return;
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
  return static_cast<double>(narrow_.n_doubts) * windows_.n_near() >
         static_cast<double>(kNarrowLanes * windows_.n_masks);
}

template <class T>
bool NarrowRoom<T>::has_doubts(std::size_t lane) const {
  const auto is_here = [&](const Doubt& doubt) {
    const auto* begin = doubt.lanes.lane + lane;
    return std::any_of(begin, begin + LaneTraits<T>::kLanes, [](auto q) { return q != 0; });
  };
  return std::any_of(narrow_.doubts, narrow_.doubts + narrow_.n_doubts, is_here);
}

template <class T>
bool NarrowRoom<T>::differs(const TileJob<T>& job, const Doubt& doubt, std::size_t lane) const {
  const Change<T>& change = exact_[doubt.change];
  const auto at = [&](std::size_t m) { return static_cast<T>(job.decided[m].lane[lane]); };
  const T own = at(doubt.mask);
  const T none = T(change.threshold);
  return windows_.any_near(doubt.mask, [&](std::size_t m) {
    const T rise = at(m) - own;
    return (change.direction != Direction::kDown && rise > none) ||
           (change.direction != Direction::kUp && -rise > none);
  });
}

template <class T>
void NarrowRoom<T>::settle(TileJob<T>& job, std::size_t lane) const {
  for (std::size_t i = 0; i < narrow_.n_doubts; ++i) {
    const Doubt& doubt = narrow_.doubts[i];
    for (std::size_t j = 0; j < LaneTraits<T>::kLanes; ++j) {
      if (doubt.lanes.lane[lane + j] == 0 || !differs(job, doubt, j)) continue;
      ++job.counts[doubt.change * job.n_masks + doubt.mask];
    }
  }
}

template <class T>
const Lanes<T>* NarrowRoom<T>::filter(std::size_t lane) {
  filter_.assign(exact_.size() * windows_.n_masks, Lanes<T>{});
  for (std::size_t i = 0; i < narrow_.n_doubts; ++i) {
    const Doubt& doubt = narrow_.doubts[i];
    Lanes<T>& lanes = filter_[doubt.change * windows_.n_masks + doubt.mask];
    for (std::size_t j = 0; j < LaneTraits<T>::kLanes; ++j) {
      if (doubt.lanes.lane[lane + j] != 0) lanes.lane[j] = static_cast<LaneResidue<T>>(-1);
    }
  }
  return filter_.data();
}

#define XCOUNT_INSTANTIATE(T) \
  template void point_to_windows(const MaskWindows&, TileJob<T>&, std::vector<NearExtremes<T>>&);

XCOUNT_INSTANTIATE(std::int32_t)
XCOUNT_INSTANTIATE(std::int64_t)
XCOUNT_INSTANTIATE(Int128)
XCOUNT_INSTANTIATE(Int2304)

#undef XCOUNT_INSTANTIATE

template class NarrowRoom<std::int32_t>;
template class NarrowRoom<std::int64_t>;

}  // namespace xcount

#include "xcount/worst/pair_box.hpp"

#include <algorithm>

#include "xcount/support/assert.hpp"

namespace xcount {

PairReach::PairReach(const Topology& forest, std::span<const Feature> sensitive,
                     std::size_t n_common, std::optional<std::int64_t> limit)
    : n_common_(n_common), limit_(limit) {
  for (const Feature feature : sensitive) axes_.push_back(forest.axis(feature));
}

bool PairReach::allows(const PairPoint& point) const {
  if (!limit_) return true;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    total += axes_[i].distance(point[n_common_ + 2 * i], point[n_common_ + 2 * i + 1]);
  }
  return total <= *limit_;
}

std::int64_t PairReach::distance(std::size_t i, const CellRun& a, const CellRun& b) const {
  if (std::max(a.low, b.low) <= std::min(a.high, b.high)) return 0;
  const Axis& axis = axes_[i];
  if (axis.coordinates.empty()) {
    if (!axis.ordered) return 1;
    const CellRun& below = a.low < b.low ? a : b;
    const CellRun& above = a.low < b.low ? b : a;
    const bool has_missing = axis.missing_cell >= 0 && above.high >= axis.missing_cell;
    const std::int64_t step = axis.distance(below.high, above.low);
    return has_missing ? std::min<std::int64_t>(step, 1) : step;
  }
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (Cell from = a.low; from <= a.high; ++from) {
    for (Cell to = b.low; to <= b.high; ++to) least = std::min(least, axis.distance(from, to));
  }
  return least;
}

void PairReach::shorten(std::size_t i, CellRun& run, const CellRun& other,
                        std::int64_t most) const {
  while (run.low < run.high && distance(i, {run.low, run.low}, other) > most) ++run.low;
  while (run.low < run.high && distance(i, {run.high, run.high}, other) > most) --run.high;
}

bool PairReach::trim(PairBox& box) const {
  if (!limit_) return true;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    total += distance(i, box[n_common_ + 2 * i], box[n_common_ + 2 * i + 1]);
  }
  if (total > *limit_) return false;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    CellRun &start = box[n_common_ + 2 * i], &target = box[n_common_ + 2 * i + 1];
    const std::int64_t most = *limit_ - total + distance(i, start, target);
    shorten(i, target, start, most);
    shorten(i, start, target, most);
  }
  return true;
}

void PairReach::set_nearest(const PairBox& box, PairPoint& point) const {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const CellRun &start = box[n_common_ + 2 * i], &target = box[n_common_ + 2 * i + 1];
    const std::int64_t least = distance(i, start, target);
    bool found = false;
    for (Cell from = start.low; from <= start.high && !found; ++from) {
      for (Cell to = target.low; to <= target.high && !found; ++to) {
        if (axes_[i].distance(from, to) != least) continue;
        point[n_common_ + 2 * i] = from;
        point[n_common_ + 2 * i + 1] = to;
        found = true;
      }
    }
    XCOUNT_ASSERT(found);
  }
}

}  // namespace xcount

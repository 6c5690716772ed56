#include "xcount/exact/corner_list.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <utility>

#include "xcount/support/assert.hpp"

namespace xcount {

namespace {

constexpr std::size_t kLeastBuffer = std::size_t{1} << 16;
constexpr std::size_t kLeavesPerCheck = 256;
constexpr unsigned kDigitBits = 11;

[[noreturn]] void too_many() {
  throw std::length_error(
      "corner sums: too many corners for the memory; use --method auto or exact, or raise "
      "--memory");
}

template <class T>
bool is_zero(const LaneResidue<T>& value) {
  return value == LaneResidue<T>(0);
}

// Whether keys ascend, each once, and no value is 0.
template <class T>
bool is_settled(std::span<const Corner<T>> corners) {
  for (std::size_t i = 0; i < corners.size(); ++i) {
    if (is_zero<T>(corners[i].value)) return false;
    if (i > 0 && corners[i].key <= corners[i - 1].key) return false;
  }
  return true;
}

// Sorts by key, least significant digit first.
template <class T>
void sort_by_key(CornerList<T>& corners, CornerList<T>& scratch, unsigned key_bits, Stop* stop) {
  constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
  if (corners.size() < kDigits) {
    std::sort(corners.begin(), corners.end(),
              [](const Corner<T>& a, const Corner<T>& b) { return a.key < b.key; });
    return;
  }
  scratch.resize(corners.size());
  for (unsigned shift = 0; shift < key_bits; shift += kDigitBits) {
    if (stop != nullptr) stop->check();
    std::array<std::size_t, kDigits> next{};
    for (const Corner<T>& corner : corners) ++next[(corner.key >> shift) % kDigits];
    std::size_t start = 0;
    for (std::size_t& n : next) start += std::exchange(n, start);
    for (const Corner<T>& corner : corners)
      scratch[next[(corner.key >> shift) % kDigits]++] = corner;
    corners.swap(scratch);
  }
}

// Adds up neighbours with equal keys, drops zeros.
template <class T>
void compact(CornerList<T>& corners) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < corners.size();) {
    Corner<T> sum = corners[i];
    for (++i; i < corners.size() && corners[i].key == sum.key; ++i) sum.value += corners[i].value;
    if (!is_zero<T>(sum.value)) corners[n++] = sum;
  }
  corners.resize(n);
}

double box_corners(std::span<const Feature> active, std::span<const CellSet> sets) {
  double n = 1;
  for (const Feature f : active) n *= static_cast<double>(sets[static_cast<std::size_t>(f)].size());
  return n;
}

// Collects corners in any order; sorts and adds them up whenever the new ones outnumber the rest.
template <class T>
class CornerCollector {
 public:
  CornerCollector(std::span<const std::uint64_t> step, unsigned key_bits, const ListLimits& limits)
      : step_(step), key_bits_(key_bits), limits_(limits) {}

  // The corners of a box: one after another, the features multiply what is there so far.
  void add(const LaneResidue<T>& value, std::span<const Feature> active,
           std::span<const CellSet> sets) {
    if (is_zero<T>(value)) return;
    if (++n_added_ % kLeavesPerCheck == 0) limits_.stop->check();
    const double n_corners = box_corners(active, sets);
    if (n_corners > static_cast<double>(limits_.bytes)) too_many();
    const std::size_t begin = fresh_.size();
    make_room(fresh_, begin + static_cast<std::size_t>(n_corners));
    fresh_.push_back({0, value});
    for (const Feature feature : active) {
      const auto f = static_cast<std::size_t>(feature);
      multiply(begin, sets[f], step_[f]);
    }
    if (fresh_.size() >= std::max(kLeastBuffer, sorted_.size())) settle();
  }
  CornerList<T> finish() {
    settle();
    scratch_ = {};
    fresh_ = {};
    sorted_.shrink_to_fit();
    return std::move(sorted_);
  }

 private:
  // While a vector grows, the old one and the new one exist.
  void make_room(CornerList<T>& list, std::size_t n) {
    if (n <= list.capacity()) return;
    const std::size_t most = limits_.bytes / sizeof(Corner<T>);
    const std::size_t held = sorted_.capacity() + fresh_.capacity() + scratch_.capacity();
    if (held + n > most) too_many();
    list.reserve(std::min(most - held, std::max(n, 2 * list.capacity())));
  }
  void multiply(std::size_t begin, const CellSet& set, std::uint64_t step) {
    const std::size_t end = fresh_.size();
    for (std::size_t b = 1; b < set.size(); ++b) {
      const std::uint64_t shift = static_cast<std::uint64_t>(set[b]) * step;
      for (std::size_t i = begin; i < end; ++i) {
        const Corner<T> corner = fresh_[i];
        fresh_.push_back(
            {corner.key + shift, b % 2 == 0 ? corner.value : LaneResidue<T>(-corner.value)});
      }
    }
    const std::uint64_t shift = static_cast<std::uint64_t>(set[0]) * step;
    if (shift == 0) return;
    for (std::size_t i = begin; i < end; ++i) fresh_[i].key += shift;
  }
  void settle() {
    limits_.stop->check();
    make_room(scratch_, fresh_.size());
    settle_corners(fresh_, scratch_, key_bits_, limits_.stop);
    make_room(scratch_, sorted_.size() + fresh_.size());
    merge_corners<T>(sorted_, fresh_, ~std::uint64_t{0}, scratch_);
    sorted_.swap(scratch_);
    fresh_.clear();
  }

  std::span<const std::uint64_t> step_;
  unsigned key_bits_;
  ListLimits limits_;
  std::size_t n_added_ = 0;
  CornerList<T> sorted_, fresh_, scratch_;
};

}  // namespace

double count_corners(const Topology& forest, std::span<const CellOrder> orders,
                     const LeafFlags& counted, std::size_t stride, double most) {
  double n_corners = 0;
  LeafBoxes boxes(forest, orders);
  const std::size_t n = forest.roots.size();
  for (std::size_t i = 0; i < n; i += stride) {
    boxes.walk(forest.roots[i],
               [&](NodeIndex leaf, std::span<const Feature> active, std::span<const CellSet> sets) {
                 if (counted[static_cast<std::size_t>(leaf)])
                   n_corners += box_corners(active, sets);
               });
    if (n_corners > most) return std::numeric_limits<double>::infinity();
  }
  const std::size_t n_seen = (n + stride - 1) / stride;
  return n_seen == 0 ? 0.0 : n_corners * static_cast<double>(n) / static_cast<double>(n_seen);
}

template <class T>
CornerList<T> list_corners(const Topology& forest, std::span<const CellOrder> orders,
                           const LeafFlags& counted,
                           const std::function<LaneResidue<T>(NodeIndex)>& value,
                           const LaneResidue<T>& constant, std::span<const std::uint64_t> step,
                           unsigned key_bits, const ListLimits& limits) {
  CornerCollector<T> collector(step, key_bits, limits);
  LeafBoxes boxes(forest, orders);
  collector.add(constant, {}, {});
  for (const NodeIndex root : forest.roots) {
    boxes.walk(root,
               [&](NodeIndex leaf, std::span<const Feature> active, std::span<const CellSet> sets) {
                 if (!counted[static_cast<std::size_t>(leaf)]) return;
                 collector.add(value(leaf), active, sets);
               });
    limits.stop->check();
  }
  return collector.finish();
}

template <class T>
void settle_corners(CornerList<T>& corners, CornerList<T>& scratch, unsigned key_bits, Stop* stop) {
  sort_by_key(corners, scratch, key_bits, stop);
  compact(corners);
  XCOUNT_ASSERT(is_settled<T>(corners));
  XCOUNT_ASSERT(corners.empty() || key_bits >= 64 || corners.back().key >> key_bits == 0);
}

template <class T>
void merge_corners(std::span<const Corner<T>> a, std::span<const Corner<T>> b, std::uint64_t mask,
                   CornerList<T>& out) {
  XCOUNT_ASSERT(is_settled<T>(a));
  XCOUNT_ASSERT(out.empty() || (out.data() != a.data() && out.data() != b.data()));
  out.resize(a.size() + b.size());
  std::size_t n = 0;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const std::uint64_t key = b[j].key & mask;
    if (a[i].key < key) {
      out[n++] = a[i++];
    } else if (key < a[i].key) {
      out[n++] = {key, b[j++].value};
    } else {
      const LaneResidue<T> sum = a[i++].value + b[j++].value;
      if (!is_zero<T>(sum)) out[n++] = {key, sum};
    }
  }
  while (i < a.size()) out[n++] = a[i++];
  for (; j < b.size(); ++j) out[n++] = {b[j].key & mask, b[j].value};
  out.resize(n);
  XCOUNT_ASSERT(is_settled<T>(out));
}

#define XCOUNT_INSTANTIATE(T)                                                            \
  template CornerList<T> list_corners<T>(                                                \
      const Topology&, std::span<const CellOrder>, const LeafFlags&,                     \
      const std::function<LaneResidue<T>(NodeIndex)>&, const LaneResidue<T>&,            \
      std::span<const std::uint64_t>, unsigned, const ListLimits&);                      \
  template void settle_corners<T>(CornerList<T>&, CornerList<T>&, unsigned, Stop*);      \
  template void merge_corners<T>(std::span<const Corner<T>>, std::span<const Corner<T>>, \
                                 std::uint64_t, CornerList<T>&);

XCOUNT_INSTANTIATE(std::int32_t)
XCOUNT_INSTANTIATE(std::int64_t)
XCOUNT_INSTANTIATE(Int128)
XCOUNT_INSTANTIATE(Int2304)

#undef XCOUNT_INSTANTIATE

}  // namespace xcount

#include "xcount/exact/corner_list.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace xcount {

namespace {

constexpr std::size_t kLeastBuffer = std::size_t{1} << 16;
constexpr unsigned kDigitBits = 11;

[[noreturn]] void too_many() {
  throw std::length_error("corner sums: too many corners; use --method auto or exact");
}

template <class T>
bool is_zero(const LaneResidue<T>& value) {
  return value == LaneResidue<T>(0);
}

// Sorts by key, least significant digit first.
template <class T>
void sort_by_key(CornerList<T>& corners, CornerList<T>& scratch, unsigned key_bits) {
  constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
  if (corners.size() < kDigits) {
    std::sort(corners.begin(), corners.end(),
              [](const Corner<T>& a, const Corner<T>& b) { return a.key < b.key; });
    return;
  }
  scratch.resize(corners.size());
  for (unsigned shift = 0; shift < key_bits; shift += kDigitBits) {
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

// Collects corners in any order; sorts and adds them up whenever the new ones outnumber the rest.
template <class T>
class CornerCollector {
 public:
  CornerCollector(std::span<const std::uint64_t> step, unsigned key_bits, std::size_t max_corners)
      : step_(step), key_bits_(key_bits), max_corners_(max_corners) {}

  // The corners of a box: one after another, the features multiply what is there so far.
  void add(const LaneResidue<T>& value, std::span<const Feature> active,
           std::span<const CellSet> sets) {
    if (is_zero<T>(value)) return;
    const std::size_t begin = fresh_.size();
    fresh_.push_back({0, value});
    for (const Feature feature : active) {
      const auto f = static_cast<std::size_t>(feature);
      multiply(begin, sets[f], step_[f]);
    }
    if (fresh_.size() >= std::max(kLeastBuffer, sorted_.size())) settle();
  }
  CornerList<T> finish() {
    settle();
    sorted_.shrink_to_fit();
    return std::move(sorted_);
  }

 private:
  void multiply(std::size_t begin, const CellSet& set, std::uint64_t step) {
    const std::size_t end = fresh_.size();
    if ((end - begin) * set.size() > max_corners_) too_many();
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
    sort_by_key(fresh_, scratch_, key_bits_);
    compact(fresh_);
    merge_corners<T>(sorted_, fresh_, ~std::uint64_t{0}, scratch_);
    sorted_.swap(scratch_);
    fresh_.clear();
    if (sorted_.size() > max_corners_) too_many();
  }

  std::span<const std::uint64_t> step_;
  unsigned key_bits_;
  std::size_t max_corners_;
  CornerList<T> sorted_, fresh_, scratch_;
};

}  // namespace

LeafCensus take_census(const Topology& forest, std::span<const CellOrder> orders) {
  LeafCensus census;
  LeafBoxes boxes(forest, orders);
  for (const NodeIndex root : forest.roots) {
    boxes.walk(root,
               [&](NodeIndex, std::span<const Feature> active, std::span<const CellSet> sets) {
                 double n = 1;
                 for (const Feature f : active)
                   n *= static_cast<double>(sets[static_cast<std::size_t>(f)].size());
                 census.n_corners += n;
                 ++census.n_leaves;
               });
  }
  return census;
}

template <class T>
CornerList<T> list_corners(const Topology& forest, std::span<const CellOrder> orders,
                           std::span<const LaneResidue<T>> values, const LaneResidue<T>& constant,
                           std::span<const std::uint64_t> step, unsigned key_bits,
                           std::size_t max_corners) {
  CornerCollector<T> collector(step, key_bits, max_corners);
  LeafBoxes boxes(forest, orders);
  collector.add(constant, {}, {});
  for (const NodeIndex root : forest.roots) {
    boxes.walk(root,
               [&](NodeIndex leaf, std::span<const Feature> active, std::span<const CellSet> sets) {
                 collector.add(values[static_cast<std::size_t>(leaf)], active, sets);
               });
  }
  return collector.finish();
}

template <class T>
void merge_corners(std::span<const Corner<T>> a, std::span<const Corner<T>> b, std::uint64_t mask,
                   CornerList<T>& out) {
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
}

#define XCOUNT_INSTANTIATE(T)                                                                    \
  template CornerList<T> list_corners<T>(const Topology&, std::span<const CellOrder>,            \
                                         std::span<const LaneResidue<T>>, const LaneResidue<T>&, \
                                         std::span<const std::uint64_t>, unsigned, std::size_t); \
  template void merge_corners<T>(std::span<const Corner<T>>, std::span<const Corner<T>>,         \
                                 std::uint64_t, CornerList<T>&);

XCOUNT_INSTANTIATE(std::int32_t)
XCOUNT_INSTANTIATE(std::int64_t)
XCOUNT_INSTANTIATE(Int128)
XCOUNT_INSTANTIATE(Int2304)

#undef XCOUNT_INSTANTIATE

}  // namespace xcount

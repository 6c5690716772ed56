// Draws an item of a list with probability weight / sum of all weights.
//
// An item has a stretch of floor(units) + 1 of 2^62 units, with units = weight * scale and one
// scale for all. A unit is drawn; the last one of a stretch counts with probability units -
// floor(units) only, else another unit is drawn, as it is beyond the last stretch. So
//   P(item) = units / (sum of all units),
// up to the rounding of one product in 2^-63 of itself, and of that last probability in 2^-64 of a
// unit: docs/approximate.md, "Why the interval holds".
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "xcount/exact/frontier.hpp"
#include "xcount/support/assert.hpp"
#include "xcount/support/held_bytes.hpp"
#include "xcount/support/random.hpp"

namespace xcount {

class WeightedPicker {
 public:
  explicit WeightedPicker(unsigned bits = 62)
      : bits_(bits) {}  // of a unit's number; fewer in tests

  // Forgets all items, and makes ready for n items that weigh so much together.
  void start(std::size_t n, Share total) {
    XCOUNT_ASSERT(n == 0 || (total > 0 && n_units() > 2 * std::uint64_t{n} + kSpare));
    ends_.clear();
    ends_.reserve(n);
    scale_ = static_cast<Share>(n_units() - 2 * std::uint64_t{n} - kSpare) / total;
  }
  void add(Share weight) {
    XCOUNT_ASSERT(weight >= 0);
    const auto units = static_cast<std::uint64_t>(std::floor(weight * scale_));
    const std::uint64_t before = ends_.empty() ? 0 : ends_.back();
    if (units >= n_units() - before)
      throw std::invalid_argument("picker: more weight than announced");
    ends_.push_back(before + units + 1);
  }
  [[nodiscard]] bool empty() const { return ends_.empty(); }
  [[nodiscard]] std::size_t bytes() const { return held_bytes(ends_); }
  void release() { xcount::release(ends_); }

  // `weight_of(i)` is what was added as item i.
  template <class WeightOf>
  [[nodiscard]] std::size_t pick(Random& random, const WeightOf& weight_of) const {
    XCOUNT_ASSERT(!ends_.empty());
    while (true) {
      const std::uint64_t unit = random.next() >> (64 - bits_);
      const auto end = std::upper_bound(ends_.begin(), ends_.end(), unit);
      if (end == ends_.end()) continue;
      const auto item = static_cast<std::size_t>(end - ends_.begin());
      if (unit + 1 < *end) return item;
      const Share units = weight_of(item) * scale_;
      if (std::ldexp(static_cast<Share>(random.next()), -64) < units - std::floor(units)) {
        return item;
      }
    }
  }

 private:
  [[nodiscard]] std::uint64_t n_units() const { return std::uint64_t{1} << bits_; }
  static constexpr std::uint64_t kSpare = 16;  // for the rounding of the total, with one unit each

  std::vector<std::uint64_t> ends_;  // of the stretches, ascending; at most all units
  Share scale_ = 0;
  unsigned bits_;
};

}  // namespace xcount

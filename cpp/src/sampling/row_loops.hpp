// Loops over the rows of a block: sums[mask * width + sample]. All samples take the same steps, so
// that compilers turn the inner loops into vector instructions. Compiled for each vector unit with
// sums of 32 bits, and once for exact sums of any width.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "xcount/sampling/slices.hpp"
#include "xcount/support/value.hpp"

namespace xcount {

namespace {

// Adds modulo 2^bits: entries in difference form may wrap, the sums they stand for never do.
template <class Sum>
inline void wrapping_add(Sum& to, const Sum& value) {
  if constexpr (std::is_same_v<Sum, Int128>) {
    to = static_cast<Int128>(static_cast<UInt128>(to) + static_cast<UInt128>(value));
  } else if constexpr (std::is_integral_v<Sum>) {
    using Unsigned = std::make_unsigned_t<Sum>;
    to = static_cast<Sum>(static_cast<Unsigned>(to) + static_cast<Unsigned>(value));
  } else {
    to += value;
  }
}

// Difference form -> values: a prefix sum along every axis.
template <class Sum>
void integrate_rows(std::span<const std::uint32_t> extents, std::size_t width, Sum* rows) {
  std::size_t n_masks = 1;
  for (const std::uint32_t extent : extents) n_masks *= extent;
  std::size_t stride = 1;
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    const std::size_t span = stride * extents[axis];
    for (std::size_t start = 0; start < n_masks; start += span) {
      for (std::size_t m = start + stride; m < start + span; ++m) {
        Sum* to = rows + m * width;
        const Sum* from = rows + (m - stride) * width;
        for (std::size_t i = 0; i < width; ++i) wrapping_add(to[i], from[i]);
      }
    }
    stride = span;
  }
}

// Sets a flag where the change exceeds the limits, and a doubt where rounding decides.
template <class Sum, class Change>
void mark(const Limits<Sum>& limits, std::size_t width, std::uint8_t* flags, std::uint8_t* doubts,
          const Change& change) {
  for (std::size_t i = 0; i < width; ++i) {
    const Sum size = change(i);
    const bool sure = size > limits.sure;
    const bool maybe = size > limits.maybe;
    flags[i] |= static_cast<std::uint8_t>(sure);
    doubts[i] |= static_cast<std::uint8_t>(sure != maybe);
  }
}

// The same for the way from one sum to sums between `low` and `high`, in the limits' direction.
template <class Sum>
void mark_between(const Limits<Sum>& limits, std::size_t width, const Sum* from, const Sum* low,
                  const Sum* high, std::uint8_t* flags, std::uint8_t* doubts) {
  if (limits.up && limits.down) {
    mark(limits, width, flags, doubts, [&](std::size_t i) {
      const Sum rise = high[i] - from[i];
      const Sum fall = from[i] - low[i];
      return rise < fall ? fall : rise;
    });
  } else if (limits.up) {
    mark(limits, width, flags, doubts, [&](std::size_t i) { return Sum(high[i] - from[i]); });
  } else {
    mark(limits, width, flags, doubts, [&](std::size_t i) { return Sum(from[i] - low[i]); });
  }
}

inline bool any_of(const std::uint8_t* flags, std::size_t n) {
  std::uint8_t any = 0;
  for (std::size_t i = 0; i < n; ++i) any |= flags[i];
  return any != 0;
}

template <class Sum>
void clear(std::size_t n_flags, const MaskRows<Sum>& all) {
  std::fill_n(all.flags, n_flags * all.width, std::uint8_t{0});
  std::fill_n(all.doubts, all.width, std::uint8_t{0});
}

// The extremes of all masks; returns whether any two may differ by more than the limits.
template <class Sum>
bool find_extremes_of_rows(std::size_t n_masks, const Limits<Sum>& limits,
                           const MaskRows<Sum>& all) {
  std::copy_n(all.rows, all.width, all.low);
  std::copy_n(all.rows, all.width, all.high);
  for (std::size_t m = 1; m < n_masks; ++m) {
    const Sum* row = all.rows + m * all.width;
    for (std::size_t i = 0; i < all.width; ++i) {
      all.low[i] = row[i] < all.low[i] ? row[i] : all.low[i];
      all.high[i] = all.high[i] < row[i] ? row[i] : all.high[i];
    }
  }
  std::uint8_t any = 0;
  for (std::size_t i = 0; i < all.width; ++i) {
    any |= static_cast<std::uint8_t>(Sum(all.high[i] - all.low[i]) > limits.maybe);
  }
  return any != 0;
}

template <class Sum>
bool decide_everyone(const MaskComparison& masks, const Limits<Sum>& limits,
                     const MaskRows<Sum>& all) {
  clear(masks.n_masks, all);
  if (!find_extremes_of_rows(masks.n_masks, limits, all)) return false;
  for (std::size_t m = 0; m < masks.n_masks; ++m) {
    mark_between(limits, all.width, all.rows + m * all.width, all.low, all.high,
                 all.flags + m * all.width, all.doubts);
  }
  return true;
}

// The rows are in difference form: a jump makes the masks on both of its sides sensitive.
template <class Sum>
bool decide_jumps(const MaskComparison& masks, const Limits<Sum>& limits,
                  const MaskRows<Sum>& all) {
  const std::size_t width = all.width;
  clear(masks.n_masks, all);
  for (std::size_t m = 1; m < masks.n_masks; ++m) {
    if (masks.matters[m] == 0) continue;
    const Sum* row = all.rows + m * width;
    mark(limits, width, all.flags + m * width, all.doubts,
         [&](std::size_t i) { return row[i] < Sum(0) ? Sum(-row[i]) : row[i]; });
  }
  if (!any_of(all.flags, masks.n_masks * width)) return any_of(all.doubts, width);
  for (std::size_t i = 0; i + width < masks.n_masks * width; ++i) {
    all.flags[i] |= all.flags[i + width];
  }
  return true;
}

// Afterwards data[m] is the best of data[m .. m + window - 1], cut off at the end, for each sample;
// in log(window) passes.
template <class Sum, class Better>
void slide_rows(Sum* data, std::size_t n, std::size_t width, std::size_t window, Better better) {
  for (std::size_t done = 1; done < window;) {
    const std::size_t step = std::min(done, window - done);
    for (std::size_t i = 0; i + step * width < n * width; ++i) {
      data[i] = better(data[i + step * width], data[i]) ? data[i + step * width] : data[i];
    }
    done += step;
  }
}

template <class Sum>
bool decide_windows(const MaskComparison& masks, const Limits<Sum>& limits,
                    const MaskRows<Sum>& all) {
  const std::size_t width = all.width;
  const std::size_t n = masks.n_ordered;
  clear(masks.n_masks, all);
  if (!find_extremes_of_rows(masks.n_masks, limits, all)) return false;
  std::copy_n(all.rows, n * width, all.low);
  std::copy_n(all.rows, n * width, all.high);
  // A difference of two cells lies within one window of reach + 1 cells that starts at either.
  slide_rows(all.low, n, width, masks.reach + 1, [](const Sum& a, const Sum& b) { return a < b; });
  slide_rows(all.high, n, width, masks.reach + 1, [](const Sum& a, const Sum& b) { return b < a; });
  for (std::size_t m = 0; m < n; ++m) {
    const Sum* row = all.rows + m * width;
    // For m < reach the window from 0 ends to the right of m, still within m's own reach.
    for (const std::size_t window : {m, m < masks.reach ? 0 : m - masks.reach}) {
      mark_between(limits, width, row, all.low + window * width, all.high + window * width,
                   all.flags + m * width, all.doubts);
    }
    if (n == masks.n_masks) continue;
    const Sum* missing = all.rows + n * width;
    mark_between(limits, width, row, missing, missing, all.flags + m * width, all.doubts);
    mark_between(limits, width, missing, row, row, all.flags + n * width, all.doubts);
  }
  return true;
}

template <class Sum>
bool decide_pairs(const MaskComparison& masks, const Limits<Sum>& limits,
                  const MaskRows<Sum>& all) {
  const std::size_t width = all.width;
  clear(masks.n_masks, all);
  for (const auto& [a, b] : masks.pairs) {
    const Sum* first = all.rows + a * width;
    const Sum* second = all.rows + b * width;
    mark_between(limits, width, first, second, second, all.flags + a * width, all.doubts);
    mark_between(limits, width, second, first, first, all.flags + b * width, all.doubts);
  }
  return any_of(all.flags, masks.n_masks * width) || any_of(all.doubts, width);
}

// One flag of a sample: whether any of the pairs differs.
template <class Sum>
bool decide_any_pair(const MaskComparison& masks, const Limits<Sum>& limits,
                     const MaskRows<Sum>& all) {
  clear(1, all);
  for (const auto& [a, b] : masks.pairs) {
    const Sum* second = all.rows + b * all.width;
    mark_between(limits, all.width, all.rows + a * all.width, second, second, all.flags,
                 all.doubts);
  }
  return any_of(all.flags, all.width) || any_of(all.doubts, all.width);
}

// One flag of a sample: whether all of the pairs differ.
template <class Sum>
bool decide_all_pairs(const MaskComparison& masks, const Limits<Sum>& limits,
                      const MaskRows<Sum>& all) {
  clear(1, all);
  std::fill_n(all.flags, all.width, std::uint8_t{1});
  for (const auto& [a, b] : masks.pairs) {
    std::uint8_t differs[kBlock] = {};
    const Sum* second = all.rows + b * all.width;
    mark_between(limits, all.width, all.rows + a * all.width, second, second, differs, all.doubts);
    for (std::size_t i = 0; i < all.width; ++i) all.flags[i] &= differs[i];
  }
  return any_of(all.flags, all.width) || any_of(all.doubts, all.width);
}

}  // namespace

}  // namespace xcount

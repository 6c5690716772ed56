// The forms of change that make a region sensitive, each with a direction.
#pragma once

#include <cstdint>

namespace xcount {

// Let V be a region's sum, V' that of a neighbour (the same non-sensitive cells, another mask
// within the distance). The region is sensitive iff some neighbour has
//   kGap      V' - V > threshold (up), V - V' > threshold (down); threshold >= 0
//   kFlip     V <= sure_below, threshold + band < V' (up), V' <= threshold, sure_above < V (down):
//             sure_below = sure_above = threshold and band = 0 where every start counts and sums
//             are exact
//   kLargest  another index of the largest of several sums, ties to the first; any direction
//   kSureLargest  the same, if the largest, V_k, is sure enough: p_k(V) >= threshold /
//             kProbabilityOne for a softmax p, V_k > sure_above if sums are probabilities
//   kProbability  p(V') - p(V) > threshold / kProbabilityOne (up), p(V) - p(V') (down), for the
//             probability p that a link makes of one or several sums (exact/probability_link.hpp)
// and kAny asks for either direction.
enum class ChangeForm : std::uint8_t { kGap, kFlip, kLargest, kSureLargest, kProbability };
enum class Direction : std::uint8_t { kAny, kUp, kDown };

// The probability 1 in the integers that probabilities are compared in first.
inline constexpr std::int64_t kProbabilityOne = std::int64_t{1} << 48;
// How far a difference of two of them may be off: two roundings, and twice the error of p (below
// 2^-49).
inline constexpr std::int32_t kProbabilityDoubt = 3;

template <class Value>
struct Change {
  Change() = default;
  Change(ChangeForm what, Direction way, const Value& at)  // every start counts
      : form(what), direction(way), threshold(at), sure_below(at), sure_above(at) {}

  ChangeForm form = ChangeForm::kGap;
  Direction direction = Direction::kAny;
  Value threshold{};                 // of a gap, or the cut-off of a flip
  Value sure_below{}, sure_above{};  // where a flip may start
  Value band{};                      // of a flip in rounded sums: may be negative
};

}  // namespace xcount

// What makes two regions differ: one case per form of the question, each with a direction.
#pragma once

#include <cstdint>

namespace xcount {

// Let V be a region's sum, V' that of a neighbour (the same non-sensitive cells, another mask
// within the distance). The region is sensitive iff some neighbour has
//   kGap      V' - V > threshold (up), V - V' > threshold (down); threshold >= 0
//   kFlip     V <= threshold < V' (up), V' <= threshold < V (down); with a band, the higher sum
//             has to be above threshold + band
//   kLargest  another index of the largest of several sums, ties to the first; any direction
// and kAny asks for either direction. A change of a monotone function of V (a probability) would be
// one form more: it, too, depends on V and on the neighbours' extremes alone.
enum class ChangeForm : std::uint8_t { kGap, kFlip, kLargest };
enum class Direction : std::uint8_t { kAny, kUp, kDown };

template <class Value>
struct Change {
  ChangeForm form = ChangeForm::kGap;
  Direction direction = Direction::kAny;
  Value threshold{};  // of a gap, or the cut-off of a flip
  Value band{};       // of a flip: may be negative
};

}  // namespace xcount

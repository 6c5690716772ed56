// Probabilities of the sums of a tile in floating point, one lane at a time.
// Proved in docs/corner-sums.md, "Probabilities".
#pragma once

#include <cstddef>
#include <cstdint>

#include "xcount/exact/corner_tile.hpp"

namespace xcount {

// Sets decided[mask], for all masks and the lanes [begin, end), to the integers Q that stand for
// the probabilities: 0 <= Q <= kProbabilityOne.
template <class T>
void find_probabilities(const TileQuestion<T>& question, const TileColumn<T>& column,
                        Lanes<T>* decided, std::size_t begin, std::size_t end);

// Whether the largest sum is sure enough for a flip to start there (ChangeForm::kSureLargest).
template <class T>
[[nodiscard]] bool is_sure(const TileQuestion<T>& question, const TileColumn<T>& column,
                           std::size_t change, std::size_t mask, std::size_t lane);

}  // namespace xcount

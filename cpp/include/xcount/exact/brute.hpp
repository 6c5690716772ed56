// Counting by enumeration: the oracle of every other counter. Nothing clever happens here.
//
// count[m] = number of combinations x for which some neighbour m' of m has
// |V(x, m) - V(x, m')| > threshold: the definition itself.
#pragma once

#include <cstdint>
#include <vector>

#include "xcount/trees/forest.hpp"
#include "xcount/trees/gap.hpp"
#include "xcount/trees/masks.hpp"

namespace xcount {

// Enumerates combinations of the non-sensitive cells; for each, compares every mask with its
// neighbours. Combinations are numbered in mixed radix with the last feature fastest.
template <class Value>
class BruteForce {
 public:
  BruteForce(const Forest<Value>& forest, const MaskSpace& masks, Value threshold);

  // Number of combinations of non-sensitive cells; throws length_error beyond 2^62.
  [[nodiscard]] std::uint64_t n_combinations() const { return n_combinations_; }

  // For each mask, how many combinations in [begin, end) make it sensitive.
  [[nodiscard]] std::vector<std::uint64_t> count(std::uint64_t begin, std::uint64_t end,
                                                 unsigned n_threads) const;

 private:
  void count_slice(std::uint64_t begin, std::uint64_t end, std::vector<std::uint64_t>& out) const;
  void decode(std::uint64_t index, std::vector<Cell>& region) const;

  const Forest<Value>& forest_;
  const MaskSpace& masks_;
  Gap<Value> gap_;
  std::vector<std::vector<MaskIndex>> neighbours_;  // only those with a larger index
  std::vector<Feature> free_features_;
  std::uint64_t n_combinations_ = 1;
};

}  // namespace xcount

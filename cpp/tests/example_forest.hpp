// The two trees of the paper's figure 1, and arrays to build broken variants from.
#pragma once

#include <cstdint>
#include <vector>

#include "xcount/trees/forest.hpp"

namespace xcount::test {

// f0 < 4 ? (f1 < 3 ? 30 : -30) : 35   and   f0 < 3 ? (f1 < 2 ? 40 : -40) : -45,
// with the guards f0: 3, 4 and f1: 2, 3, so that both features have three cells.
struct ExampleArrays {
  std::vector<std::int32_t> n_cells{3, 3};
  std::vector<std::int32_t> missing_cell{-1, -1};
  std::vector<std::uint8_t> ordered{1, 1};
  std::vector<std::int32_t> roots{0, 5};
  std::vector<std::int32_t> feature{0, 1, -1, -1, -1, 0, 1, -1, -1, -1};
  std::vector<std::int32_t> cut{2, 2, 0, 0, 0, 1, 1, 0, 0, 0};
  std::vector<std::uint8_t> missing_left = std::vector<std::uint8_t>(10, 0);
  std::vector<std::int32_t> left{1, 2, -1, -1, -1, 6, 7, -1, -1, -1};
  std::vector<std::int32_t> right{4, 3, -1, -1, -1, 9, 8, -1, -1, -1};
  std::vector<std::int64_t> values{0, 0, 30, -30, 35, 0, 0, 40, -40, -45};
  std::vector<std::uint8_t> membership;
  std::vector<std::int32_t> positions;

  // The leaf values as integers of `width` limbs each.
  [[nodiscard]] std::vector<std::uint64_t> limbs(std::size_t width) const {
    std::vector<std::uint64_t> result;
    for (const std::int64_t value : values) {
      result.push_back(static_cast<std::uint64_t>(value));
      for (std::size_t i = 1; i < width; ++i) result.push_back(value < 0 ? ~std::uint64_t{0} : 0);
    }
    return result;
  }

  template <class Value>
  [[nodiscard]] Forest<Value> build() const {
    const std::vector<std::uint64_t> all_limbs = limbs(ValueTraits<Value>::kLimbs);
    return Forest<Value>(ForestArrays{n_cells, missing_cell, ordered, roots, feature, cut,
                                      missing_left, left, right, all_limbs, membership, positions});
  }
};

}  // namespace xcount::test

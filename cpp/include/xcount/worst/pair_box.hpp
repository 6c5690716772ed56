// Boxes of pairs of regions, and which of their pairs are within the distance.
//
// A box has for each variable of a pair (worst/pair_trees.hpp) the cells c with low <= c <= high.
// A pair is within reach iff the distances of its sensitive cells add up to at most the limit; as
// each feature's part of that sum depends on its own two cells only, a box holds such a pair iff
// the least distances of its runs add up to at most the limit.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "xcount/trees/forest.hpp"

namespace xcount {

struct CellRun {
  Cell low = 0;
  Cell high = 0;  // included

  [[nodiscard]] Cell size() const { return high - low + 1; }
  [[nodiscard]] bool has(Cell cell) const { return low <= cell && cell <= high; }
  friend bool operator==(const CellRun&, const CellRun&) = default;
};

using PairBox = std::vector<CellRun>;  // per variable
using PairPoint = std::vector<Cell>;   // per variable

// Distances between the sensitive cells of a pair, whose variables follow the common ones: start
// and target of the first sensitive feature, then of the second, and so on.
class PairReach {
 public:
  PairReach(const Topology& forest, std::span<const Feature> sensitive, std::size_t n_common,
            std::optional<std::int64_t> limit);

  [[nodiscard]] bool is_limited() const { return limit_.has_value(); }
  [[nodiscard]] bool allows(const PairPoint& point) const;
  // Cuts off the ends of runs that no pair within reach has; false if there is no such pair.
  bool trim(PairBox& box) const;
  // Sets the sensitive cells to the two of a box that are nearest to each other.
  void set_nearest(const PairBox& box, PairPoint& point) const;

 private:
  [[nodiscard]] std::int64_t distance(std::size_t i, const CellRun& a, const CellRun& b) const;
  void shorten(std::size_t i, CellRun& run, const CellRun& other, std::int64_t most) const;

  std::vector<Axis> axes_;
  std::size_t n_common_;
  std::optional<std::int64_t> limit_;
};

}  // namespace xcount

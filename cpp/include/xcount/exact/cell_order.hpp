// The order in which the cells of an axis are laid out, and sets of cells as boundaries.
// Proved in docs/corner-sums.md, "Sets of cells".
#pragma once

#include <span>
#include <vector>

#include "xcount/trees/forest.hpp"

namespace xcount {

// A set of positions of an axis, as the strictly increasing positions at which membership changes,
// starting with "not a member":  indicator(p) = number of boundaries <= p, modulo 2.
// The differences of the indicator along the axis are +1, -1, +1, ... at the boundaries; one at
// n_cells is left out. {} is the empty set, {0} the whole axis.
using CellSet = std::vector<Cell>;

[[nodiscard]] CellSet intersection(const CellSet& a, const CellSet& b);
[[nodiscard]] CellSet complement(const CellSet& set);

// Where each cell of an axis stands. Numeric cells keep their order, with the missing cell last or
// first; cells without an order stand such that the sets that are tested have few boundaries.
struct CellOrder {
  std::vector<Cell> position;  // of each cell
  std::vector<Cell> cell;      // at each position

  [[nodiscard]] Cell n_cells() const { return static_cast<Cell>(cell.size()); }
  // The positions of the cells that go left.
  [[nodiscard]] CellSet left_set(const Topology& forest, const Test& test) const;
};

// The orders of all axes of forests on the same grid. The missing cell of a feature for which
// keep_last is true stays the last one.
[[nodiscard]] std::vector<CellOrder> choose_cell_orders(std::span<const Topology* const> forests,
                                                        const std::vector<bool>& keep_last);

}  // namespace xcount

// A tile: all masks for a row of non-sensitive cells, summed and decided column by column.
//
// A column is a vector of lanes, each a cell of the row, for every mask. With S the slab that is
// added for the current middle cell and E the sums along the middle axes so far,
//   E += S;   V(m) = sum over mask positions q <= m (in every sensitive axis) of E(q).
// A change asks whether V(m) < a or V(m) > b, where a and b come from the extremes high and low of
// V around m (see `set_edges` in the source); so all forms and directions share one loop. Lanes
// beyond the end of the row are 0 for every mask: nothing differs there, they never count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "xcount/exact/corner_layout.hpp"
#include "xcount/exact/lanes.hpp"
#include "xcount/exact/mask_windows.hpp"
#include "xcount/trees/change.hpp"

namespace xcount {

inline constexpr std::size_t kShareLanes = 8;  // of sums of weights, whatever the machine

// What a thread counts tiles with. Margins are in 0 <= V <= span.
template <class T>
struct TileJob {
  const CornerLayout* layout = nullptr;
  const MaskWindows* windows = nullptr;
  std::span<const Change<T>> changes;  // thresholds within the margins' units, -1 .. span + 1
  T span{};

  std::size_t n_outputs = 1;
  std::vector<const Lanes<T>*> slab;  // per output: S, [column][mask]
  std::vector<Lanes<T>*> sums;        // per output: E, [column][mask]
  bool fresh = true;                  // E is taken as 0

  std::vector<Lanes<T>> column;             // V, [output][mask]
  std::vector<Lanes<T>> highest, lowest;    // tables of extremes, [mask]
  std::vector<TallyLanes<T>> tally;         // [change][mask]
  std::vector<TallyLanes<T>> common_tally;  // [change]: what counts for every mask

  std::vector<double> row_weights;                      // per lane of the row; empty: no weighing
  std::vector<std::array<double, kShareLanes>> shares;  // [change][mask], of one tile
};

template <class T>
using CountTile = void (*)(TileJob<T>&);
template <class T>
using AddLanes = void (*)(Lanes<T>*, const Lanes<T>*, std::size_t);  // a[i] += b[i]

// The kernels for this machine's vector unit.
template <class T>
struct TileKernels {
  CountTile<T> count_tile = nullptr;
  AddLanes<T> add_lanes = nullptr;
};

template <class T>
[[nodiscard]] TileKernels<T> choose_kernels(bool weighted);

}  // namespace xcount

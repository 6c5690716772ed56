// A tile: all masks for a row of non-sensitive cells, summed and decided column by column.
//
// A column is a vector of lanes, each a cell of the row, for every mask. With S the slab that is
// added for the current middle cell and E the sums along the middle axes so far,
//   E += S;   V(m) = sum over mask positions q <= m (in every sensitive axis) of E(q).
// A change asks whether V(m) < a or V(m) > b, where a and b come from the extremes high and low of
// V around m (see `set_edges` in corner_tile_decisions.hpp), so all forms and directions share one
// loop. Probabilities are compared as integers Q in place of V, and by a judge within a band around
// the gap (probability_link.hpp). Lanes beyond the end of the row are 0 for every mask: nothing
// differs there, so they never count. Proved in docs/corner-sums.md, "Answering".
//
// The structs here are plain numbers and pointers, so that nothing but the kernels themselves is
// compiled for a particular vector unit: a member function that two units compile would be shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "xcount/exact/lanes.hpp"
#include "xcount/exact/mask_windows.hpp"
#include "xcount/exact/probability_link.hpp"
#include "xcount/support/vector_unit.hpp"
#include "xcount/trees/change.hpp"

namespace xcount {

inline constexpr std::size_t kShareLanes = 8;  // of sums of weights, whatever the machine

// A view of an array.
template <class Item>
struct Items {
  const Item* data = nullptr;
  std::size_t size = 0;
};

// Which masks lie near each mask: a view of MaskWindows, with the same fields.
struct Neighbours {
  bool any = false;
  std::size_t n_masks = 1;
  Items<MaskAxis> ball_axes;
  std::size_t n_levels = 0;
  MaskAxis line;
  std::size_t width = 1;
  const std::uint32_t* first = nullptr;
  Items<MaskAxis> grown;
  Items<std::size_t> growth;
  const std::size_t* n_planes = nullptr;
};

// Where the extremes of a NearRow stand for the line that starts at mask 0.
template <class T>
struct NearExtremes {
  const Lanes<T>* high;
  const Lanes<T>* low;
};

// What is compared at the masks of a column, and the tables that find the extremes around each.
template <class T>
struct NearTables {
  Neighbours masks;
  std::size_t offset = 0;       // first lane of the part of a column that a register holds
  Lanes<T>* decided = nullptr;  // what is compared, [mask]: V, the largest's index, probabilities
  Lanes<T>* highest = nullptr;  // [table][mask]: balls from level 1 on, then windows
  Lanes<T>* lowest = nullptr;
  const NearExtremes<T>* near = nullptr;
  Lanes<T>* high = nullptr;  // the results, [mask]: low <= decided <= high; unset for 16 bits
  Lanes<T>* low = nullptr;
};

// Sets tables.masks and tables.near as the windows say, given the other tables; returns what
// tables.near points to.
template <class T>
[[nodiscard]] std::vector<NearExtremes<T>> connect(const MaskWindows& windows,
                                                   NearTables<T>& tables);

// Which sums along the middle axes a column starts from: the slab itself, those so far with the
// slab added, or those that are there.
enum class Start : std::uint8_t { kFresh, kAdded, kKept };

// The sums that V is made of.
template <class T>
struct TileSums {
  std::size_t n_columns = 1, n_masks = 1, n_outputs = 1;
  Items<std::size_t> axes;          // cells of each sensitive axis; their product is n_masks
  const Lanes<T>** slab = nullptr;  // per output: S, [column][mask]
  Lanes<T>** sums = nullptr;        // per output: E, [column][mask]
  Start start = Start::kFresh;
};

// Holds the sums of few masks, and can write down those of all.
class TileFiller {
 public:
  virtual ~TileFiller() = default;
  virtual void fill() = 0;  // sets TileSums::sums
};

// E of only the masks that have corners; `place` is null if E is held for all masks.
template <class T>
struct HeldSums {
  const Lanes<T>* sums = nullptr;        // [place][column]; 0 at place 0
  std::size_t n_columns = 0;             // a multiple of those that fill lanes of 16 bits
  const std::uint32_t* place = nullptr;  // of every mask
  TileFiller* filler = nullptr;
};

// The sums V of one column, [output][mask]: 0 <= V <= span.
template <class T>
struct TileColumn {
  Lanes<T>* sums = nullptr;
  std::size_t n_outputs = 1, n_masks = 1;
};

// Decides a mask if the integers that stand for probabilities leave it open: by the sums of the
// masks around it in one lane (counted from the first of the vector).
template <class T>
class TileJudge {
 public:
  virtual ~TileJudge() = default;
  [[nodiscard]] virtual bool changes(const TileColumn<T>& column, std::size_t change,
                                     std::size_t mask, std::size_t lane) const = 0;
};

// What is asked of every mask.
template <class T>
struct TileQuestion {
  Items<Change<T>> changes;  // thresholds of V: -1 .. span + 1
  T span{};
  const TileJudge<T>* judge = nullptr;  // only for probabilities
  ProbabilityLink link;
  T zero{};  // the sum 0, as V, which is never negative
};

// Where the answers go.
struct TileResults {
  std::uint64_t* counts = nullptr;         // [change][mask]: lanes that changed
  std::uint64_t* common_counts = nullptr;  // [change]: lanes that changed for every mask
  const double* row_weights = nullptr;     // per lane of the row
  double* shares = nullptr;                // [change][mask][kShareLanes]: sums of weights
};

template <class T>
struct NarrowTile;

// Everything that the kernels need to count a tile.
template <class T>
struct TileJob {
  TileSums<T> sums;
  HeldSums<T> held;
  TileColumn<T> column;
  NearTables<T> near;
  TileQuestion<T> question;
  TileResults results;
  const Lanes<T>* filter = nullptr;  // [change][mask]: only these lanes count; null: all
  NarrowTile<T>* narrow = nullptr;   // if 16 bits are compared first
};

template <class T>
struct TileKernels {
  void (*count_tile)(TileJob<T>&) = nullptr;
  void (*add_lanes)(Lanes<T>* a, const Lanes<T>* b, std::size_t n) = nullptr;  // a[i] += b[i]
  void (*find_extremes)(const NearTables<T>&) = nullptr;  // at the lanes from `offset` on
};

// The kernels for the best unit that this machine has, up to the given one; for 32 and 64 bits.
// Wider sums have plain loops (wide_tile.hpp).
template <class T>
[[nodiscard]] TileKernels<T> choose_kernels(bool weighted, VectorUnit most);

// The kernels of one unit, by the bytes of its registers.
template <class T, std::size_t kVectorBytes>
[[nodiscard]] TileKernels<T> unit_kernels(bool weighted);

}  // namespace xcount

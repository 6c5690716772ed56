// A tile: all masks for a row of non-sensitive cells, summed and decided column by column.
//
// A column is a vector of lanes, each a cell of the row, for every mask. With S the slab that is
// added for the current middle cell and E the sums along the middle axes so far,
//   E += S;   V(m) = sum over mask positions q <= m (in every sensitive axis) of E(q).
// A change asks whether V(m) < a or V(m) > b, where a and b come from the extremes high and low of
// V around m (see `set_edges` in corner_tile_kernels.hpp); so all forms and directions share one
// loop. Probabilities are compared as integers Q in the place of V, and by a judge within a band
// around the gap (probability_link.hpp). Lanes beyond the end of the row are 0 for every mask:
// nothing differs there, they never count. Proved in docs/corner-sums.md, "Answering".
#pragma once

#include <cstddef>
#include <cstdint>

#include "xcount/exact/lanes.hpp"
#include "xcount/exact/mask_windows.hpp"
#include "xcount/trees/change.hpp"

namespace xcount {

inline constexpr std::size_t kShareLanes = 8;  // of sums of weights, whatever the machine

// Where the extremes of a NearRow stand for the line that starts at mask 0.
template <class T>
struct NearExtremes {
  const Lanes<T>* high;
  const Lanes<T>* low;
};

template <class T>
struct TileJob;
template <class T>
struct NarrowTile;

// Decides a mask where the integers that stand for probabilities leave it open: by the sums of the
// masks around it in one lane (counted from the beginning of the vector).
template <class T>
class TileJudge {
 public:
  virtual ~TileJudge() = default;
  [[nodiscard]] virtual bool changes(const TileJob<T>& job, std::size_t change, std::size_t mask,
                                     std::size_t lane) const = 0;
};

// Who holds the sums of few masks, and can write down those of all.
class TileFiller {
 public:
  virtual ~TileFiller() = default;
  virtual void fill() = 0;  // sets TileJob::sums
};

// Which sums along the middle axes a column starts from: the slab itself, those so far with the
// slab added, or those that are there.
enum class Start : std::uint8_t { kFresh, kAdded, kKept };

// What kernels work on: plain numbers and pointers, so that nothing but the kernels themselves is
// compiled for a particular machine. Margins are in 0 <= V <= span.
template <class T>
struct TileJob {
  std::size_t n_columns = 1;
  std::size_t offset = 0;  // first lane of the part of a column that a register holds
  std::size_t n_masks = 1;
  const std::size_t* sensitive_cells = nullptr;  // per sensitive axis
  std::size_t n_sensitive = 0;

  bool any = false;  // see MaskWindows
  const MaskAxis* ball_axes = nullptr;
  std::size_t n_ball_axes = 0;
  std::size_t n_levels = 0;
  MaskAxis line;
  std::size_t width = 1;
  const std::uint32_t* first = nullptr;
  const NearExtremes<T>* near = nullptr;
  const MaskAxis* grown = nullptr;
  std::size_t n_grown = 0;
  const std::size_t* growth = nullptr;
  const std::size_t* n_planes = nullptr;
  std::size_t n_growth = 0;

  const Change<T>* changes = nullptr;  // thresholds of V: -1 .. span + 1
  std::size_t n_changes = 0;
  T span{};

  std::size_t n_outputs = 1;
  const Lanes<T>** slab = nullptr;  // per output: S, [column][mask]
  Lanes<T>** sums = nullptr;        // per output: E, [column][mask]
  Start start = Start::kFresh;
  // Where E is held of the masks alone that have corners: [place][column], and the place of every
  // mask (else null). At place 0, E is 0. Columns are filled up such that they fill lanes of 16
  // bits.
  const Lanes<T>* held = nullptr;
  std::size_t n_held_columns = 0;
  const std::uint32_t* place = nullptr;
  TileFiller* filler = nullptr;

  Lanes<T>* column = nullptr;   // V, [output][mask]
  Lanes<T>* decided = nullptr;  // what is compared, [mask]: V, the largest's index, probabilities
  Lanes<T>* highest = nullptr;  // tables of extremes, [table][mask]: balls from level 1 on, windows
  Lanes<T>* lowest = nullptr;
  std::uint64_t* counts = nullptr;         // [change][mask]: lanes that changed
  std::uint64_t* common_counts = nullptr;  // [change]: what counts for every mask
  NarrowTile<T>* narrow = nullptr;         // where 16 bits are compared first
  const Lanes<T>* filter = nullptr;        // [change][mask]: only these lanes count; null: all

  const TileJudge<T>* judge = nullptr;  // only where probabilities are compared
  bool softmax = false;
  std::size_t output = 0;  // the one asked about
  T zero{};                // the sum 0: V is never negative here
  double unit = 1.0;       // of a sum, times 2^exponent
  int exponent = 0;

  const double* row_weights = nullptr;  // per lane of the row
  double* shares = nullptr;             // [change][mask][kShareLanes]: sums of weights
};

template <class T>
using CountTile = void (*)(TileJob<T>&);
template <class T>
using AddLanes = void (*)(Lanes<T>*, const Lanes<T>*, std::size_t);  // a[i] += b[i]

// Instructions that kernels are compiled for, each including those before.
enum class VectorUnit : std::uint8_t { kPlain, kAvx2, kAvx512 };

template <class T>
struct TileKernels {
  CountTile<T> count_tile = nullptr;
  AddLanes<T> add_lanes = nullptr;
};

// The kernels for the best unit that this machine has, up to the given one.
template <class T>
[[nodiscard]] TileKernels<T> choose_kernels(bool weighted, VectorUnit most);

// Those for one kind of x86-64 machine each, defined for 32 and 64 bits alone.
template <class T>
[[nodiscard]] TileKernels<T> avx2_kernels(bool weighted);
template <class T>
[[nodiscard]] TileKernels<T> avx512_kernels(bool weighted);

}  // namespace xcount

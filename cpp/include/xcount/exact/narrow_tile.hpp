// Sums compared by 16 of their bits: the extremes around a mask are found at a quarter of the cost.
//
// For one combination of non-sensitive cells (a lane), with V0 the sum of the first mask (and a
// center that is learnt if sums are held for few masks) and the unit 2^shift, gaps compare
//   q(m) = floor((V(m) - V0) / unit) + 2^15,  0 <= q < 2^16,
// so that unit * (q(m') - q(m) - 1) < V(m') - V(m) < unit * (q(m') - q(m) + 1): a gap G is
//   surely exceeded    if q(m') - q(m) > ceil(G / unit)
//   possibly exceeded  if q(m') - q(m) > floor((G + 1) / unit) - 1
// and the lanes between the two, which are few, are settled by the next 16 bits of V - V0, in the
// same way, and the few that these leave by the sums themselves. The unit is the least that holds
// the recent sums. Flips compare q = the number of cut-offs below V, and the largest of several
// compares its index: both are exact.
// Proved in docs/corner-sums.md, "Sixteen bits".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "xcount/exact/corner_tile.hpp"

namespace xcount {

// A change in q: of gaps, or of flips (the cut-offs of Change by their index).
struct NarrowChange {
  Direction direction = Direction::kAny;
  std::uint16_t surely = 0, possibly = 0;
  std::int64_t fine_surely = 0, fine_possibly = 0;  // of 32 bits
  std::uint16_t sure_below = 0, sure_above = 0, low = 0, high = 0;
};

// A mask that some lanes leave open.
struct Doubt {
  std::size_t change, mask;
  Lanes<std::uint16_t> lanes;  // those that are not 0
};

// The doubts so far; there is room for one per change, mask and register.
struct Doubts {
  Doubt* data = nullptr;
  std::size_t size = 0;
};

// What is compared in 16 bits, whatever the sums are in.
struct NarrowJob {
  NearTables<std::uint16_t> near;  // q is what it compares
  Items<NarrowChange> changes;
  bool is_flip = false;
  std::uint32_t* counts = nullptr;  // [change][mask]: lanes of a tile that surely changed
  Doubts doubts;
};

inline constexpr std::size_t kRowAxes = 3;  // on more axes, sums are made before they are shrunk

template <class T>
class NarrowRoom;

// How sums become 16 bits.
template <class T>
struct NarrowTile {
  NarrowJob job;
  Items<T> cuts;                         // of flips, ascending
  Lanes<std::uint16_t>* fine = nullptr;  // of gaps: the 16 bits below q, [mask]
  Lanes<T>* before = nullptr;            // sums of the rows and planes before, of each column
  unsigned shift = 0;
  T center{};                    // of held sums: V0 is the first mask's sum plus this
  LaneResidue<T> magnitude = 0;  // of V - V0, or-ed over all lanes and masks
  NarrowRoom<T>* room = nullptr;
};

// Owns the tables of 16 bits, chooses the unit and settles doubts. In its methods, `lane` is the
// narrow lane at which the lanes of a column of T begin; job.near.decided has its sums.
template <class T>
class NarrowRoom {
 public:
  NarrowRoom(const TileJob<T>& job, const MaskWindows& windows);
  NarrowRoom(const NarrowRoom&) = delete;
  NarrowRoom& operator=(const NarrowRoom&) = delete;

  // Whether 16 bits can be compared, and whether that pays.
  [[nodiscard]] static bool suits(std::span<const Change<T>> changes, std::size_t n_columns);
  [[nodiscard]] static std::size_t bytes_for(std::size_t n_changes, const MaskWindows& windows);

  [[nodiscard]] NarrowTile<T>* tile() { return &narrow_; }

  // Whether the next columns are to be compared in full.
  [[nodiscard]] bool skips();
  // Chooses a unit that holds the magnitude; true if it had to grow.
  [[nodiscard]] bool grows();
  // Whether the unit is small enough to decide anything.
  [[nodiscard]] bool is_usable() const;
  // Learns from the last columns: after many doubts, columns are compared in full for a while.
  void finish(bool well);

  // Whether one pass over all masks is quicker than the doubts one by one.
  [[nodiscard]] bool has_many_doubts() const;
  [[nodiscard]] bool has_doubts(std::size_t lane) const;
  // Counts the doubts that 32 bits settle, and drops them.
  void settle_finely();
  // Counts the doubts of a column.
  void settle(const TileJob<T>& job, std::size_t lane) const;
  // The doubts of a column as TileJob::filter.
  [[nodiscard]] const Lanes<T>* filter(std::size_t lane);

 private:
  void set_cuts(std::span<const Change<T>> changes);
  void set_shift(unsigned shift);
  void set_center();
  [[nodiscard]] bool differs(const TileJob<T>& job, const Doubt& doubt, std::size_t lane) const;
  // What 32 bits say about a doubt: it changes, it does not, or that remains open.
  enum class Verdict : std::uint8_t { kNo, kOpen, kYes };
  [[nodiscard]] Verdict look_closer(const Doubt& doubt, std::size_t lane) const;

  const MaskWindows& windows_;
  NarrowTile<T> narrow_;
  std::vector<NarrowChange> changes_;
  std::vector<T> cuts_;
  std::vector<Lanes<std::uint16_t>> decided_, fine_, tables_;
  std::vector<std::uint32_t> sure_counts_;
  std::uint64_t* counts_;
  std::vector<NearExtremes<std::uint16_t>> near_;
  std::vector<Lanes<T>> before_;
  std::unique_ptr<Doubt[]> doubts_;
  std::vector<Lanes<T>> filter_;

  std::vector<Change<T>> exact_;
  bool is_held_ = false;  // see HeldSums
  bool is_usable_ = true;
  unsigned least_shift_ = 0;  // that held the sums since the unit was last reduced
  std::size_t n_seen_ = 0;
  std::size_t n_skipped_ = 0, n_to_skip_ = 0;
};

}  // namespace xcount

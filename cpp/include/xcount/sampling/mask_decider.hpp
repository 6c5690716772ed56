// Which masks matter to a sample, and which of them are sensitive, given V along them.
//
// sensitive[m] = 1 iff |row[m'] - row[m]| > threshold for some pair {m, m'} of the question, in the
// gap's direction; every way of deciding gives just that: docs/approximate.md, "What is sampled",
// "Plain samples".
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "xcount/trees/gap.hpp"
#include "xcount/trees/masks.hpp"

namespace xcount {

// What is asked of a sample: which masks are unresolved, and which pairs of masks can make them
// sensitive.
struct MaskQuestion {
  std::vector<MaskIndex> unresolved;
  std::vector<std::pair<MaskIndex, MaskIndex>> pairs;  // those that may differ by more than the gap
  bool all_pairs = true;                               // ignore `pairs`: all neighbours may
};

// The part of the mask space that a question is about: the cells that occur in its pairs, per
// sensitive axis. Masks of the scope are numbered like those of the whole space.
class MaskScope {
 public:
  MaskScope(const Topology& forest, const MaskSpace& masks, const MaskQuestion& question);

  [[nodiscard]] const std::vector<std::vector<Cell>>& cells() const { return cells_; }
  [[nodiscard]] std::size_t n_masks() const { return n_masks_; }
  [[nodiscard]] std::uint32_t index(const MaskSpace& masks, MaskIndex mask) const;

 private:
  std::vector<std::vector<Cell>> cells_;
  std::size_t n_masks_ = 1;
};

// Decides every mask of a row at once: by the row's extremes when all masks are neighbours, by the
// jumps between next masks when those are the pairs, by sliding windows on one ordered axis, by the
// pairs one after the other otherwise.
template <class Value>
class MaskDecider {
 public:
  MaskDecider(const Topology& forest, const MaskSpace& masks, const MaskScope& scope,
              const MaskQuestion& question, const Gap<Value>& gap);

  struct Workspace {
    std::vector<Value> low, high;
  };
  [[nodiscard]] Workspace workspace() const;

  // The question's pairs, if it lists them, by the masks' numbers in the scope.
  [[nodiscard]] std::span<const std::pair<std::uint32_t, std::uint32_t>> pairs() const {
    return pairs_;
  }

  // Whether rows are to be handed over in difference form: then V is not needed, only its jumps.
  [[nodiscard]] bool wants_jumps() const { return kind_ == Kind::kJumps; }

  // Sets sensitive[m] to 1 if some neighbour of m differs by more than the gap, else to 0;
  // returns whether there is any.
  bool decide(std::span<const Value> row, Workspace& work, std::span<std::uint8_t> sensitive) const;

 private:
  enum class Kind { kEveryone, kJumps, kWindow, kPairs };

  void take_jumps(std::size_t n_masks);
  bool decide_by_jumps(std::span<const Value> row, std::span<std::uint8_t> sensitive) const;
  void decide_by_window(std::span<const Value> row, Workspace& work,
                        std::span<std::uint8_t> sensitive) const;
  void decide_by_pairs(std::span<const Value> row, std::span<std::uint8_t> sensitive) const;
  void list_neighbours(const MaskSpace& masks);

  Kind kind_ = Kind::kEveryone;
  Gap<Value> gap_;
  std::size_t n_ordered_ = 1;  // kWindow: cells with an order, the missing one left out
  std::size_t reach_ = 1;      // kWindow: neighbours are at most that far
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs_;  // kPairs
  std::vector<std::uint8_t> matters_;  // kJumps: per mask, whether it and the one before are a pair
};

}  // namespace xcount

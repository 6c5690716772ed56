// States that are left open: what a search that stops early has not decided.
//
// Holds states as the eliminator makes them, each with its box (what is left of every axis that was
// narrowed on the way, whether the state still mentions it or not) and
//   volume = product over the stretches of the box of (cells left) / (all cells of the axis),
// the share of all combinations of cells that lie in the box. The boxes of a search's open states
// are disjoint: docs/exact.md, "Why this is right", "Bounds with open states".
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "xcount/exact/solution_values.hpp"
#include "xcount/support/assert.hpp"
#include "xcount/support/held_bytes.hpp"
#include "xcount/trees/residuals.hpp"

namespace xcount {

// A share of all combinations of cells: as small as the product of a few hundred axes.
using Share = long double;

// A state of a frontier. Its spans are valid as long as the frontier is not changed.
template <class Value>
struct OpenState {
  std::span<const ResidualId> ids;  // of each constraint, ascending, with a kSeparator at its end
  std::span<const Value> offsets;   // one per constraint
  std::span<const Stretch> box;
  Share volume;

  static constexpr ResidualId kSeparator = ~ResidualId{0};
};

template <class Value>
class Frontier {
 public:
  // Adds a state piece by piece: constraints and stretches, in any order, then `close`.
  void add_constraint(const Value& offset, std::span<const ResidualId> ids) {
    XCOUNT_ASSERT(std::is_sorted(ids.begin(), ids.end()));
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    ids_.push_back(OpenState<Value>::kSeparator);
    offsets_.push_back(offset);
  }
  void add_stretches(std::span<const Stretch> stretches) {
    box_.insert(box_.end(), stretches.begin(), stretches.end());
  }
  void close(Share volume) {
    XCOUNT_ASSERT(volume > 0 && volume <= 1 + 1e-9L);
    XCOUNT_ASSERT(!ids_.empty() && ids_.back() == OpenState<Value>::kSeparator);
    states_.push_back({ids_.size(), offsets_.size(), box_.size(), volume});
  }
  void add(const OpenState<Value>& state) {
    ids_.insert(ids_.end(), state.ids.begin(), state.ids.end());
    offsets_.insert(offsets_.end(), state.offsets.begin(), state.offsets.end());
    add_stretches(state.box);
    close(state.volume);
  }
  // Forgets all states but the first n, and what was added of one that was never closed.
  void truncate(std::size_t n) {
    XCOUNT_ASSERT(n <= size());
    states_.resize(n);
    const State end = n == 0 ? State{} : states_.back();
    ids_.resize(end.ids);
    offsets_.resize(end.offsets);
    box_.resize(end.box);
  }
  // Forgets all states and gives the memory back.
  void release() {
    xcount::release(states_);
    xcount::release(ids_);
    xcount::release(offsets_);
    xcount::release(box_);
  }

  [[nodiscard]] std::size_t size() const { return states_.size(); }
  [[nodiscard]] Share volume(std::size_t i) const {
    XCOUNT_ASSERT(i < size());
    return states_[i].volume;
  }
  [[nodiscard]] OpenState<Value> operator[](std::size_t i) const {
    XCOUNT_ASSERT(i < size());
    const State begin = i == 0 ? State{} : states_[i - 1];
    const State& end = states_[i];
    return {std::span(ids_).subspan(begin.ids, end.ids - begin.ids),
            std::span(offsets_).subspan(begin.offsets, end.offsets - begin.offsets),
            std::span(box_).subspan(begin.box, end.box - begin.box), end.volume};
  }
  [[nodiscard]] std::size_t bytes() const {
    return held_bytes(states_) + held_bytes(ids_) + held_bytes(offsets_) + held_bytes(box_);
  }

 private:
  // Where the pieces of a state end; they begin where those of the state before it end.
  struct State {
    std::size_t ids = 0, offsets = 0, box = 0;
    Share volume = 0;
  };

  std::vector<State> states_;
  std::vector<ResidualId> ids_;
  std::vector<Value> offsets_;
  std::vector<Stretch> box_;
};

}  // namespace xcount

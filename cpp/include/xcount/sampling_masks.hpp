// Which masks are sensitive, given V along all masks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xcount/masks.hpp"

namespace xcount {

// Decides every mask of a row at once: by the row's extremes when all masks are neighbours, by
// sliding windows on one ordered axis, by lists of neighbours otherwise.
template <class Value>
class MaskDecider {
 public:
  MaskDecider(const Topology& forest, const MaskSpace& masks, Value threshold);

  struct Workspace {
    std::vector<Value> low, high;
  };
  [[nodiscard]] Workspace workspace() const;

  // Sets sensitive[m] to 1 where some neighbour of m differs by more than the threshold, else to 0;
  // returns whether there is any.
  bool decide(std::span<const Value> row, Workspace& work, std::span<std::uint8_t> sensitive) const;

 private:
  enum class Kind { kEveryone, kWindow, kLists };

  void decide_by_window(std::span<const Value> row, Workspace& work,
                        std::span<std::uint8_t> sensitive) const;
  void decide_by_lists(std::span<const Value> row, std::span<std::uint8_t> sensitive) const;
  void list_neighbours(const MaskSpace& masks);

  Kind kind_ = Kind::kEveryone;
  Value threshold_;
  std::size_t n_masks_ = 1;
  std::size_t n_ordered_ = 1;  // kWindow: cells with an order, the missing one left out
  std::size_t reach_ = 1;      // kWindow: neighbours are at most that far
  std::vector<std::uint64_t> starts_;
  std::vector<std::uint32_t> others_;  // kLists: neighbours with a larger index
};

}  // namespace xcount

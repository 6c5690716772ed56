// The leaves of each factor (worst/pair_trees.hpp) that a box of pairs may reach: a box inside it
// only has to look at these.
//
// For each factor that is not constant in the box, `leaf` lists those of its leaves that hold a
// pair of the box, by falling value; for each sum,
//   V = constant sum + sum of the listed factors   for all pairs of the box.
// Boxes share lists, on any thread: a keeper counts their bytes, and keeps none beyond its limit.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "xcount/worst/pair_box.hpp"
#include "xcount/worst/pair_trees.hpp"

namespace xcount {

template <class Value, std::size_t N>
struct ReachedLeaves {
  PairBox box;
  std::vector<std::uint32_t> factor;  // factors that are not constant in the box
  std::vector<std::uint32_t> first;   // of each, its first leaf in `leaf`; one more at the end
  std::vector<std::uint16_t> leaf;    // by falling value
  std::array<Bound, N> constant{};    // sums of the factors that are constant
  std::array<Value, N> exact{};       // the same, before rounding

  [[nodiscard]] std::size_t bytes() const {
    return sizeof(*this) + box.size() * sizeof(CellRun) + 4 * (factor.size() + first.size()) +
           2 * leaf.size();
  }
  // All leaves of all factors, for the box of all pairs.
  static std::shared_ptr<const ReachedLeaves> all(const PairTrees<Value>& trees) {
    auto leaves = std::make_shared<ReachedLeaves>();
    for (const PairVariable& own : trees.variables()) leaves->box.push_back({0, own.n_cells - 1});
    for (std::size_t i = 0; i < trees.factors().size(); ++i) {
      leaves->factor.push_back(static_cast<std::uint32_t>(i));
      leaves->first.push_back(static_cast<std::uint32_t>(leaves->leaf.size()));
      for (std::size_t leaf = 0; leaf < trees.factors()[i].n_leaves(); ++leaf) {
        leaves->leaf.push_back(static_cast<std::uint16_t>(leaf));
      }
    }
    leaves->first.push_back(static_cast<std::uint32_t>(leaves->leaf.size()));
    return leaves;
  }
};

template <class Leaves>
class LeafKeeper {
 public:
  void set_limit(std::size_t max_bytes) { max_bytes_ = max_bytes; }
  [[nodiscard]] std::size_t bytes() const { return bytes_->load(std::memory_order_relaxed); }
  // None if there is no room: then the list of a box around it serves, too.
  [[nodiscard]] std::shared_ptr<const Leaves> keep(std::unique_ptr<Leaves> leaves) const {
    leaves->leaf.shrink_to_fit();
    const std::size_t size = leaves->bytes();
    if (bytes() + size > max_bytes_) return nullptr;
    bytes_->fetch_add(size, std::memory_order_relaxed);
    return {leaves.release(), [counter = bytes_, size](const Leaves* own) {
              counter->fetch_sub(size, std::memory_order_relaxed);
              delete own;
            }};
  }

 private:
  std::shared_ptr<std::atomic<std::size_t>> bytes_ = std::make_shared<std::atomic<std::size_t>>(0);
  std::size_t max_bytes_ = 0;
};

}  // namespace xcount

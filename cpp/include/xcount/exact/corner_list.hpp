// Leaves as corners: the differences of a forest's sum along every axis, as a sorted sparse list.
//
// A leaf with value v whose cells form the box S_1 x ... x S_d contributes
//   v * product over its features f of (+1, -1, +1, ... at the boundaries of S_f, see CellSet)
// at the corners of that box, a feature that no test of its path mentions at position 0. With D the
// sum of all contributions,
//   V(p) = sum over corners q <= p (in every coordinate) of D(q).
// Values are added modulo 2^width: a partial sum of D is no margin and may need more bits than one,
// but wrapping around is harmless, since only V(p) itself has to fit.
// Proved in docs/corner-sums.md, "Prefix sums of corners", "Sums that wrap around".
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "xcount/exact/cell_order.hpp"
#include "xcount/exact/lanes.hpp"
#include "xcount/support/stopping.hpp"

namespace xcount {

template <class T>
struct Corner {
  std::uint64_t key;
  LaneResidue<T> value;
};

template <class T>
using CornerList = std::vector<Corner<T>>;  // keys strictly increasing, values not zero

// Calls visit(leaf, active, sets) for every leaf below a root whose box is not empty; `sets` has a
// CellSet per feature and `active` the features of the path.
class LeafBoxes {
 public:
  LeafBoxes(const Topology& forest, std::span<const CellOrder> orders)
      : forest_(forest),
        orders_(orders),
        sets_(orders.size(), CellSet{0}),
        n_tests_(orders.size()) {}

  template <class Visit>
  void walk(NodeIndex node, const Visit& visit) {
    if (forest_.is_leaf(node)) {
      visit(node, std::span<const Feature>(active_), std::span<const CellSet>(sets_));
      return;
    }
    const Test& test = forest_.test(node);
    const auto f = static_cast<std::size_t>(test.feature);
    const CellSet left = orders_[f].left_set(forest_, test);
    if (n_tests_[f]++ == 0) active_.push_back(test.feature);
    CellSet whole = std::move(sets_[f]);
    const auto i = static_cast<std::size_t>(node);
    sets_[f] = intersection(whole, left);
    if (!sets_[f].empty()) walk(forest_.left[i], visit);
    sets_[f] = intersection(whole, complement(left));
    if (!sets_[f].empty()) walk(forest_.right[i], visit);
    sets_[f] = std::move(whole);
    if (--n_tests_[f] == 0) active_.pop_back();
  }

 private:
  const Topology& forest_;
  std::span<const CellOrder> orders_;
  std::vector<CellSet> sets_;
  std::vector<std::uint32_t> n_tests_;  // per feature, on the path
  std::vector<Feature> active_;
};

// Which leaves of a forest have corners, by node.
using LeafFlags = std::vector<bool>;

// What making a list may take: `bytes` is asked before memory is taken, `stop` every now and then.
struct ListLimits {
  std::size_t bytes;
  Stop* stop;
};

// How many corners the leaves have before equal ones are added up, judging by every stride-th tree;
// infinity beyond `most`.
[[nodiscard]] double count_corners(const Topology& forest, std::span<const CellOrder> orders,
                                   const LeafFlags& counted, std::size_t stride, double most);

// The corners of a forest's counted leaves, `constant` added to every sum. value(leaf): modulo
// 2^width; step: see CornerLayout. Throws length_error if they do not fit, Stopped if stopped.
template <class T>
[[nodiscard]] CornerList<T> list_corners(const Topology& forest, std::span<const CellOrder> orders,
                                         const LeafFlags& counted,
                                         const std::function<LaneResidue<T>(NodeIndex)>& value,
                                         const LaneResidue<T>& constant,
                                         std::span<const std::uint64_t> step, unsigned key_bits,
                                         const ListLimits& limits);

// Sorts by key, adds up equal keys, drops zeros.
template <class T>
void settle_corners(CornerList<T>& corners, CornerList<T>& scratch, unsigned key_bits,
                    Stop* stop = nullptr);

// Adds up two sorted lists; the keys of `b` are taken modulo mask + 1.
template <class T>
void merge_corners(std::span<const Corner<T>> a, std::span<const Corner<T>> b, std::uint64_t mask,
                   CornerList<T>& out);

}  // namespace xcount

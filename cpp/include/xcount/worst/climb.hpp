// Climbs to a large change: one variable of a pair of regions after the other is set to its best
// cell, until no single variable can be improved.
//
// Sums are floats here: a climb proposes a pair, and the search evaluates it in integers. Each step
// evaluates the sums along one axis in one walk of the trees, not cell by cell.
#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

#include "xcount/support/random.hpp"
#include "xcount/worst/pair_box.hpp"
#include "xcount/worst/pair_trees.hpp"

namespace xcount {

template <class Value>
class Climber {
 public:
  Climber(const PairTrees<Value>& trees, const PairReach& reach);

  // Climbs from a point within a box; the point stays within reach.
  template <class Objective>
  void climb(const Objective& objective, const PairBox& box, PairPoint& point, Random& random) {
    set_regions(point);
    // The order of an earlier climb, maybe on another thread, must not matter.
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    for (int round = 0; round < kMaxRounds; ++round) {
      shuffle(random);
      bool improved = false;
      for (const std::size_t variable : order_) {
        improved = improve(objective, box[variable], variable, point) || improved;
      }
      if (!improved) return;
    }
  }
  // A random point of a box, within reach.
  void draw(const PairBox& box, PairPoint& point, Random& random) const;

 private:
  static constexpr int kMaxRounds = 20;

  void set_regions(const PairPoint& point);
  void set(std::size_t variable, Cell cell);
  void shuffle(Random& random);
  // Adds up the trees along an axis: along_[c - run.low] for the cells of the run.
  void walk(std::vector<Cell>& region, Feature feature, const CellRun& run,
            std::vector<double>& along) const;
  void walk_ordered(NodeIndex root, const std::vector<Cell>& region, Feature feature,
                    const CellRun& run, std::vector<double>& along) const;

  template <class Objective>
  bool improve(const Objective& objective, const CellRun& run, std::size_t variable,
               PairPoint& point) {
    if (run.low == run.high) return false;
    const PairVariable& own = trees_.variables()[variable];
    // A side that the variable does not change has the same sum in all cells.
    const CellRun only{point[variable], point[variable]};
    const bool moves_start = own.role != Role::kTarget, moves_target = own.role != Role::kStart;
    walk(start_, moves_start ? own.feature : kLeaf, moves_start ? run : only, low_);
    walk(target_, moves_target ? own.feature : kLeaf, moves_target ? run : only, high_);
    const auto change = [&](Cell cell) {
      const auto i = static_cast<std::size_t>(cell - run.low);
      return objective.change(high_[moves_target ? i : 0], low_[moves_start ? i : 0]);
    };
    const Cell before = point[variable];
    Cell best = before;
    double most = change(before);
    for (Cell cell = run.low; cell <= run.high; ++cell) {
      const double found = change(cell);
      if (!(found > most)) continue;
      point[variable] = cell;
      if (own.role != Role::kCommon && !reach_.allows(point)) continue;
      best = cell;
      most = found;
    }
    point[variable] = best;
    set(variable, best);
    return best != before;
  }

  const PairTrees<Value>& trees_;
  const PairReach& reach_;
  std::vector<double> values_;        // per node, in units of 2^shift
  std::vector<Cell> start_, target_;  // the two regions
  std::vector<std::size_t> order_;    // of the variables
  std::vector<double> low_, high_;
};

extern template class Climber<std::int64_t>;
extern template class Climber<Int128>;
extern template class Climber<Int2304>;

}  // namespace xcount

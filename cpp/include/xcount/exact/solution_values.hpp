// What the solutions of a state weigh: exact counts of any size, or weights of a product measure.
//
// Holds a number for each solution id, of which 0 is the empty set and 1 the whole space:
//   value(s) = |solutions(s)| * product of n_cells[f] over the features f that s does not mention,
// so value(1) is the product of all n_cells, and a value that is free of f is a multiple of
// n_cells[f]: narrowing f to a stretch divides by n_cells[f] without remainder. A weighted value is
// the same as a share of the whole space: the features' weights add up to 1 each. Proof:
// docs/exact.md, "Why this is right", "The sum over parts".
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "xcount/support/assert.hpp"
#include "xcount/support/held_bytes.hpp"
#include "xcount/support/value.hpp"
#include "xcount/trees/forest.hpp"

namespace xcount {

using SolutionId = std::uint32_t;
inline constexpr SolutionId kNoneSolve = 0;  // the empty set
inline constexpr SolutionId kAllSolve = 1;   // the whole space

// Cells [begin, end) of a feature: what is left of its axis in some branch.
struct Stretch {
  std::uint32_t feature;  // the subproblem's own number
  Cell begin, end;

  friend bool operator==(const Stretch&, const Stretch&) = default;
};

// Exact counts over all cells of the subproblem's features, as fixed-width multi-limb integers.
// The count of a state is that of the whole space, features it does not mention included; only the
// features that it mentions and that were narrowed before count with what is left of their axis.
class CountValues {
 public:
  using Sum = std::vector<std::uint64_t>;     // a running sum; each level of the recursion has one
  using Number = std::vector<std::uint64_t>;  // a value by itself: limbs, least significant first

  void reset(const Topology& forest, std::span<const Feature> features);
  // The size of a box of cells, for small boxes: see `enumerable`.
  using Volume = std::uint64_t;
  [[nodiscard]] static bool enumerable(double log2_volume) { return log2_volume < 62.0; }
  [[nodiscard]] Volume volume(const Stretch& stretch) const {
    return static_cast<Volume>(stretch.end - stretch.begin);
  }
  // The volume of the cells before the cut, of a box with this volume.
  [[nodiscard]] Volume before(Volume volume, const Stretch& stretch, Cell cut) const {
    return volume / static_cast<Volume>(stretch.end - stretch.begin) *
           static_cast<Volume>(cut - stretch.begin);
  }
  // The volume of the other cells, given that of those before the cut.
  [[nodiscard]] static Volume after(Volume volume, Volume before, const Stretch& /*stretch*/,
                                    Cell /*cut*/) {
    return volume - before;
  }
  // The solution of this volume over the box of the given features.
  using Total = UInt128;  // for larger boxes: see `summable`
  [[nodiscard]] static bool summable(double log2_volume) { return log2_volume < 126.0; }
  SolutionId finish(Total volume, std::span<const std::uint32_t> features);

  void start(Sum& sum) const { sum.assign(limbs_, 0); }
  // Adds the solutions whose cells lie in the stretches, of features that `solution` is free of.
  void add(Sum& sum, SolutionId solution, std::span<const Stretch> within);
  SolutionId finish(const Sum& sum);
  // Adds all combinations of cells in the box of these stretches, of different features.
  void add_box(Sum& sum, std::span<const Stretch> box) const;
  void forget() { values_.resize(2 * limbs_); }  // all solutions but kNoneSolve and kAllSolve
  void shrink() { values_.shrink_to_fit(); }

  [[nodiscard]] std::span<const std::uint64_t> value(SolutionId id) const {
    XCOUNT_ASSERT(id < size());
    return {values_.data() + id * limbs_, limbs_};
  }
  [[nodiscard]] Number number(SolutionId id) const { return {value(id).begin(), value(id).end()}; }
  // The solution's count as a share of the whole space.
  [[nodiscard]] double share(SolutionId id) const;
  [[nodiscard]] double weight(const Stretch& stretch) const {
    return static_cast<double>(stretch.end - stretch.begin) /
           static_cast<double>(n_cells_[stretch.feature]);
  }
  [[nodiscard]] std::size_t size() const { return values_.size() / limbs_; }
  [[nodiscard]] std::size_t bytes() const { return held_bytes(values_); }
  [[nodiscard]] std::size_t used() const { return used_bytes(values_); }

 private:
  void divide(std::uint64_t divisor);
  void multiply(std::uint64_t factor);
  void multiply_wide(UInt128 factor);

  std::size_t limbs_ = 1;
  std::vector<std::uint64_t> n_cells_;
  std::vector<std::uint64_t> values_;
  std::vector<std::uint64_t> scratch_;
};

// Shares under a product measure: each cell of each feature has a weight, and they add up to 1.
class WeightValues {
 public:
  using Number = double;
  struct Sum {
    double value = 0.0;
    double compensation = 0.0;  // Neumaier's running error term
  };

  // cumulative[f][c] = weight of the cells [0, c) of the forest's feature f.
  explicit WeightValues(std::vector<std::vector<long double>> cumulative)
      : cumulative_(std::move(cumulative)) {}

  void reset(const Topology& forest, std::span<const Feature> features);
  using Volume = double;
  [[nodiscard]] static bool enumerable(double /*log2_volume*/) { return true; }
  [[nodiscard]] Volume volume(const Stretch& stretch) const { return weight(stretch); }
  [[nodiscard]] Volume before(Volume volume, const Stretch& stretch, Cell cut) const {
    const double all = weight(stretch);
    return all > 0.0 ? volume * (weight({stretch.feature, stretch.begin, cut}) / all) : 0.0;
  }
  // By the weights, for a difference of volumes would lose the digits of a small one.
  [[nodiscard]] Volume after(Volume volume, Volume /*before*/, const Stretch& stretch,
                             Cell cut) const {
    const double all = weight(stretch);
    return all > 0.0 ? volume * (weight({stretch.feature, cut, stretch.end}) / all) : 0.0;
  }
  using Total = double;
  [[nodiscard]] static bool summable(double /*log2_volume*/) { return true; }
  SolutionId finish(Total volume, std::span<const std::uint32_t> features);

  void start(Sum& sum) const { sum = {}; }
  void add(Sum& sum, SolutionId solution, std::span<const Stretch> within) const;
  SolutionId finish(const Sum& sum);
  void forget() { values_.resize(2); }
  void shrink() { values_.shrink_to_fit(); }

  [[nodiscard]] double share(SolutionId id) const { return values_[id]; }
  [[nodiscard]] Number number(SolutionId id) const { return values_[id]; }
  [[nodiscard]] double weight(const Stretch& stretch) const;
  [[nodiscard]] std::size_t size() const { return values_.size(); }
  [[nodiscard]] std::size_t bytes() const { return held_bytes(values_); }
  [[nodiscard]] std::size_t used() const { return used_bytes(values_); }

 private:
  std::vector<std::vector<long double>> cumulative_;
  std::vector<Feature> features_;
  std::vector<double> values_;
};

}  // namespace xcount

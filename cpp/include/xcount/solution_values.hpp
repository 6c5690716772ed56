// What the solutions of a state weigh: exact counts of any size, or shares of a product measure.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "xcount/forest.hpp"
#include "xcount/value.hpp"

namespace xcount {

using SolutionId = std::uint32_t;
inline constexpr SolutionId kNoneSolve = 0;  // the empty set
inline constexpr SolutionId kAllSolve = 1;   // the whole space

// Exact counts over all cells of the subproblem's features, as fixed-width multi-limb integers.
// A state's count is that of the whole space (features it does not mention included), so that no
// bookkeeping of supports is needed: eliminating f gives sum(width * count) / n_cells(f), exactly.
class CountValues {
 public:
  // One running sum; levels of the recursion have one each.
  using Sum = std::vector<std::uint64_t>;

  void reset(std::span<const Axis> axes);  // the axes of the subproblem's features
  void start(Sum& sum) const { sum.assign(limbs_ + 1, 0); }
  void add(Sum& sum, std::size_t feature, Cell begin, Cell end, SolutionId solution) const;
  // Turns the sum into a solution: kNoneSolve or kAllSolve where it is empty or everything.
  SolutionId finish(Sum& sum, std::size_t feature);

  [[nodiscard]] std::span<const std::uint64_t> value(SolutionId id) const {
    return {values_.data() + id * limbs_, limbs_};
  }
  [[nodiscard]] double share(SolutionId id) const;
  [[nodiscard]] double weight(std::size_t feature, Cell begin, Cell end) const {
    return static_cast<double>(end - begin) / static_cast<double>(n_cells_[feature]);
  }
  [[nodiscard]] std::size_t size() const { return values_.size() / limbs_; }
  [[nodiscard]] std::size_t bytes() const { return values_.capacity() * sizeof(std::uint64_t); }

 private:
  std::size_t limbs_ = 1;
  std::vector<std::uint64_t> n_cells_;
  std::vector<std::uint64_t> values_;
};

// Shares under a product measure: each cell of each feature has a weight, and they add up to 1.
class WeightValues {
 public:
  struct Sum {
    double value = 0.0;
    double compensation = 0.0;  // Neumaier's running error term
  };

  // cumulative[f][c] = weight of the cells [0, c) of the forest's feature f.
  explicit WeightValues(std::vector<std::vector<long double>> cumulative)
      : cumulative_(std::move(cumulative)) {}

  void reset(std::span<const Feature> features);  // the forest's features of the subproblem
  void start(Sum& sum) const { sum = {}; }
  void add(Sum& sum, std::size_t feature, Cell begin, Cell end, SolutionId solution) const;
  SolutionId finish(Sum& sum, std::size_t feature);

  [[nodiscard]] double share(SolutionId id) const { return values_[id]; }
  [[nodiscard]] double weight(std::size_t feature, Cell begin, Cell end) const;
  [[nodiscard]] std::size_t size() const { return values_.size(); }
  [[nodiscard]] std::size_t bytes() const { return values_.capacity() * sizeof(double); }

 private:
  std::vector<std::vector<long double>> cumulative_;
  std::vector<Feature> features_;
  std::vector<double> values_;
};

}  // namespace xcount

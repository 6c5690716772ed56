// A mixture of product distributions over cells, fitted to rows by expectation maximisation.
//
//   P(row) = sum over components k of weight[k] * product over features f of p[f][cell of f][k]
//
// A cell that is not known (-1) says nothing: its factor is left out. Each p[f][.][k] is drawn
// towards the feature's marginal as if `strength` rows more had been distributed like it, so that
// no cell that some row has is impossible anywhere: docs/population.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xcount/support/stopping.hpp"

namespace xcount {

class Mixture {
 public:
  // cells: rows x features; n_cells: per feature. Starts from `n_components` rows drawn at random.
  Mixture(std::span<const std::int32_t> cells, std::vector<std::int32_t> n_cells,
          std::size_t n_components, double strength, std::uint64_t seed);

  // One step of expectation maximisation; returns the mean log-likelihood of a row before it. The
  // result does not depend on the number of threads. Does nothing if it is stopped.
  double step(unsigned n_threads, Stop& stop);

  // The mean log-likelihood of other rows.
  [[nodiscard]] double log_likelihood(std::span<const std::int32_t> cells) const;

  [[nodiscard]] const std::vector<double>& weights() const { return weights_; }
  // Feature after feature, cell after cell, component after component.
  [[nodiscard]] const std::vector<double>& probabilities() const { return probabilities_; }

 private:
  struct Sums {
    std::vector<double> counts;   // like probabilities_
    std::vector<double> members;  // per component
    double log_likelihood = 0;
  };

  void check(std::span<const std::int32_t> cells) const;
  void find_marginals();
  // A row for each component to start from, unlike each other.
  [[nodiscard]] std::vector<std::size_t> seed_rows(std::uint64_t seed) const;
  void start(std::uint64_t seed);
  void take_logarithms();
  // The log of each component's share of a row, and the row's log-likelihood.
  double explain(std::span<const std::int32_t> row, std::span<double> logs) const;
  void add_rows(std::size_t first, std::size_t last, Sums& sums) const;
  void update(const Sums& sums);
  [[nodiscard]] std::size_t n_rows() const { return cells_.size() / n_cells_.size(); }

  std::vector<std::int32_t> cells_;
  std::vector<std::int32_t> n_cells_;
  std::vector<std::size_t> first_;  // per feature: where its cells begin
  std::size_t n_components_;
  double strength_;
  std::vector<double> marginals_;  // feature after feature, cell after cell
  std::vector<double> weights_, probabilities_;
  std::vector<double> log_weights_, log_probabilities_;
};

}  // namespace xcount

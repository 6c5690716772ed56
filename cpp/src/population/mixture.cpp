#include "xcount/population/mixture.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "xcount/support/parallel.hpp"
#include "xcount/support/random.hpp"

namespace xcount {

namespace {

// Rows are added up in so many parts, always the same ones, whatever the number of threads.
constexpr std::size_t kParts = 16;
// What a component's first table has of the row that it starts from; the rest is the marginal.
constexpr double kOfSeedRow = 0.5;
// A component starts from the row, of so many drawn, that is least like the other components' rows.
constexpr int kCandidates = 10;

double log_of(double value) { return std::log(std::max(value, 1e-300)); }

}  // namespace

Mixture::Mixture(std::span<const std::int32_t> cells, std::vector<std::int32_t> n_cells,
                 std::size_t n_components, double strength, std::uint64_t seed)
    : cells_(cells.begin(), cells.end()),
      n_cells_(std::move(n_cells)),
      n_components_(n_components),
      strength_(strength) {
  if (n_cells_.empty()) throw std::invalid_argument("mixture: there must be a feature");
  if (n_components_ == 0) throw std::invalid_argument("mixture: there must be a component");
  if (!(strength_ > 0)) throw std::invalid_argument("mixture: the strength must be positive");
  std::size_t total = 0;
  for (const std::int32_t n : n_cells_) {
    if (n < 1) throw std::invalid_argument("mixture: a feature has at least one cell");
    first_.push_back(total);
    total += static_cast<std::size_t>(n);
  }
  check(cells_);
  if (cells_.empty()) throw std::invalid_argument("mixture: there must be a row");
  marginals_.assign(total, 0.0);
  probabilities_.resize(total * n_components_);
  weights_.assign(n_components_, 1.0 / static_cast<double>(n_components_));
  find_marginals();
  start(seed);
  take_logarithms();
}

void Mixture::check(std::span<const std::int32_t> cells) const {
  if (cells.size() % n_cells_.size() != 0) {
    throw std::invalid_argument("mixture: a row has one cell per feature");
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i] < -1 || cells[i] >= n_cells_[i % n_cells_.size()]) {
      throw std::invalid_argument("mixture: a cell is out of range");
    }
  }
}

// Every cell gets a part of one more row, so that none is impossible.
void Mixture::find_marginals() {
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (cells_[i] >= 0) {
      marginals_[first_[i % n_cells_.size()] + static_cast<std::size_t>(cells_[i])] += 1.0;
    }
  }
  for (std::size_t f = 0; f < n_cells_.size(); ++f) {
    const std::span own(marginals_.data() + first_[f], static_cast<std::size_t>(n_cells_[f]));
    double sum = 1.0;
    for (const double count : own) sum += count;
    for (double& count : own) count = (count + 1.0 / static_cast<double>(own.size())) / sum;
  }
}

std::vector<std::size_t> Mixture::seed_rows(std::uint64_t seed) const {
  Random random(seed, n_components_, 0);
  const std::size_t n_features = n_cells_.size();
  const auto difference = [&](std::size_t a, std::size_t b) {
    std::size_t found = 0;
    for (std::size_t f = 0; f < n_features; ++f) {
      found += cells_[a * n_features + f] != cells_[b * n_features + f] ? 1 : 0;
    }
    return found;
  };
  std::vector<std::size_t> rows{random.next() % n_rows()};
  while (rows.size() < n_components_) {
    std::size_t best = 0, best_difference = 0;
    for (int i = 0; i < kCandidates; ++i) {
      const std::size_t row = random.next() % n_rows();
      std::size_t nearest = n_features;
      for (const std::size_t other : rows) nearest = std::min(nearest, difference(row, other));
      if (i == 0 || nearest > best_difference) {
        best = row;
        best_difference = nearest;
      }
    }
    rows.push_back(best);
  }
  return rows;
}

void Mixture::start(std::uint64_t seed) {
  const std::size_t n_features = n_cells_.size();
  const std::vector<std::size_t> rows = seed_rows(seed);
  for (std::size_t k = 0; k < n_components_; ++k) {
    const std::size_t row = rows[k];
    for (std::size_t f = 0; f < n_features; ++f) {
      const std::int32_t seen = cells_[row * n_features + f];
      for (std::int32_t cell = 0; cell < n_cells_[f]; ++cell) {
        const std::size_t at = first_[f] + static_cast<std::size_t>(cell);
        const double of_row = seen < 0 ? marginals_[at] : (cell == seen ? 1.0 : 0.0);
        // One component is the product of the marginals, and stays it.
        const double part = n_components_ == 1 ? 0.0 : kOfSeedRow;
        probabilities_[at * n_components_ + k] = part * of_row + (1 - part) * marginals_[at];
      }
    }
  }
}

void Mixture::take_logarithms() {
  log_weights_.resize(weights_.size());
  log_probabilities_.resize(probabilities_.size());
  std::ranges::transform(weights_, log_weights_.begin(), log_of);
  std::ranges::transform(probabilities_, log_probabilities_.begin(), log_of);
}

double Mixture::explain(std::span<const std::int32_t> row, std::span<double> logs) const {
  std::ranges::copy(log_weights_, logs.begin());
  for (std::size_t f = 0; f < row.size(); ++f) {
    if (row[f] < 0) continue;
    const std::size_t at = (first_[f] + static_cast<std::size_t>(row[f])) * n_components_;
    const double* own = log_probabilities_.data() + at;
    for (std::size_t k = 0; k < n_components_; ++k) logs[k] += own[k];
  }
  const double most = *std::ranges::max_element(logs);
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - most);
  return most + std::log(sum);
}

void Mixture::add_rows(std::size_t first, std::size_t last, Sums& sums) const {
  const std::size_t n_features = n_cells_.size();
  std::vector<double> shares(n_components_);
  for (std::size_t r = first; r < last; ++r) {
    const std::span row(cells_.data() + r * n_features, n_features);
    const double total = explain(row, shares);
    sums.log_likelihood += total;
    for (std::size_t k = 0; k < n_components_; ++k) {
      shares[k] = std::exp(shares[k] - total);
      sums.members[k] += shares[k];
    }
    for (std::size_t f = 0; f < n_features; ++f) {
      if (row[f] < 0) continue;
      const std::size_t at = (first_[f] + static_cast<std::size_t>(row[f])) * n_components_;
      double* own = sums.counts.data() + at;
      for (std::size_t k = 0; k < n_components_; ++k) own[k] += shares[k];
    }
  }
}

double Mixture::step(unsigned n_threads, Stop& stop) {
  const std::size_t n = n_rows();
  std::vector<Sums> parts(std::min(kParts, n));
  const auto work = [&](std::size_t part) {
    if (stop.is_over()) return;
    Sums& sums = parts[part];
    sums.counts.assign(probabilities_.size(), 0.0);
    sums.members.assign(n_components_, 0.0);
    add_rows(n * part / parts.size(), n * (part + 1) / parts.size(), sums);
  };
  parallel(parts.size(), n_threads, work, &stop);
  if (stop.was_over()) return std::numeric_limits<double>::quiet_NaN();
  Sums& total = parts[0];
  for (std::size_t part = 1; part < parts.size(); ++part) {
    const auto add = [](const std::vector<double>& from, std::vector<double>& to) {
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
    };
    add(parts[part].counts, total.counts);
    add(parts[part].members, total.members);
    total.log_likelihood += parts[part].log_likelihood;
  }
  update(total);
  return total.log_likelihood / static_cast<double>(n);
}

void Mixture::update(const Sums& sums) {
  for (std::size_t k = 0; k < n_components_; ++k) {
    weights_[k] = sums.members[k] / static_cast<double>(n_rows());
  }
  for (std::size_t f = 0; f < n_cells_.size(); ++f) {
    const std::size_t end = first_[f] + static_cast<std::size_t>(n_cells_[f]);
    for (std::size_t k = 0; k < n_components_; ++k) {
      double known = strength_;  // rows whose cell is known
      for (std::size_t at = first_[f]; at < end; ++at) known += sums.counts[at * n_components_ + k];
      for (std::size_t at = first_[f]; at < end; ++at) {
        const std::size_t place = at * n_components_ + k;
        probabilities_[place] = (sums.counts[place] + strength_ * marginals_[at]) / known;
      }
    }
  }
  take_logarithms();
}

double Mixture::log_likelihood(std::span<const std::int32_t> cells) const {
  check(cells);
  if (cells.empty()) throw std::invalid_argument("mixture: there must be a row");
  const std::size_t n_features = n_cells_.size();
  std::vector<double> logs(n_components_);
  double sum = 0;
  for (std::size_t at = 0; at < cells.size(); at += n_features) {
    sum += explain(cells.subspan(at, n_features), logs);
  }
  return sum * static_cast<double>(n_features) / static_cast<double>(cells.size());
}

}  // namespace xcount

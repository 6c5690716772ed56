#include "xcount/exact/brute.hpp"

#include <algorithm>

#include "xcount/support/parallel.hpp"

namespace xcount {

template <class Value>
BruteForce<Value>::BruteForce(const Forest<Value>& forest, const MaskSpace& masks, Value threshold)
    : forest_(forest), masks_(masks), gap_(threshold) {
  for (MaskIndex mask = 0; mask < masks.size(); ++mask) {
    std::vector<MaskIndex> near = masks.neighbours(mask);
    std::erase_if(near, [mask](MaskIndex other) { return other < mask; });
    near.shrink_to_fit();
    neighbours_.push_back(std::move(near));
  }
  for (std::size_t f = 0; f < forest.axes.size(); ++f) {
    if (masks.is_sensitive(static_cast<Feature>(f))) continue;
    free_features_.push_back(static_cast<Feature>(f));
    const auto n_cells = static_cast<std::uint64_t>(forest.axes[f].n_cells);
    if (n_combinations_ > (std::uint64_t{1} << 62) / n_cells) {
      throw std::length_error("too many regions to enumerate; use --method auto or exact");
    }
    n_combinations_ *= n_cells;
  }
}

template <class Value>
std::vector<std::uint64_t> BruteForce<Value>::count(std::uint64_t begin, std::uint64_t end,
                                                    unsigned n_threads) const {
  end = std::min(end, n_combinations_);
  n_threads = std::max(1U, n_threads);
  std::vector<std::vector<std::uint64_t>> partial(
      n_threads, std::vector<std::uint64_t>(static_cast<std::size_t>(masks_.size())));
  const std::uint64_t step = (end - begin + n_threads - 1) / n_threads;
  parallel(n_threads, n_threads, [&](std::size_t i) {
    const std::uint64_t from = std::min(end, begin + i * step);
    count_slice(from, std::min(end, from + step), partial[i]);
  });
  for (std::size_t i = 1; i < partial.size(); ++i) {
    for (std::size_t m = 0; m < partial[0].size(); ++m) partial[0][m] += partial[i][m];
  }
  return partial[0];
}

template <class Value>
void BruteForce<Value>::count_slice(std::uint64_t begin, std::uint64_t end,
                                    std::vector<std::uint64_t>& out) const {
  std::vector<Cell> region(forest_.axes.size());
  std::vector<Value> sums(neighbours_.size());
  std::vector<std::uint8_t> sensitive(neighbours_.size());
  for (std::uint64_t index = begin; index < end; ++index) {
    decode(index, region);
    for (std::size_t m = 0; m < sums.size(); ++m) {
      masks_.write_cells(static_cast<MaskIndex>(m), region);
      sums[m] = forest_.sum(region);
    }
    std::fill(sensitive.begin(), sensitive.end(), std::uint8_t{0});
    for (std::size_t m = 0; m < sums.size(); ++m) {
      for (const MaskIndex other : neighbours_[m]) {
        const auto n = static_cast<std::size_t>(other);
        if (gap_.is_exceeded(sums[m] - sums[n])) sensitive[m] = sensitive[n] = 1;
      }
    }
    for (std::size_t m = 0; m < sums.size(); ++m) out[m] += sensitive[m];
  }
}

template <class Value>
void BruteForce<Value>::decode(std::uint64_t index, std::vector<Cell>& region) const {
  for (std::size_t i = free_features_.size(); i-- > 0;) {
    const auto feature = static_cast<std::size_t>(free_features_[i]);
    const auto n_cells = static_cast<std::uint64_t>(forest_.axes[feature].n_cells);
    region[feature] = static_cast<Cell>(index % n_cells);
    index /= n_cells;
  }
}

template class BruteForce<std::int64_t>;
template class BruteForce<Int128>;
template class BruteForce<Int2304>;

}  // namespace xcount

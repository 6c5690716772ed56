#include "xcount/solution_values.hpp"

#include <algorithm>

namespace xcount {

void CountValues::reset(std::span<const Axis> axes) {
  n_cells_.clear();
  double bits = 1.0;
  for (const Axis& axis : axes) {
    n_cells_.push_back(static_cast<std::uint64_t>(axis.n_cells));
    bits += std::log2(static_cast<double>(axis.n_cells));
  }
  limbs_ = static_cast<std::size_t>(bits / 64.0) + 1;
  values_.assign(2 * limbs_, 0);
  std::uint64_t* all = values_.data() + limbs_;
  all[0] = 1;
  for (const std::uint64_t factor : n_cells_) {
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < limbs_; ++i) {
      const UInt128 product = static_cast<UInt128>(all[i]) * factor + carry;
      all[i] = static_cast<std::uint64_t>(product);
      carry = static_cast<std::uint64_t>(product >> 64);
    }
  }
}

void CountValues::add(Sum& sum, std::size_t /*feature*/, Cell begin, Cell end,
                      SolutionId solution) const {
  if (solution == kNoneSolve) return;
  const auto width = static_cast<std::uint64_t>(end - begin);
  const std::uint64_t* value = values_.data() + solution * limbs_;
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < limbs_; ++i) {
    const UInt128 next = static_cast<UInt128>(value[i]) * width + sum[i] + carry;
    sum[i] = static_cast<std::uint64_t>(next);
    carry = static_cast<std::uint64_t>(next >> 64);
  }
  sum[limbs_] += carry;
}

SolutionId CountValues::finish(Sum& sum, std::size_t feature) {
  const std::uint64_t divisor = n_cells_[feature];
  UInt128 remainder = 0;
  for (std::size_t i = limbs_ + 1; i-- > 0;) {
    const UInt128 dividend = (remainder << 64) | sum[i];
    if (dividend >> 64 == 0) {  // the common case: one hardware division
      const auto low = static_cast<std::uint64_t>(dividend);
      sum[i] = low / divisor;
      remainder = low % divisor;
    } else {
      sum[i] = static_cast<std::uint64_t>(dividend / divisor);
      remainder = dividend % divisor;
    }
  }
  for (const SolutionId known : {kNoneSolve, kAllSolve}) {
    const auto* value = values_.data() + known * limbs_;
    if (std::equal(value, value + limbs_, sum.begin())) return known;
  }
  values_.insert(values_.end(), sum.begin(), sum.begin() + static_cast<std::ptrdiff_t>(limbs_));
  return static_cast<SolutionId>(size() - 1);
}

double CountValues::share(SolutionId id) const {
  double part = 0.0;
  double whole = 0.0;
  // The leading limbs of the whole decide; what stands below them changes no double.
  for (std::size_t i = limbs_; i-- > 0 && whole < 0x1p600;) {
    part = part * 0x1p64 + static_cast<double>(value(id)[i]);
    whole = whole * 0x1p64 + static_cast<double>(value(kAllSolve)[i]);
  }
  return part / whole;
}

void WeightValues::reset(std::span<const Feature> features) {
  features_.assign(features.begin(), features.end());
  values_.assign({0.0, 1.0});
}

double WeightValues::weight(std::size_t feature, Cell begin, Cell end) const {
  const auto& cumulative = cumulative_[static_cast<std::size_t>(features_[feature])];
  return static_cast<double>(cumulative[static_cast<std::size_t>(end)] -
                             cumulative[static_cast<std::size_t>(begin)]);
}

void WeightValues::add(Sum& sum, std::size_t feature, Cell begin, Cell end,
                       SolutionId solution) const {
  const double term = weight(feature, begin, end) * values_[solution];
  const double total = sum.value + term;
  sum.compensation += std::abs(sum.value) >= std::abs(term) ? (sum.value - total) + term
                                                            : (term - total) + sum.value;
  sum.value = total;
}

SolutionId WeightValues::finish(Sum& sum, std::size_t /*feature*/) {
  values_.push_back(sum.value + sum.compensation);
  return static_cast<SolutionId>(values_.size() - 1);
}

}  // namespace xcount

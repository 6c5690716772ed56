#include "xcount/exact/solution_values.hpp"

#include <algorithm>

#include "xcount/support/assert.hpp"

namespace xcount {

namespace {

constexpr std::uint64_t kMaxFactor = std::uint64_t{1} << 62;

void multiply_limbs(std::vector<std::uint64_t>& limbs, std::uint64_t factor) {
  std::uint64_t carry = 0;
  for (std::uint64_t& limb : limbs) {
    const UInt128 product = static_cast<UInt128>(limb) * factor + carry;
    limb = static_cast<std::uint64_t>(product);
    carry = static_cast<std::uint64_t>(product >> 64);
  }
}

void add_limbs(std::vector<std::uint64_t>& sum, const std::vector<std::uint64_t>& term) {
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const UInt128 next = static_cast<UInt128>(sum[i]) + term[i] + carry;
    sum[i] = static_cast<std::uint64_t>(next);
    carry = static_cast<std::uint64_t>(next >> 64);
  }
  XCOUNT_ASSERT(carry == 0);
}

}  // namespace

void CountValues::reset(const Topology& forest, std::span<const Feature> features) {
  n_cells_.clear();
  double bits = 1.0;
  for (const Feature feature : features) {
    const Cell n_cells = forest.axis(feature).n_cells;
    n_cells_.push_back(static_cast<std::uint64_t>(n_cells));
    bits += std::log2(static_cast<double>(n_cells));
  }
  limbs_ = static_cast<std::size_t>(bits / 64.0) + 1;
  scratch_.assign(limbs_, 0);
  scratch_[0] = 1;
  for (const std::uint64_t factor : n_cells_) multiply(factor);
  values_.assign(limbs_, 0);
  values_.insert(values_.end(), scratch_.begin(), scratch_.end());
}

void CountValues::multiply(std::uint64_t factor) { multiply_limbs(scratch_, factor); }

void CountValues::multiply_wide(UInt128 factor) {
  const auto high = static_cast<std::uint64_t>(factor >> 64);
  if (high == 0) return multiply(static_cast<std::uint64_t>(factor));
  Sum upper(limbs_, 0);  // scratch_ times the high word, one limb up
  std::copy(scratch_.begin(), scratch_.end() - 1, upper.begin() + 1);
  upper.swap(scratch_);
  multiply(high);
  upper.swap(scratch_);
  multiply(static_cast<std::uint64_t>(factor));
  add_limbs(scratch_, upper);
}

void CountValues::divide(std::uint64_t divisor) {
  std::uint64_t remainder = 0;
  for (std::size_t i = limbs_; i-- > 0;) {
    if (remainder == 0) {  // the common case: one hardware division
      remainder = scratch_[i] % divisor;
      scratch_[i] /= divisor;
    } else {
      const UInt128 dividend = (static_cast<UInt128>(remainder) << 64) | scratch_[i];
      scratch_[i] = static_cast<std::uint64_t>(dividend / divisor);
      remainder = static_cast<std::uint64_t>(dividend % divisor);
    }
  }
  XCOUNT_ASSERT(remainder == 0);
}

void CountValues::add(Sum& sum, SolutionId solution, std::span<const Stretch> within) {
  XCOUNT_ASSERT(solution < size() && sum.size() == limbs_);
  if (solution == kNoneSolve) return;
  const std::uint64_t* value = values_.data() + solution * limbs_;
  scratch_.assign(value, value + limbs_);
  // Free of a feature means a multiple of its number of cells: the divisions are exact.
  std::uint64_t divisor = 1;
  std::uint64_t factor = 1;
  for (const Stretch& stretch : within) {
    const std::uint64_t n_cells = n_cells_[stretch.feature];
    XCOUNT_ASSERT(stretch.begin < stretch.end);
    XCOUNT_ASSERT(static_cast<std::uint64_t>(stretch.end) <= n_cells);
    if (divisor > kMaxFactor / n_cells) {
      divide(divisor);
      multiply(factor);
      divisor = factor = 1;
    }
    divisor *= n_cells;
    factor *= static_cast<std::uint64_t>(stretch.end - stretch.begin);
  }
  if (divisor != 1) divide(divisor);
  if (factor != 1) multiply(factor);
  add_limbs(sum, scratch_);
}

void CountValues::add_box(Sum& sum, std::span<const Stretch> box) const {
  std::vector<std::uint64_t> left = n_cells_;
  for (const Stretch& stretch : box) {
    left[stretch.feature] = static_cast<std::uint64_t>(stretch.end - stretch.begin);
  }
  Sum product(limbs_, 0);
  product[0] = 1;
  std::uint64_t factor = 1;  // of several features: few passes over the limbs
  for (const std::uint64_t n_cells : left) {
    if (factor > kMaxFactor / n_cells) {
      multiply_limbs(product, factor);
      factor = 1;
    }
    factor *= n_cells;
  }
  multiply_limbs(product, factor);
  add_limbs(sum, product);
}

SolutionId CountValues::finish(const Sum& sum) {
  XCOUNT_ASSERT(sum.size() == limbs_);
  values_.insert(values_.end(), sum.begin(), sum.end());
  return static_cast<SolutionId>(size() - 1);
}

SolutionId CountValues::finish(Total volume, std::span<const std::uint32_t> features) {
  if (volume == 0) return kNoneSolve;
  const auto all = value(kAllSolve);
  scratch_.assign(all.begin(), all.end());
  std::uint64_t divisor = 1;
  for (const std::uint32_t feature : features) {
    if (divisor > kMaxFactor / n_cells_[feature]) {
      divide(divisor);
      divisor = 1;
    }
    divisor *= n_cells_[feature];
  }
  divide(divisor);
  multiply_wide(volume);
  return finish(scratch_);
}

double CountValues::share(SolutionId id) const {
  double part = 0.0;
  double whole = 0.0;
  // The leading limbs of the whole decide; what stands below them changes no double.
  for (std::size_t i = limbs_; i-- > 0 && whole < 0x1p600;) {
    part = part * 0x1p64 + static_cast<double>(value(id)[i]);
    whole = whole * 0x1p64 + static_cast<double>(value(kAllSolve)[i]);
  }
  XCOUNT_ASSERT(part >= 0.0 && part <= whole);
  return part / whole;
}

void WeightValues::reset(const Topology& /*forest*/, std::span<const Feature> features) {
  features_.assign(features.begin(), features.end());
  values_.assign({0.0, 1.0});
}

double WeightValues::weight(const Stretch& stretch) const {
  XCOUNT_ASSERT(stretch.feature < features_.size() && stretch.begin <= stretch.end);
  const auto& cumulative = cumulative_[static_cast<std::size_t>(features_[stretch.feature])];
  return static_cast<double>(cumulative[static_cast<std::size_t>(stretch.end)] -
                             cumulative[static_cast<std::size_t>(stretch.begin)]);
}

void WeightValues::add(Sum& sum, SolutionId solution, std::span<const Stretch> within) const {
  XCOUNT_ASSERT(solution < values_.size());
  double term = values_[solution];
  for (const Stretch& stretch : within) term *= weight(stretch);
  const double total = sum.value + term;
  sum.compensation += std::abs(sum.value) >= std::abs(term) ? (sum.value - total) + term
                                                            : (term - total) + sum.value;
  sum.value = total;
}

SolutionId WeightValues::finish(Total volume, std::span<const std::uint32_t> /*features*/) {
  values_.push_back(volume);
  return static_cast<SolutionId>(values_.size() - 1);
}

SolutionId WeightValues::finish(const Sum& sum) {
  values_.push_back(sum.value + sum.compensation);
  return static_cast<SolutionId>(values_.size() - 1);
}

}  // namespace xcount

#include "xcount/exact/tile_probability.hpp"

#include <cmath>

#include "xcount/support/assert.hpp"
#include "xcount/support/value.hpp"

namespace xcount {

namespace {

constexpr auto kOne = static_cast<double>(kProbabilityOne);

template <class T>
T sum_at(const TileColumn<T>& column, std::size_t output, std::size_t mask, std::size_t lane) {
  XCOUNT_ASSERT(output < column.n_outputs && mask < column.n_masks);
  XCOUNT_ASSERT(lane < LaneTraits<T>::kLanes);
  return static_cast<T>(column.sums[output * column.n_masks + mask].lane[lane]);
}

// A margin, or a difference of two, in the unit of the link's exponents.
template <class T>
double argument(const TileQuestion<T>& question, const T& value) {
  if constexpr (requires { static_cast<double>(value); }) {
    return static_cast<double>(value) * question.link.unit;  // holds the power of two
  } else {
    const bool negative = value < T(0);
    const double size =
        ValueTraits<T>::scaled(negative ? T(-value) : value, question.link.exponent);
    return (negative ? -size : size) * question.link.unit;
  }
}

template <class T>
double softmax(const TileQuestion<T>& question, const TileColumn<T>& column, std::size_t output,
               std::size_t mask, std::size_t lane) {
  const T own = sum_at(column, output, mask, lane);
  double sum = 0.0;
  for (std::size_t k = 0; k < column.n_outputs; ++k) {
    // Subtracted before it is rounded: a common part of all margins does not matter.
    const T lead = sum_at(column, k, mask, lane) - own;
    sum += k == output ? 1.0 : std::exp(argument(question, lead));
  }
  return 1.0 / sum;
}

// The integer that stands for a probability: below 2^49, hence exact.
template <class T>
double threshold_as_double(const T& value) {
  if constexpr (requires { static_cast<double>(value); }) {
    return static_cast<double>(value);
  } else {
    return ValueTraits<T>::to_number(value);
  }
}

}  // namespace

template <class T>
void find_probabilities(const TileQuestion<T>& given, const TileColumn<T>& sums, Lanes<T>* decided,
                        std::size_t begin, std::size_t end) {
  XCOUNT_ASSERT(begin < end && end <= LaneTraits<T>::kLanes);
  const TileQuestion<T> question = given;  // copies, which no store changes
  const TileColumn<T> column = sums;
  const std::size_t output = question.link.output;
  for (std::size_t mask = 0; mask < column.n_masks; ++mask) {
    for (std::size_t lane = begin; lane < end; ++lane) {
      double probability;
      if (question.link.softmax) {
        probability = softmax(question, column, output, mask, lane);
      } else {
        const double own =
            argument(question, T(sum_at(column, output, mask, lane) - question.zero));
        probability = 1.0 / (1.0 + std::exp(-own));
      }
      XCOUNT_ASSERT(probability >= 0.0 && probability <= 1.0);
      const auto rounded = static_cast<std::int64_t>(probability * kOne + 0.5);
      decided[mask].lane[lane] = static_cast<LaneResidue<T>>(T(rounded));
    }
  }
}

template <class T>
bool is_sure(const TileQuestion<T>& question, const TileColumn<T>& column, std::size_t change,
             std::size_t mask, std::size_t lane) {
  XCOUNT_ASSERT(change < question.changes.size);
  const Change<T>& asked = question.changes.data[change];
  std::size_t largest = 0;
  T best = sum_at(column, 0, mask, lane);
  for (std::size_t k = 1; k < column.n_outputs; ++k) {
    const T other = sum_at(column, k, mask, lane);
    if (other > best) {
      best = other;
      largest = k;
    }
  }
  if (!question.link.softmax) return best > asked.sure_above;
  const double scaled = softmax(question, column, largest, mask, lane) * kOne;
  const double least = threshold_as_double<T>(asked.threshold);
  if (scaled > least + kProbabilityDoubt) return true;
  if (scaled < least - kProbabilityDoubt) return false;
  return question.judge->changes(column, change, mask, lane);
}

#define XCOUNT_INSTANTIATE(T)                                                                   \
  template void find_probabilities(const TileQuestion<T>&, const TileColumn<T>&, Lanes<T>*,     \
                                   std::size_t, std::size_t);                                   \
  template bool is_sure(const TileQuestion<T>&, const TileColumn<T>&, std::size_t, std::size_t, \
                        std::size_t);

XCOUNT_INSTANTIATE(std::int32_t)
XCOUNT_INSTANTIATE(std::int64_t)
XCOUNT_INSTANTIATE(Int128)
XCOUNT_INSTANTIATE(Int2304)

#undef XCOUNT_INSTANTIATE

}  // namespace xcount

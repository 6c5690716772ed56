#include "xcount/exact/corner_plan.hpp"

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <type_traits>

#include "xcount/support/assert.hpp"

namespace xcount {

namespace {

std::vector<bool> sensitive_features(std::size_t n_features, const MaskSpace& masks) {
  std::vector<bool> result(n_features);
  for (const Feature f : masks.sensitive()) result[static_cast<std::size_t>(f)] = true;
  return result;
}

// Leaves that count. Children have larger indices than their parent.
LeafFlags counted_leaves(const Topology& forest, const std::vector<bool>& is_sensitive,
                         bool gaps_only) {
  LeafFlags counted(forest.n_nodes(), !gaps_only);
  for (std::size_t i = 0; i < forest.n_nodes(); ++i) {
    if (forest.is_leaf(static_cast<NodeIndex>(i))) continue;
    const auto f = static_cast<std::size_t>(forest.test(static_cast<NodeIndex>(i)).feature);
    const bool below = counted[i] || is_sensitive[f];
    counted[static_cast<std::size_t>(forest.left[i])] = below;
    counted[static_cast<std::size_t>(forest.right[i])] = below;
  }
  return counted;
}

// Unmarks the features that a leaf which counts depends on.
void find_busy(const Topology& forest, const LeafFlags& counted, std::vector<bool>& is_idle) {
  LeafFlags matters = counted;
  for (std::size_t i = forest.n_nodes(); i-- > 0;) {
    const auto node = static_cast<NodeIndex>(i);
    if (forest.is_leaf(node)) continue;
    matters[i] = matters[static_cast<std::size_t>(forest.left[i])] ||
                 matters[static_cast<std::size_t>(forest.right[i])];
    if (matters[i]) is_idle[static_cast<std::size_t>(forest.test(node).feature)] = false;
  }
}

template <class Value>
double magnitude(const Value& value) {
  return ValueTraits<Value>::to_number(value < Value(0) ? Value(-value) : value);
}

template <class Value>
SumRange<Value> sum_range(const Forest<Value>& forest, const LeafFlags& counted,
                          const Value& base) {
  std::vector<SumRange<Value>> below(forest.n_nodes());
  for (std::size_t i = forest.n_nodes(); i-- > 0;) {
    const Value value = counted[i] ? forest.values[i] : Value(0);
    below[i] = {value, value};
    if (forest.is_leaf(static_cast<NodeIndex>(i))) continue;
    const auto& a = below[static_cast<std::size_t>(forest.left[i])];
    const auto& b = below[static_cast<std::size_t>(forest.right[i])];
    below[i] = {b.low < a.low ? b.low : a.low, b.high > a.high ? b.high : a.high};
  }
  SumRange<Value> range{base, base};
  double bound = magnitude(base);
  for (const NodeIndex root : forest.roots) {
    const SumRange<Value>& tree = below[static_cast<std::size_t>(root)];
    bound += std::max(magnitude(tree.low), magnitude(tree.high));
    range.low += tree.low;
    range.high += tree.high;
  }
  constexpr auto kBits = static_cast<int>(64 * ValueTraits<Value>::kLimbs);
  if (kBits <= 128 && !(bound < std::ldexp(1.0, kBits - 3))) {
    throw std::invalid_argument("corner sums: sums need wider integers");
  }
  return range;
}

template <class Value>
Value clamped(const Value& value, const Value& low, const Value& high) {
  if (value < low) return low;
  return value > high ? high : value;
}

void set_weights(const std::vector<std::vector<double>>& weights, const CornerGround& ground,
                 CornerFrame& plan) {
  for (std::size_t f = 0; f < weights.size(); ++f) {
    std::vector<double>& out = plan.weights.emplace_back();
    for (const Cell cell : ground.orders[f].cell)
      out.push_back(weights[f][static_cast<std::size_t>(cell)]);
    if (ground.is_sensitive[f]) continue;
    const bool has_axis = out.size() > 1 && !ground.is_idle[f];
    double& product = has_axis ? plan.total_weight : plan.common_weight;
    product *= std::accumulate(out.begin(), out.end(), 0.0);
  }
}

}  // namespace

CornerGround::CornerGround(std::span<const Topology* const> given, const MaskSpace& masks,
                           bool gaps_only)
    : forests(given.begin(), given.end()),
      is_sensitive(sensitive_features(given[0]->axes.size(), masks)),
      orders(choose_cell_orders(forests, is_sensitive)),
      is_idle(given[0]->axes.size(), true),
      windows(*given[0], masks, orders) {
  for (const Topology* forest : forests) {
    counted.push_back(counted_leaves(*forest, is_sensitive, gaps_only));
    find_busy(*forest, counted.back(), is_idle);
  }
}

template <class T>
std::size_t CornerPlan<T>::n_corners() const {
  std::size_t n = 0;
  for (const CornerList<T>& list : corners) n += list.size();
  return n;
}

template <class T>
std::size_t CornerPlan<T>::list_bytes() const {
  return n_corners() * sizeof(Corner<T>);
}

double CornerFrame::outer_weight(std::uint64_t block) const {
  XCOUNT_ASSERT(block < layout.n_blocks);
  double weight = 1.0;
  for (std::size_t j = layout.outer.size(); j-- > 0;) {
    const OuterAxis& axis = layout.outer[j];
    const auto n = static_cast<std::uint64_t>(axis.n_cells);
    weight *= weights[static_cast<std::size_t>(axis.feature)][block % n];
    block /= n;
  }
  return weight;
}

template <class Value>
SumRange<Value> find_range(const CornerQuestion<Value>& question, const CornerGround& ground) {
  SumRange<Value> range = sum_range(*question.forests[0], ground.counted[0], question.bases[0]);
  for (std::size_t k = 1; k < question.forests.size(); ++k) {
    const SumRange<Value> other =
        sum_range(*question.forests[k], ground.counted[k], question.bases[k]);
    if (other.low < range.low) range.low = other.low;
    if (other.high > range.high) range.high = other.high;
  }
  if (question.asks_for_probabilities()) {  // the sum 0 is a number of the same type
    if (Value(0) < range.low) range.low = Value(0);
    if (range.high < Value(0)) range.high = Value(0);
  }
  return range;
}

template <class Value>
Change<Value> shifted_change(const Change<Value>& change, const SumRange<Value>& range) {
  const auto shifted = [&](const Value& cutoff) {  // the same for all V of the range
    return Value(clamped(cutoff, Value(range.low - Value(1)), range.high) - range.low);
  };
  Change<Value> result(change.form, change.direction, Value(0));
  if (change.form == ChangeForm::kGap) {
    result.threshold = clamped(change.threshold, Value(0), Value(range.span() + Value(1)));
  } else if (change.form == ChangeForm::kProbability) {
    // The smallest gap of the integers that may be one of the probabilities.
    result.threshold = change.threshold - Value(kProbabilityDoubt);
  } else if (change.form == ChangeForm::kSureLargest) {
    result.threshold = change.threshold;
    result.sure_above = shifted(change.sure_above);
  } else if (change.form == ChangeForm::kFlip) {
    result.threshold = shifted(change.threshold);
    result.sure_below = shifted(change.sure_below);
    result.sure_above = shifted(change.sure_above);
  }
  return result;
}

template <class T, class Value>
CornerIntegers<T> exact_integers(const CornerQuestion<Value>& question,
                                 const SumRange<Value>& range) {
  CornerIntegers<T> integers;
  integers.value = [&question](std::size_t output, NodeIndex leaf) {
    return truncated<T>(question.forests[output]->values[static_cast<std::size_t>(leaf)]);
  };
  for (const Value& base : question.bases) {
    integers.constants.push_back(truncated<T>(Value(base - range.low)));
  }
  const auto narrowed = [](const Value& value) { return static_cast<T>(truncated<T>(value)); };
  for (const Change<Value>& change : question.changes) {
    const Change<Value> shifted = shifted_change(change, range);
    Change<T>& own =
        integers.changes.emplace_back(change.form, change.direction, narrowed(shifted.threshold));
    own.sure_below = narrowed(shifted.sure_below);
    own.sure_above = narrowed(shifted.sure_above);
  }
  integers.span = narrowed(range.span());
  return integers;
}

template <class T, class Value>
CornerPlan<T> make_plan(const CornerQuestion<Value>& question, const CornerGround& ground,
                        const CornerLayout& layout, const CornerIntegers<T>& integers, Stop& stop) {
  CornerPlan<T> plan{{layout, ground.windows}};
  plan.vector_unit = question.vector_unit;
  plan.span = integers.span;
  plan.changes = integers.changes;
  set_weights(question.weights, ground, plan);
  for (std::size_t k = 0; k < ground.forests.size(); ++k) {
    const std::size_t held = plan.list_bytes();
    if (held > question.max_bytes) throw std::length_error("corner sums: raise --memory");
    const auto value = [&integers, k](NodeIndex leaf) { return integers.value(k, leaf); };
    plan.corners.push_back(list_corners<T>(*ground.forests[k], ground.orders, ground.counted[k],
                                           value, integers.constants[k], layout.step,
                                           layout.key_bits, {question.max_bytes - held, &stop}));
  }
  return plan;
}

#define XCOUNT_INSTANTIATE_IN(T, Value)                                                            \
  template CornerIntegers<T> exact_integers(const CornerQuestion<Value>&, const SumRange<Value>&); \
  template CornerPlan<T> make_plan(const CornerQuestion<Value>&, const CornerGround&,              \
                                   const CornerLayout&, const CornerIntegers<T>&, Stop&);
#define XCOUNT_INSTANTIATE(Value)                                                         \
  template SumRange<Value> find_range(const CornerQuestion<Value>&, const CornerGround&); \
  template Change<Value> shifted_change(const Change<Value>&, const SumRange<Value>&);    \
  XCOUNT_INSTANTIATE_IN(std::int32_t, Value)                                              \
  XCOUNT_INSTANTIATE_IN(std::int64_t, Value)

XCOUNT_INSTANTIATE(std::int64_t)
XCOUNT_INSTANTIATE(Int128)
XCOUNT_INSTANTIATE(Int2304)
XCOUNT_INSTANTIATE_IN(Int128, Int128)
XCOUNT_INSTANTIATE_IN(Int128, Int2304)
XCOUNT_INSTANTIATE_IN(Int2304, Int2304)

#undef XCOUNT_INSTANTIATE
#undef XCOUNT_INSTANTIATE_IN

template struct CornerPlan<std::int32_t>;
template struct CornerPlan<std::int64_t>;
template struct CornerPlan<Int128>;
template struct CornerPlan<Int2304>;

}  // namespace xcount

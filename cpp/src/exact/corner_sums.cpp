#include "xcount/exact/corner_sums.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "xcount/exact/corner_stream.hpp"
#include "xcount/support/held_bytes.hpp"
#include "xcount/support/parallel.hpp"

namespace xcount {

namespace {

// Threads take this many regions of 32 bits at a time, unless the last outer axis ends before: a
// tenth of a second at most, which is how soon a time limit is obeyed.
constexpr std::uint64_t kRegionsAtOnce = std::uint64_t{1} << 24;

[[noreturn]] void fail(const std::string& what) {
  throw std::invalid_argument("corner sums: " + what);
}

template <class T>
class CornerSumsIn final : public CornerSums {
 public:
  explicit CornerSumsIn(CornerPlan<T> plan) : plan_(std::move(plan)) {}

  [[nodiscard]] std::uint64_t n_regions() const override { return plan_.layout.n_regions; }
  [[nodiscard]] std::uint64_t n_blocks() const override { return plan_.layout.n_blocks; }
  [[nodiscard]] std::size_t n_axes() const override { return plan_.layout.n_axes(); }
  [[nodiscard]] std::size_t n_bits() const override { return 8 * sizeof(T); }
  [[nodiscard]] std::size_t n_masks() const override { return plan_.windows.n_masks(); }
  [[nodiscard]] std::size_t n_changes() const override { return plan_.changes.size(); }
  [[nodiscard]] std::size_t n_corners() const override {
    std::size_t n = 0;
    for (const CornerList<T>& corners : plan_.corners) n += corners.size();
    return n;
  }
  [[nodiscard]] std::size_t bytes(unsigned n_threads) const override {
    return n_corners() * sizeof(Corner<T>) + plan_.windows.bytes() +
           std::max(1U, n_threads) * CornerStream<T>::bytes_for(plan_);
  }
  [[nodiscard]] CornerCounts count(std::uint64_t first, std::uint64_t end, unsigned n_threads,
                                   Stop& stop) const override;

 private:
  [[nodiscard]] std::uint64_t blocks_at_once(std::uint64_t n_asked, unsigned n_threads) const;
  [[nodiscard]] CornerCounts total(const std::vector<std::uint64_t>& counts,
                                   const std::vector<Int128>& shares) const;

  CornerPlan<T> plan_;
};

// Whole sweeps of the last outer axis, where they are not too long: its slices are then inserted
// once, not once per thread.
template <class T>
std::uint64_t CornerSumsIn<T>::blocks_at_once(std::uint64_t n_asked, unsigned n_threads) const {
  const CornerLayout& layout = plan_.layout;
  const std::uint64_t size = std::max<std::uint64_t>(1, layout.n_regions / layout.n_blocks);
  const std::uint64_t n_rows = plan_.windows.near.size() / plan_.windows.n_masks();  // of each mask
  const std::uint64_t cost = sizeof(T) / 4 * (1 + n_rows / 4) * (1 + plan_.changes.size() / 4);
  const std::uint64_t most = kRegionsAtOnce / cost / size;
  const std::uint64_t fair = n_asked / (4 * std::uint64_t{n_threads});
  const auto sweep =
      layout.outer.empty() ? 1 : static_cast<std::uint64_t>(layout.outer.back().n_cells);
  return std::max<std::uint64_t>(1, std::min({most, fair, sweep}));
}

template <class T>
CornerCounts CornerSumsIn<T>::count(std::uint64_t first, std::uint64_t end, unsigned n_threads,
                                    Stop& stop) const {
  n_threads = std::max(1U, n_threads);
  end = std::min(end, n_blocks());
  first = std::min(first, end);
  const std::uint64_t step = blocks_at_once(end - first, n_threads);
  const std::size_t n_results = plan_.changes.size() * n_masks();
  std::vector<std::uint64_t> counts(n_results);
  std::vector<Int128> shares(plan_.weights.empty() ? 0 : n_results);
  std::atomic<std::uint64_t> next{first};
  std::mutex mutex;
  // What a thread takes, it finishes: the blocks that are done are the first ones.
  const auto work = [&](std::size_t) {
    CornerStream<T> stream(plan_);
    while (next.load() < end && !stop.is_over()) {
      const std::uint64_t begin = next.fetch_add(step);
      for (std::uint64_t b = begin; b < std::min(end, begin + step); ++b) stream.count_block(b);
    }
    const std::scoped_lock lock(mutex);
    for (std::size_t i = 0; i < n_results; ++i) counts[i] += stream.counts()[i];
    for (std::size_t i = 0; i < shares.size(); ++i) shares[i] += stream.shares()[i];
  };
  const std::uint64_t n_steps = (end - first + step - 1) / step;
  const auto n_workers = static_cast<unsigned>(std::min<std::uint64_t>(n_threads, n_steps));
  parallel(n_workers, n_workers, work, &stop);
  CornerCounts result = total(counts, shares);
  result.n_finished = std::min(next.load(), end) - first;
  return result;
}

template <class T>
CornerCounts CornerSumsIn<T>::total(const std::vector<std::uint64_t>& counts,
                                    const std::vector<Int128>& shares) const {
  CornerCounts result;
  result.counts.resize(counts.size());
  result.shares.resize(shares.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::size_t position = i % n_masks();
    const std::size_t target =
        i - position + static_cast<std::size_t>(plan_.windows.mask_at[position]);
    result.counts[target] = counts[i];
    if (shares.empty()) continue;
    const double part = std::ldexp(static_cast<double>(shares[i]), -CornerStream<T>::kShareBits);
    result.shares[target] = part * plan_.total_weight * plan_.common_weight;
  }
  return result;
}

template <class Value>
struct Range {
  Value low, high;
};

template <class Value>
double magnitude(const Value& value) {
  return ValueTraits<Value>::to_number(value < Value(0) ? Value(-value) : value);
}

// Bounds of a forest's sums. Children have larger indices than their parent.
template <class Value>
Range<Value> sum_range(const Forest<Value>& forest, const Value& base) {
  std::vector<Range<Value>> below(forest.n_nodes());
  for (std::size_t i = forest.n_nodes(); i-- > 0;) {
    below[i] = {forest.values[i], forest.values[i]};
    if (forest.is_leaf(static_cast<NodeIndex>(i))) continue;
    const auto& a = below[static_cast<std::size_t>(forest.left[i])];
    const auto& b = below[static_cast<std::size_t>(forest.right[i])];
    below[i] = {b.low < a.low ? b.low : a.low, b.high > a.high ? b.high : a.high};
  }
  Range<Value> range{base, base};
  double bound = magnitude(base);
  for (const NodeIndex root : forest.roots) {
    const Range<Value>& tree = below[static_cast<std::size_t>(root)];
    bound += std::max(magnitude(tree.low), magnitude(tree.high));
    range.low += tree.low;
    range.high += tree.high;
  }
  constexpr auto kBits = static_cast<int>(64 * ValueTraits<Value>::kLimbs);
  if (kBits <= 128 && !(bound < std::ldexp(1.0, kBits - 3))) fail("sums need wider integers");
  return range;
}

template <class Value>
bool asks_for_probabilities(const CornerQuestion<Value>& question) {
  return !question.changes.empty() && question.changes[0].form == ChangeForm::kProbability;
}

template <class Value>
void check_change(const CornerQuestion<Value>& question, const Change<Value>& change) {
  const bool largest = change.form == ChangeForm::kLargest;
  const bool by_probability = change.form == ChangeForm::kProbability;
  if (by_probability != asks_for_probabilities(question)) fail("probabilities stand alone");
  const bool several = question.forests.size() > 1;
  if (!by_probability && largest != several) {
    fail("the largest needs several outputs, other changes need one");
  }
  if (largest && change.direction != Direction::kAny) fail("the largest has no direction");
  const bool is_gap = change.form == ChangeForm::kGap || by_probability;
  if (is_gap && change.threshold < Value(0)) fail("a gap is negative");
  if (change.form == ChangeForm::kFlip &&
      (change.sure_below > change.threshold || change.sure_above < change.threshold)) {
    fail("a sure decision is on the other side of the cut-off");
  }
  if (by_probability && Value(kProbabilityOne) < change.threshold) fail("a gap is above 1");
}

template <class Value>
void check(const CornerQuestion<Value>& question) {
  if (question.forests.empty()) fail("no output");
  if (question.bases.size() != question.forests.size()) fail("an output has no base");
  const std::vector<Axis>& axes = question.forests[0]->axes;
  for (const auto* forest : question.forests) {
    if (forest->axes.size() != axes.size()) fail("outputs are on different grids");
    for (std::size_t f = 0; f < axes.size(); ++f) {
      if (forest->axes[f].n_cells != axes[f].n_cells) fail("outputs are on different grids");
    }
  }
  for (const Change<Value>& change : question.changes) check_change(question, change);
  if (asks_for_probabilities(question)) {
    const bool is_softmax = question.link.softmax;
    if (!question.judge) fail("probabilities need a judge");
    if (question.link.output >= question.forests.size()) fail("the link names no output");
    if (!is_softmax && question.forests.size() > 1) fail("a sigmoid is of one output");
    if (!(question.link.unit > 0.0) || std::isinf(question.link.unit)) fail("a unit is not > 0");
  }
  if (question.weights.empty()) return;
  if (question.weights.size() != axes.size()) fail("weights are not one list per feature");
  for (std::size_t f = 0; f < axes.size(); ++f) {
    const auto& weights = question.weights[f];
    if (weights.size() != static_cast<std::size_t>(axes[f].n_cells)) fail("a cell has no weight");
    for (const double w : weights) {
      if (!(w >= 0.0) || std::isinf(w)) fail("a weight is negative or not finite");
    }
  }
}

// The residue modulo 2^width of T.
template <class T, class Value>
LaneResidue<T> truncated(const Value& value) {
  if constexpr (std::is_same_v<T, Value>) {
    return static_cast<LaneResidue<T>>(value);
  } else if constexpr (std::is_same_v<Value, Int2304>) {
    return truncated<T>(ValueTraits<Int128>::from_limbs(std::span(value.limbs).first(2)));
  } else {
    return static_cast<LaneResidue<T>>(value);
  }
}

template <class Value>
Value clamped(const Value& value, const Value& low, const Value& high) {
  if (value < low) return low;
  return value > high ? high : value;
}

template <class Value>
std::vector<const Topology*> topologies(const CornerQuestion<Value>& question) {
  return {question.forests.begin(), question.forests.end()};
}

std::vector<bool> sensitive_features(std::size_t n_features, const MaskSpace& masks) {
  std::vector<bool> result(n_features);
  for (const Feature f : masks.sensitive()) result[static_cast<std::size_t>(f)] = true;
  return result;
}

// Changes with thresholds for V - low.
template <class T, class Value>
std::vector<Change<T>> shifted_changes(const CornerQuestion<Value>& question,
                                       const Range<Value>& range) {
  const Value span = range.high - range.low;
  std::vector<Change<T>> result;
  const auto shifted = [&](const Value& cutoff) {  // the same for all V of the range
    const Value least = range.low - Value(1);
    return static_cast<T>(truncated<T>(Value(clamped(cutoff, least, range.high) - range.low)));
  };
  for (const Change<Value>& change : question.changes) {
    Change<T>& own = result.emplace_back();
    own.form = change.form;
    own.direction = change.direction;
    if (change.form == ChangeForm::kGap) {
      const Value gap = clamped(change.threshold, Value(0), Value(span + Value(1)));
      own.threshold = static_cast<T>(truncated<T>(gap));
    } else if (change.form == ChangeForm::kProbability) {
      // The smallest gap of the integers that may be one of the probabilities.
      own.threshold = static_cast<T>(truncated<T>(change.threshold)) - T(kProbabilityDoubt);
    } else if (change.form == ChangeForm::kFlip) {
      own.threshold = shifted(change.threshold);
      own.sure_below = shifted(change.sure_below);
      own.sure_above = shifted(change.sure_above);
    }
  }
  return result;
}

// The value of an integer of a narrower type.
template <class Value, class T>
Value widened(const T& value) {
  if constexpr (std::is_same_v<T, Int128> && std::is_same_v<Value, Int2304>) {
    Int2304 wide(static_cast<std::int64_t>(value >> 64));
    std::copy_backward(wide.limbs.begin(), wide.limbs.end() - 1, wide.limbs.end());
    wide.limbs[0] = static_cast<std::uint64_t>(value);
    return wide;
  } else {
    return static_cast<Value>(value);
  }
}

// Asks the question's judge about every neighbour, until one changes.
template <class T, class Value>
class ExactJudge final : public TileJudge<T> {
 public:
  ExactJudge(const CornerQuestion<Value>& question, const Value& low)
      : judge_(question.judge), low_(low) {
    for (const Change<Value>& change : question.changes) directions_.push_back(change.direction);
  }

  [[nodiscard]] bool changes(const TileJob<T>& job, std::size_t change, std::size_t mask,
                             std::size_t lane) const override {
    const std::vector<Value> own = sums(job, mask, lane);
    const auto differs = [&](std::size_t other) {
      const std::vector<Value> there = sums(job, other, lane);
      if (there == own) return false;
      const Direction direction = directions_[change];
      return (direction != Direction::kDown && judge_(change, own, there)) ||
             (direction != Direction::kUp && judge_(change, there, own));
    };
    if (job.any) {
      for (std::size_t m = 0; m < job.n_masks; ++m) {
        if (differs(m)) return true;
      }
      return false;
    }
    for (std::uint32_t i = job.first[mask]; i < job.first[mask + 1]; ++i) {
      const std::size_t begin = job.near[i];
      const std::size_t end =
          begin < job.n_ordered ? std::min(begin + job.width, job.n_ordered) : begin + 1;
      for (std::size_t m = begin; m < end; ++m) {
        if (differs(m)) return true;
      }
    }
    return false;
  }

 private:
  std::vector<Value> sums(const TileJob<T>& job, std::size_t mask, std::size_t lane) const {
    std::vector<Value> result;
    for (std::size_t k = 0; k < job.n_outputs; ++k) {
      const auto value = static_cast<T>(job.column[k * job.n_masks + mask].lane[lane]);
      result.push_back(widened<Value>(value) + low_);
    }
    return result;
  }

  ProbabilityJudge<Value> judge_;
  Value low_;
  std::vector<Direction> directions_;
};

template <class T, class Value>
void set_link(const CornerQuestion<Value>& question, const Range<Value>& range,
              CornerPlan<T>& plan) {
  plan.judge = std::make_unique<ExactJudge<T, Value>>(question, range.low);
  plan.link = question.link;
  plan.zero = static_cast<T>(truncated<T>(Value(-range.low)));
  plan.span = T(kProbabilityOne) + T(1);
  if constexpr (!std::is_same_v<T, Int2304>) {
    plan.link.unit = std::ldexp(plan.link.unit, plan.link.exponent);
    plan.link.exponent = 0;
  }
}

template <class T>
void set_weights(const std::vector<std::vector<double>>& weights, std::span<const CellOrder> orders,
                 const std::vector<bool>& sensitive, CornerPlan<T>& plan) {
  for (std::size_t f = 0; f < weights.size(); ++f) {
    std::vector<double>& out = plan.weights.emplace_back();
    for (const Cell cell : orders[f].cell)
      out.push_back(weights[f][static_cast<std::size_t>(cell)]);
    if (sensitive[f]) continue;
    double& product = out.size() > 1 ? plan.total_weight : plan.common_weight;
    product *= std::accumulate(out.begin(), out.end(), 0.0);
  }
}

template <class T, class Value>
std::unique_ptr<CornerSums> make_in(const CornerQuestion<Value>& question,
                                    const Range<Value>& range) {
  const std::vector<const Topology*> forests = topologies(question);
  const std::vector<bool> sensitive = sensitive_features(forests[0]->axes.size(), *question.masks);
  const std::vector<CellOrder> orders = choose_cell_orders(forests, sensitive);
  CornerPlan<T> plan{CornerLayout(orders, *question.masks, forests.size(), sizeof(T),
                                  LaneTraits<T>::kLanes, question.block_bytes),
                     MaskWindows(*forests[0], *question.masks, orders)};
  plan.vector_unit = question.vector_unit;
  plan.span = static_cast<T>(truncated<T>(Value(range.high - range.low)));
  plan.changes = shifted_changes<T>(question, range);
  if (asks_for_probabilities(question)) set_link(question, range, plan);
  set_weights(question.weights, orders, sensitive, plan);
  for (std::size_t k = 0; k < forests.size(); ++k) {
    std::vector<LaneResidue<T>> values;
    for (const Value& value : question.forests[k]->values) values.push_back(truncated<T>(value));
    const LaneResidue<T> constant = truncated<T>(Value(question.bases[k] - range.low));
    plan.corners.push_back(list_corners<T>(*forests[k], orders, values, constant, plan.layout.step,
                                           plan.layout.key_bits, question.max_corners));
  }
  return std::make_unique<CornerSumsIn<T>>(std::move(plan));
}

}  // namespace

template <class Value>
std::unique_ptr<CornerSums> make_corner_sums(const CornerQuestion<Value>& question) {
  check(question);
  Range<Value> range = sum_range(*question.forests[0], question.bases[0]);
  for (std::size_t k = 1; k < question.forests.size(); ++k) {
    const Range<Value> other = sum_range(*question.forests[k], question.bases[k]);
    if (other.low < range.low) range.low = other.low;
    if (other.high > range.high) range.high = other.high;
  }
  const bool by_probability = asks_for_probabilities(question);
  if (by_probability) {  // the sum 0 is a number of the same type
    if (Value(0) < range.low) range.low = Value(0);
    if (range.high < Value(0)) range.high = Value(0);
  }
  // Edges reach from -(span + 1) to 2 * span + 1 (corner_tile.cpp); probabilities need 64 bits.
  const double span = magnitude(Value(range.high - range.low));
  if (span < std::ldexp(1.0, 29) && !by_probability) return make_in<std::int32_t>(question, range);
  if (span < std::ldexp(1.0, 61)) return make_in<std::int64_t>(question, range);
  if constexpr (sizeof(Value) >= sizeof(Int128)) {
    if (span < std::ldexp(1.0, 125)) return make_in<Int128>(question, range);
  }
  return make_in<Value>(question, range);
}

CornerCost estimate_corner_cost(std::span<const Topology* const> forests, const MaskSpace& masks) {
  CornerCost cost;
  for (const Axis& axis : forests.front()->axes) {
    cost.n_regions *= axis.n_cells;
    cost.n_axes += axis.n_cells > 1 ? 1 : 0;
  }
  const std::vector<bool> sensitive = sensitive_features(forests.front()->axes.size(), masks);
  const std::vector<CellOrder> orders = choose_cell_orders(forests, sensitive);
  for (const Topology* forest : forests) cost.n_corners += take_census(*forest, orders).n_corners;
  return cost;
}

template std::unique_ptr<CornerSums> make_corner_sums(const CornerQuestion<std::int64_t>&);
template std::unique_ptr<CornerSums> make_corner_sums(const CornerQuestion<Int128>&);
template std::unique_ptr<CornerSums> make_corner_sums(const CornerQuestion<Int2304>&);

}  // namespace xcount

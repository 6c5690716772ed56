#include "xcount/exact/corner_sums.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "xcount/exact/corner_filter.hpp"
#include "xcount/exact/corner_judge.hpp"
#include "xcount/exact/corner_plan.hpp"
#include "xcount/exact/corner_stream.hpp"
#include "xcount/support/held_bytes.hpp"
#include "xcount/support/parallel.hpp"

namespace xcount {

namespace {

// Threads take this many regions of 32 bits at a time, unless the last outer axis ends before: a
// tenth of a second at most, which is how soon a time limit is obeyed.
constexpr std::uint64_t kRegionsAtOnce = std::uint64_t{1} << 24;
// Weights are added up in units of total_weight / 2^kShareBits: as integers, so that their sum does
// not depend on who adds them up.
constexpr int kShareBits = 100;

// Tiles that would fill the memory: two threads have one each, and their counters, lists and
// tables.
constexpr std::size_t kTileParts = 6;

[[noreturn]] void fail(const std::string& what) {
  throw std::invalid_argument("corner sums: " + what);
}

// Counts blocks in integers that hold all sums.
template <class T>
class FullCount {
 public:
  using Sum = T;

  explicit FullCount(CornerPlan<T> plan) : plan_(std::move(plan)) {}

  [[nodiscard]] const CornerPlan<T>& plan() const { return plan_; }
  [[nodiscard]] std::size_t n_changes() const { return plan_.changes.size(); }
  [[nodiscard]] std::size_t list_bytes() const { return plan_.list_bytes(); }
  [[nodiscard]] std::size_t thread_bytes() const { return CornerStream<T>::bytes_for(plan_); }

  // One thread's work: the stream that has counted the block.
  class Worker {
   public:
    explicit Worker(const FullCount& count) : stream_(count.plan_) {}

    const CornerStream<T>& count_block(std::uint64_t block) {
      stream_.count_block(block);
      return stream_;
    }

   private:
    CornerStream<T> stream_;
  };

 private:
  CornerPlan<T> plan_;
};

// Counts blocks with rounded leaves, and in integers that hold all sums where that is too close.
template <class T>
class FilteredCount {
 public:
  using Sum = T;

  FilteredCount(CornerPlan<std::int64_t> rounded, CornerPlan<T> full)
      : rounded_(std::move(rounded)), full_(std::move(full)) {}

  [[nodiscard]] const CornerPlan<std::int64_t>& plan() const { return rounded_; }
  [[nodiscard]] std::size_t n_changes() const { return full_.changes.size(); }
  [[nodiscard]] std::size_t list_bytes() const {
    return rounded_.list_bytes() + full_.list_bytes();
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    return CornerStream<std::int64_t>::bytes_for(rounded_) + CornerStream<T>::bytes_for(full_);
  }

  // What was counted: the first half of the rounded counts, or the full ones.
  struct Outcome {
    std::span<const std::uint64_t> all_counts;
    std::span<const double> all_shares;

    [[nodiscard]] std::span<const std::uint64_t> counts() const { return all_counts; }
    [[nodiscard]] std::span<const double> shares() const { return all_shares; }
  };

  class Worker {
   public:
    explicit Worker(const FilteredCount& count) : count_(count), rounded_(count.rounded_) {}

    Outcome count_block(std::uint64_t block) {
      rounded_.count_block(block);
      const auto counts = rounded_.counts();
      const std::size_t half = counts.size() / 2;
      if (std::equal(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(half),
                     counts.begin() + static_cast<std::ptrdiff_t>(half))) {
        return {counts, rounded_.shares()};
      }
      if (!full_) full_.emplace(count_.full_);
      full_->count_block(block);
      return {full_->counts(), full_->shares()};
    }

   private:
    const FilteredCount& count_;
    CornerStream<std::int64_t> rounded_;
    std::optional<CornerStream<T>> full_;
  };

 private:
  CornerPlan<std::int64_t> rounded_;
  CornerPlan<T> full_;
};

template <class Count>
class CornerSumsBy final : public CornerSums {
 public:
  CornerSumsBy(Count count, std::vector<MaskIndex> mask_at)
      : count_(std::move(count)), mask_at_(std::move(mask_at)) {}

  [[nodiscard]] std::uint64_t n_regions() const override { return layout().n_regions; }
  [[nodiscard]] std::uint64_t n_blocks() const override { return layout().n_blocks; }
  [[nodiscard]] std::size_t n_axes() const override { return layout().n_axes(); }
  [[nodiscard]] std::size_t n_bits() const override { return 8 * sizeof(typename Count::Sum); }
  [[nodiscard]] std::size_t n_masks() const override { return mask_at_.size(); }
  [[nodiscard]] std::size_t n_changes() const override { return count_.n_changes(); }
  [[nodiscard]] std::size_t n_corners() const override {
    std::size_t n = 0;
    for (const auto& corners : count_.plan().corners) n += corners.size();
    return n;
  }
  [[nodiscard]] double share_unit() const override {
    const auto& plan = count_.plan();
    return std::ldexp(plan.total_weight, -kShareBits) * plan.common_weight;
  }
  [[nodiscard]] std::size_t bytes(unsigned n_threads) const override {
    return count_.list_bytes() + count_.plan().windows.bytes() + used_bytes(mask_at_) +
           std::max(1U, n_threads) * count_.thread_bytes();
  }
  [[nodiscard]] CornerCounts count(std::uint64_t first, std::uint64_t end, unsigned n_threads,
                                   Stop& stop) const override;

 private:
  struct Totals {
    std::vector<std::uint64_t> counts;
    std::vector<Int128> shares;
  };

  using Worker = typename Count::Worker;

  [[nodiscard]] const CornerLayout& layout() const { return count_.plan().layout; }
  [[nodiscard]] std::unique_ptr<Worker> hired() const;
  [[nodiscard]] std::uint64_t blocks_at_once(std::uint64_t n_asked, unsigned n_threads) const;
  [[nodiscard]] Totals no_totals() const;
  template <class Outcome>
  void add(const Outcome& outcome, std::uint64_t block, Totals& totals) const;
  [[nodiscard]] CornerCounts by_mask(const Totals& totals) const;

  Count count_;
  std::vector<MaskIndex> mask_at_;
  // Between calls, workers keep their memory and their place in the lists.
  mutable std::mutex idle_mutex_;
  mutable std::vector<std::unique_ptr<Worker>> idle_;
};

template <class Count>
std::unique_ptr<typename Count::Worker> CornerSumsBy<Count>::hired() const {
  {
    const std::scoped_lock lock(idle_mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Worker> worker = std::move(idle_.back());
      idle_.pop_back();
      return worker;
    }
  }
  return std::make_unique<Worker>(count_);
}

// Whole sweeps of the last outer axis, where they are not too long: its slices are then inserted
// once, not once per thread.
template <class Count>
std::uint64_t CornerSumsBy<Count>::blocks_at_once(std::uint64_t n_asked, unsigned n_threads) const {
  const std::uint64_t n_visited = layout().n_regions / layout().n_copies;
  const std::uint64_t size = std::max<std::uint64_t>(1, n_visited / layout().n_blocks);
  const auto n_rows = static_cast<std::uint64_t>(count_.plan().windows.rows_per_mask());
  const std::uint64_t cost = n_bits() / 32 * (1 + n_rows / 4) * (1 + n_changes() / 4);
  const std::uint64_t most = kRegionsAtOnce / cost / size;
  const std::uint64_t fair = n_asked / (4 * std::uint64_t{n_threads});
  const auto sweep =
      layout().outer.empty() ? 1 : static_cast<std::uint64_t>(layout().outer.back().n_cells);
  return std::max<std::uint64_t>(1, std::min({most, fair, sweep}));
}

template <class Count>
typename CornerSumsBy<Count>::Totals CornerSumsBy<Count>::no_totals() const {
  const std::size_t n_results = n_changes() * n_masks();
  const bool is_weighed = !count_.plan().weights.empty();
  return {std::vector<std::uint64_t>(n_results), std::vector<Int128>(is_weighed ? n_results : 0)};
}

template <class Count>
template <class Outcome>
void CornerSumsBy<Count>::add(const Outcome& outcome, std::uint64_t block, Totals& totals) const {
  const auto counts = outcome.counts();
  for (std::size_t i = 0; i < totals.counts.size(); ++i) totals.counts[i] += counts[i];
  const auto& plan = count_.plan();
  if (totals.shares.empty() || plan.total_weight == 0.0) return;
  const double weight = std::ldexp(plan.outer_weight(block), kShareBits) / plan.total_weight;
  const auto shares = outcome.shares();
  for (std::size_t i = 0; i < totals.shares.size(); ++i) {
    totals.shares[i] += static_cast<Int128>(shares[i] * weight);
  }
}

template <class Count>
CornerCounts CornerSumsBy<Count>::count(std::uint64_t first, std::uint64_t end, unsigned n_threads,
                                        Stop& stop) const {
  n_threads = std::max(1U, n_threads);
  end = std::min(end, n_blocks());
  first = std::min(first, end);
  const std::uint64_t step = blocks_at_once(end - first, n_threads);
  Totals totals = no_totals();
  std::atomic<std::uint64_t> next{first};
  std::mutex mutex;
  // What a thread takes, it finishes: the blocks that are done are the first ones.
  const auto work = [&](std::size_t) {
    std::unique_ptr<Worker> worker = hired();
    Totals own = no_totals();
    while (next.load() < end && !stop.is_over()) {
      const std::uint64_t begin = next.fetch_add(step);
      for (std::uint64_t b = begin; b < std::min(end, begin + step); ++b) {
        add(worker->count_block(b), b, own);
      }
    }
    const std::scoped_lock lock(mutex, idle_mutex_);
    idle_.push_back(std::move(worker));
    for (std::size_t i = 0; i < own.counts.size(); ++i) totals.counts[i] += own.counts[i];
    for (std::size_t i = 0; i < own.shares.size(); ++i) totals.shares[i] += own.shares[i];
  };
  const std::uint64_t n_steps = (end - first + step - 1) / step;
  const auto n_workers = static_cast<unsigned>(std::min<std::uint64_t>(n_threads, n_steps));
  parallel(n_workers, n_workers, work, &stop);
  CornerCounts result = by_mask(totals);
  result.n_finished = std::min(next.load(), end) - first;
  return result;
}

// From positions to the numbers of masks; cells of idle features multiply the counts.
template <class Count>
CornerCounts CornerSumsBy<Count>::by_mask(const Totals& totals) const {
  CornerCounts result;
  result.counts.resize(totals.counts.size());
  result.shares.resize(totals.shares.size());
  for (std::size_t i = 0; i < totals.counts.size(); ++i) {
    const std::size_t position = i % n_masks();
    const std::size_t target = i - position + static_cast<std::size_t>(mask_at_[position]);
    result.counts[target] = totals.counts[i] * layout().n_copies;
    if (!totals.shares.empty()) result.shares[target] = totals.shares[i];
  }
  return result;
}

template <class Value>
void check_change(const CornerQuestion<Value>& question, const Change<Value>& change) {
  const bool largest = change.form == ChangeForm::kLargest;
  const bool sure = change.form == ChangeForm::kSureLargest;
  const bool by_probability = change.form == ChangeForm::kProbability;
  if (change.form != question.changes[0].form && question.asks_for_probabilities()) {
    fail("probabilities stand alone");
  }
  const bool several = question.forests.size() > 1;
  if (!by_probability && (largest || sure) != several) {
    fail("the largest needs several outputs, other changes need one");
  }
  if ((largest || sure) && change.direction != Direction::kAny)
    fail("the largest has no direction");
  const bool is_gap = change.form == ChangeForm::kGap || by_probability;
  if ((is_gap || sure) && change.threshold < Value(0)) fail("a gap is negative");
  if (change.form == ChangeForm::kFlip &&
      (change.sure_below > change.threshold || change.sure_above < change.threshold)) {
    fail("a sure decision is on the other side of the cut-off");
  }
  if ((by_probability || sure) && Value(kProbabilityOne) < change.threshold) {
    fail("a probability is above 1");
  }
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
  if (question.asks_for_probabilities()) {
    const bool is_softmax = question.link.softmax;
    if (!question.judge) fail("probabilities need a judge");
    if (question.link.output >= question.forests.size()) fail("the link names no output");
    const bool is_gap = question.changes[0].form == ChangeForm::kProbability;
    if (!is_softmax && is_gap && question.forests.size() > 1) fail("a sigmoid is of one output");
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

template <class Value>
bool asks_gaps_only(std::span<const Change<Value>> changes) {
  return std::all_of(changes.begin(), changes.end(),
                     [](const auto& change) { return change.form == ChangeForm::kGap; });
}

// cell_bytes: of all sums that are held for a cell of a tile, one for each output. A tile may take
// a small part of the memory: it is held once per thread, with what is compared beside it.
template <class T, class Value>
CornerLayout layout_for(const CornerQuestion<Value>& question, const CornerGround& ground,
                        std::size_t cell_bytes) {
  const std::size_t n_outputs = ground.forests.size();
  const std::size_t max_cells = question.max_bytes / kTileParts / (cell_bytes * n_outputs);
  return {ground.orders, *question.masks,       ground.is_idle,       n_outputs,
          sizeof(T),     LaneTraits<T>::kLanes, question.block_bytes, max_cells};
}

template <class Count>
std::unique_ptr<CornerSums> finished(Count count, const MaskSpace& masks,
                                     const CornerGround& ground) {
  return std::make_unique<CornerSumsBy<Count>>(std::move(count),
                                               masks_by_position(masks, ground.orders));
}

template <class T, class Value>
std::unique_ptr<CornerSums> make_full(const CornerQuestion<Value>& question,
                                      const CornerGround& ground, const SumRange<Value>& range,
                                      Stop& stop) {
  const CornerLayout layout = layout_for<T>(question, ground, sizeof(T));
  CornerPlan<T> plan =
      make_plan(question, ground, layout, exact_integers<T>(question, range), stop);
  if constexpr (!std::is_same_v<T, std::int32_t>) {
    if (question.asks_for_probabilities()) set_judge(question, ground, range, plan);
  }
  return finished(FullCount<T>(std::move(plan)), *question.masks, ground);
}

template <class T, class Value>
std::unique_ptr<CornerSums> make_wide(const CornerQuestion<Value>& question,
                                      const CornerGround& ground, const SumRange<Value>& range,
                                      Stop& stop) {
  if (!question.may_round || !can_round(question, range)) {
    return make_full<T>(question, ground, range, stop);
  }
  const CornerLayout layout = layout_for<std::int64_t>(question, ground, 8 + sizeof(T));
  CornerPlan<std::int64_t> rounded =
      make_plan(question, ground, layout, rounded_integers(question, range), stop);
  CornerQuestion<Value> rest = question;
  rest.max_bytes -= std::min(rest.max_bytes, rounded.list_bytes());
  CornerPlan<T> full =
      make_plan(rest, ground, layout.with_one_lane(), exact_integers<T>(question, range), stop);
  return finished(FilteredCount<T>(std::move(rounded), std::move(full)), *question.masks, ground);
}

}  // namespace

template <class Value>
std::unique_ptr<CornerSums> make_corner_sums(const CornerQuestion<Value>& question, Stop& stop) {
  check(question);
  const std::vector<const Topology*> forests(question.forests.begin(), question.forests.end());
  const CornerGround ground(forests, *question.masks, asks_gaps_only(question.changes));
  stop.check();
  const SumRange<Value> range = find_range(question, ground);
  // Edges reach from -(span + 1) to 2 * span + 1 (corner_tile.cpp); probabilities need 64 bits.
  const double span = ValueTraits<Value>::to_number(range.span());
  const bool fits_in_32 = span < std::ldexp(1.0, 29) && !question.asks_for_probabilities();
  if (fits_in_32) return make_full<std::int32_t>(question, ground, range, stop);
  if (span < std::ldexp(1.0, 61)) return make_full<std::int64_t>(question, ground, range, stop);
  if constexpr (sizeof(Value) >= sizeof(Int128)) {
    if (span < std::ldexp(1.0, 125)) return make_wide<Int128>(question, ground, range, stop);
    return make_wide<Value>(question, ground, range, stop);
  } else {
    return make_full<Value>(question, ground, range, stop);
  }
}

template std::unique_ptr<CornerSums> make_corner_sums(const CornerQuestion<std::int64_t>&, Stop&);
template std::unique_ptr<CornerSums> make_corner_sums(const CornerQuestion<Int128>&, Stop&);
template std::unique_ptr<CornerSums> make_corner_sums(const CornerQuestion<Int2304>&, Stop&);

}  // namespace xcount

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
#include "xcount/support/assert.hpp"
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

// What was counted of a block: see CornerStream.
struct BlockOutcome {
  std::span<const std::uint64_t> counts;
  std::span<const double> shares;
};

template <class T>
BlockOutcome count_with(CornerStream<T>& stream, std::uint64_t block) {
  stream.count_block(block);
  return {stream.counts(), stream.shares()};
}

// One thread's work.
class BlockWorker {
 public:
  virtual ~BlockWorker() = default;
  virtual BlockOutcome count_block(std::uint64_t block) = 0;
};

// How blocks are counted: what all threads share.
class BlockCount {
 public:
  virtual ~BlockCount() = default;
  [[nodiscard]] virtual const CornerFrame& frame() const = 0;
  [[nodiscard]] virtual std::size_t n_bits() const = 0;
  [[nodiscard]] virtual std::size_t n_changes() const = 0;
  [[nodiscard]] virtual std::size_t n_corners() const = 0;
  [[nodiscard]] virtual std::size_t list_bytes() const = 0;
  [[nodiscard]] virtual std::size_t thread_bytes() const = 0;
  [[nodiscard]] virtual std::unique_ptr<BlockWorker> hire() const = 0;
};

// Counts blocks in integers that hold all sums.
template <class T>
class FullCount final : public BlockCount {
 public:
  explicit FullCount(CornerPlan<T> plan) : plan_(std::move(plan)) {}

  [[nodiscard]] const CornerFrame& frame() const override { return plan_; }
  [[nodiscard]] std::size_t n_bits() const override { return 8 * sizeof(T); }
  [[nodiscard]] std::size_t n_changes() const override { return plan_.changes.size(); }
  [[nodiscard]] std::size_t n_corners() const override { return plan_.n_corners(); }
  [[nodiscard]] std::size_t list_bytes() const override { return plan_.list_bytes(); }
  [[nodiscard]] std::size_t thread_bytes() const override {
    return CornerStream<T>::bytes_for(plan_);
  }
  [[nodiscard]] std::unique_ptr<BlockWorker> hire() const override {
    return std::make_unique<Worker>(plan_);
  }

 private:
  class Worker final : public BlockWorker {
   public:
    explicit Worker(const CornerPlan<T>& plan) : stream_(plan) {}

    BlockOutcome count_block(std::uint64_t block) override { return count_with(stream_, block); }

   private:
    CornerStream<T> stream_;
  };

  CornerPlan<T> plan_;
};

// Counts blocks with rounded leaves, and in integers that hold all sums if that is too close.
template <class T>
class FilteredCount final : public BlockCount {
 public:
  FilteredCount(CornerPlan<std::int64_t> rounded, CornerPlan<T> full)
      : rounded_(std::move(rounded)), full_(std::move(full)) {
    XCOUNT_ASSERT(rounded_.changes.size() == 2 * full_.changes.size());
    XCOUNT_ASSERT(rounded_.layout.n_blocks == full_.layout.n_blocks);
  }

  [[nodiscard]] const CornerFrame& frame() const override { return rounded_; }
  [[nodiscard]] std::size_t n_bits() const override { return 8 * sizeof(T); }
  [[nodiscard]] std::size_t n_changes() const override { return full_.changes.size(); }
  [[nodiscard]] std::size_t n_corners() const override { return rounded_.n_corners(); }
  [[nodiscard]] std::size_t list_bytes() const override {
    return rounded_.list_bytes() + full_.list_bytes();
  }
  [[nodiscard]] std::size_t thread_bytes() const override {
    return CornerStream<std::int64_t>::bytes_for(rounded_) + CornerStream<T>::bytes_for(full_);
  }
  [[nodiscard]] std::unique_ptr<BlockWorker> hire() const override {
    return std::make_unique<Worker>(rounded_, full_);
  }

 private:
  class Worker final : public BlockWorker {
   public:
    Worker(const CornerPlan<std::int64_t>& rounded, const CornerPlan<T>& full)
        : rounded_(rounded), plan_(full) {}

    // If both halves of the rounded counts agree, they are what was counted.
    BlockOutcome count_block(std::uint64_t block) override {
      const BlockOutcome rounded = count_with(rounded_, block);
      const std::size_t half = rounded.counts.size() / 2;
      const auto surely = rounded.counts.first(half), possibly = rounded.counts.last(half);
      if (std::equal(surely.begin(), surely.end(), possibly.begin())) return rounded;
      if (!full_) full_.emplace(plan_);
      return count_with(*full_, block);
    }

   private:
    CornerStream<std::int64_t> rounded_;
    const CornerPlan<T>& plan_;
    std::optional<CornerStream<T>> full_;
  };

  CornerPlan<std::int64_t> rounded_;
  CornerPlan<T> full_;
};

class CornerSumsBy final : public CornerSums {
 public:
  CornerSumsBy(std::unique_ptr<const BlockCount> count, std::vector<MaskIndex> mask_at)
      : count_(std::move(count)), frame_(count_->frame()), mask_at_(std::move(mask_at)) {
    XCOUNT_ASSERT(mask_at_.size() == layout().n_masks);
  }

  [[nodiscard]] std::uint64_t n_regions() const override { return layout().n_regions; }
  [[nodiscard]] std::uint64_t n_blocks() const override { return layout().n_blocks; }
  [[nodiscard]] std::size_t n_axes() const override { return layout().n_axes(); }
  [[nodiscard]] std::size_t n_bits() const override { return count_->n_bits(); }
  [[nodiscard]] std::size_t n_masks() const override { return mask_at_.size(); }
  [[nodiscard]] std::size_t n_changes() const override { return count_->n_changes(); }
  [[nodiscard]] std::size_t n_corners() const override { return count_->n_corners(); }
  [[nodiscard]] double share_unit() const override {
    return std::ldexp(frame_.total_weight, -kShareBits) * frame_.common_weight;
  }
  [[nodiscard]] std::size_t bytes(unsigned n_threads) const override {
    return count_->list_bytes() + frame_.windows.bytes() + used_bytes(mask_at_) +
           std::max(1U, n_threads) * count_->thread_bytes();
  }
  [[nodiscard]] CornerCounts count(std::uint64_t first, std::uint64_t end, unsigned n_threads,
                                   Stop& stop) const override;

 private:
  struct Totals {
    std::vector<std::uint64_t> counts;
    std::vector<Int128> shares;
  };

  [[nodiscard]] const CornerLayout& layout() const { return frame_.layout; }
  [[nodiscard]] std::unique_ptr<BlockWorker> hired() const;
  [[nodiscard]] std::uint64_t blocks_at_once(std::uint64_t n_asked, unsigned n_threads) const;
  [[nodiscard]] Totals no_totals() const;
  void add(const BlockOutcome& outcome, std::uint64_t block, Totals& totals) const;
  [[nodiscard]] CornerCounts by_mask(const Totals& totals) const;

  std::unique_ptr<const BlockCount> count_;
  const CornerFrame& frame_;
  std::vector<MaskIndex> mask_at_;
  // Between calls, workers keep their memory and their place in the lists.
  mutable std::mutex idle_mutex_;
  mutable std::vector<std::unique_ptr<BlockWorker>> idle_;
};

std::unique_ptr<BlockWorker> CornerSumsBy::hired() const {
  {
    const std::scoped_lock lock(idle_mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<BlockWorker> worker = std::move(idle_.back());
      idle_.pop_back();
      return worker;
    }
  }
  return count_->hire();
}

// Whole sweeps of the last outer axis, if they are not too long: its slices are then inserted
// once, not once per thread.
std::uint64_t CornerSumsBy::blocks_at_once(std::uint64_t n_asked, unsigned n_threads) const {
  const std::uint64_t n_visited = layout().n_regions / layout().n_copies;
  const std::uint64_t size = std::max<std::uint64_t>(1, n_visited / layout().n_blocks);
  const auto n_rows = static_cast<std::uint64_t>(frame_.windows.rows_per_mask());
  const std::uint64_t cost = n_bits() / 32 * (1 + n_rows / 4) * (1 + n_changes() / 4);
  const std::uint64_t most = kRegionsAtOnce / cost / size;
  const std::uint64_t fair = n_asked / (4 * std::uint64_t{n_threads});
  const auto sweep =
      layout().outer.empty() ? 1 : static_cast<std::uint64_t>(layout().outer.back().n_cells);
  return std::max<std::uint64_t>(1, std::min({most, fair, sweep}));
}

CornerSumsBy::Totals CornerSumsBy::no_totals() const {
  const std::size_t n_results = n_changes() * n_masks();
  const bool is_weighed = !frame_.weights.empty();
  return {std::vector<std::uint64_t>(n_results), std::vector<Int128>(is_weighed ? n_results : 0)};
}

void CornerSumsBy::add(const BlockOutcome& outcome, std::uint64_t block, Totals& totals) const {
  XCOUNT_ASSERT(outcome.counts.size() >= totals.counts.size());
  for (std::size_t i = 0; i < totals.counts.size(); ++i) totals.counts[i] += outcome.counts[i];
  if (totals.shares.empty() || frame_.total_weight == 0.0) return;
  const double weight = std::ldexp(frame_.outer_weight(block), kShareBits) / frame_.total_weight;
  for (std::size_t i = 0; i < totals.shares.size(); ++i) {
    totals.shares[i] += static_cast<Int128>(outcome.shares[i] * weight);
  }
}

CornerCounts CornerSumsBy::count(std::uint64_t first, std::uint64_t end, unsigned n_threads,
                                 Stop& stop) const {
  n_threads = std::max(1U, n_threads);
  end = std::min(end, n_blocks());
  first = std::min(first, end);
  const std::uint64_t step = blocks_at_once(end - first, n_threads);
  Totals totals = no_totals();
  std::atomic<std::uint64_t> next{first};
  std::mutex mutex;
  // A thread finishes the blocks that it takes, so the finished blocks are the first ones.
  const auto work = [&](std::size_t) {
    std::unique_ptr<BlockWorker> worker = hired();
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
CornerCounts CornerSumsBy::by_mask(const Totals& totals) const {
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

std::unique_ptr<CornerSums> finished(std::unique_ptr<const BlockCount> count,
                                     const MaskSpace& masks, const CornerGround& ground) {
  return std::make_unique<CornerSumsBy>(std::move(count), masks_by_position(masks, ground.orders));
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
  return finished(std::make_unique<FullCount<T>>(std::move(plan)), *question.masks, ground);
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
  return finished(std::make_unique<FilteredCount<T>>(std::move(rounded), std::move(full)),
                  *question.masks, ground);
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

#include "xcount/sampling/cover.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>

#include "xcount/support/assert.hpp"
#include "xcount/support/parallel.hpp"

namespace xcount {

namespace {

constexpr std::size_t kBatch = Sampler<std::int64_t>::kBatch;
constexpr std::size_t kMaxDeciders = 16;  // beyond, they take too much memory
constexpr std::size_t kMaxCaches = 16;    // beyond, what only makes refining quicker is given back
constexpr double kSecondsPerTree = 2e-9;  // of a decider, of which a sample meets all trees
constexpr double kSecondsPerResidual = 300e-9;
constexpr double kSecondsPerDraw = 2e-7;

}  // namespace

template <class Value>
Cover<Value>::Cover(const Forest<Value>& forest, const MaskSpace& masks, const Value& threshold,
                    const std::vector<CoverTask>& tasks, const Check& check) {
  DifferenceBuilder<Value> builder(forest, masks);
  for (const CoverTask& task : tasks) {
    covers_.push_back(std::make_unique<TaskCover<Value>>(forest, builder, threshold, task, check));
    multiplicity_.push_back(task.multiplicity);
  }
  if (tasks.size() > kMaxDeciders) return;
  for (const CoverTask& task : tasks) {
    const Asked asked = task.combine == Combine::kAny ? Asked::kAnyPair : Asked::kAllPairs;
    const MaskQuestion question{{}, task.pairs, false};
    deciders_.emplace_back(forest, masks, question, Gap<Value>(threshold), asked);
  }
}

template <class Value>
std::uint64_t Cover<Value>::n_open() const {
  std::uint64_t total = 0;
  for (const auto& cover : covers_) total += cover->n_open();
  return total;
}

template <class Value>
std::uint64_t Cover<Value>::work() const {
  std::uint64_t total = 0;
  for (const auto& cover : covers_) total += cover->work();
  return total;
}

template <class Value>
std::size_t Cover<Value>::bytes() const {
  std::size_t total = 0;
  for (const auto& cover : covers_) total += cover->bytes();
  return total + held_bytes(frozen_) + picker_.bytes();
}

template <class Value>
bool Cover<Value>::is_full() const {
  return std::ranges::all_of(
      covers_, [](const auto& cover) { return cover->is_full() || cover->n_open() == 0; });
}

template <class Value>
Share Cover<Value>::weight(std::size_t task) const {
  XCOUNT_ASSERT(task < covers_.size() && multiplicity_.size() == covers_.size());
  return static_cast<Share>(multiplicity_[task]) * covers_[task]->open_share();
}

template <class Value>
Share Cover<Value>::weight(const Frozen& frozen) const {
  return static_cast<Share>(multiplicity_[frozen.task]) *
         covers_[frozen.task]->state(frozen.state).volume;
}

template <class Value>
void Cover<Value>::refine(std::uint64_t work, std::size_t max_bytes, unsigned n_threads,
                          std::uint64_t max_paths) {
  release(frozen_);
  picker_.release();
  std::vector<Share> weights;
  Share total = 0;
  for (std::size_t i = 0; i < covers_.size(); ++i) total += weights.emplace_back(weight(i));
  if (!(total > 0)) return;
  const std::size_t held = bytes();
  const auto free = static_cast<Share>(max_bytes - std::min(max_bytes, held));
  parallel(covers_.size(), n_threads, [&](std::size_t i) {
    const Share part = weights[i] / total;
    const auto quota = static_cast<std::uint64_t>(std::ceil(part * static_cast<Share>(work)));
    const auto room = static_cast<std::size_t>(part * free);
    covers_[i]->refine(quota, covers_[i]->bytes() + room, max_paths);
    if (covers_.size() > kMaxCaches) covers_[i]->release_caches();
  });
}

template <class Value>
double Cover<Value>::mean_residuals() const {
  Share sum = 0;
  Share total = 0;
  for (std::size_t i = 0; i < covers_.size(); ++i) {
    for (std::size_t s = 0; s < covers_[i]->n_open(); ++s) {
      const OpenState<Value> state = covers_[i]->state(s);
      const Share weight = state.volume * static_cast<Share>(multiplicity_[i]);
      sum += weight * static_cast<Share>(state.ids.size() - state.offsets.size());
      total += weight;
    }
  }
  return total > 0 ? static_cast<double>(sum / total) : 0.0;
}

template <class Value>
double Cover<Value>::seconds_per_sample() const {
  if (deciders_.empty()) return kSecondsPerDraw + kSecondsPerResidual * mean_residuals();
  Share sum = 0;
  Share total = 0;
  for (std::size_t i = 0; i < covers_.size(); ++i) {
    sum += weight(i) * static_cast<Share>(deciders_[i].n_trees());
    total += weight(i);
  }
  return kSecondsPerDraw + (total > 0 ? kSecondsPerTree * static_cast<double>(sum / total) : 0.0);
}

template <class Value>
void Cover<Value>::freeze() {
  frozen_.clear();
  Share total = 0;
  for (std::uint32_t task = 0; task < covers_.size(); ++task) {
    for (std::uint32_t state = 0; state < covers_[task]->n_open(); ++state) {
      frozen_.push_back({task, state});
      total += weight(frozen_.back());
    }
  }
  picker_.start(frozen_.size(), total);
  for (const Frozen& state : frozen_) picker_.add(weight(state));
}

template <class Value>
Outcomes Cover<Value>::draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
                            std::uint64_t n, unsigned n_threads, Stop& stop) const {
  if (frozen_.empty()) throw std::invalid_argument("cover: nothing to draw from");
  Outcomes outcomes{std::vector<std::uint64_t>(2), std::vector<std::uint8_t>(n * kBatch)};
  std::atomic<std::uint64_t> next{0};
  const auto work = [&](std::size_t) {
    Thread thread = make_thread();
    for (std::uint64_t batch = next++; batch < n && !stop.is_over(); batch = next++) {
      Random random(seed, stream, first + batch);
      draw_batch(random, thread, std::span(outcomes.hits).subspan(batch * kBatch, kBatch));
    }
    for (std::size_t task = 0; task < thread.blocks.size(); ++task) {
      decide(task, thread.blocks[task]);
    }
  };
  parallel(n_threads, n_threads, work, &stop);
  if (stop.was_over()) return {};
  for (const std::uint8_t hit : outcomes.hits) ++outcomes.histogram[hit];
  return outcomes;
}

template <class Value>
typename Cover<Value>::Thread Cover<Value>::make_thread() const {
  Thread thread;
  if (deciders_.empty()) thread.draws.resize(covers_.size());
  for (const auto& decider : deciders_) thread.blocks.push_back({decider.workspace(), {}});
  return thread;
}

template <class Value>
void Cover<Value>::draw_batch(Random& random, Thread& thread, std::span<std::uint8_t> hits) const {
  const auto weigh = [this](std::size_t state) { return weight(frozen_[state]); };
  for (std::uint8_t& hit : hits) {
    const Frozen& drawn = frozen_[picker_.pick(random, weigh)];
    if (deciders_.empty()) {
      hit = covers_[drawn.task]->sample(drawn.state, random, thread.draws[drawn.task]) ? 1 : 0;
    } else {
      draw_cells(drawn, random, &hit, thread);
    }
  }
}

// Draws the cells of a sample within the box of its state; decides its block if that is full.
template <class Value>
void Cover<Value>::draw_cells(const Frozen& drawn, Random& random, std::uint8_t* hit,
                              Thread& thread) const {
  const RowDecider<Value>& decider = deciders_[drawn.task];
  Block& block = thread.blocks[drawn.task];
  const std::size_t sample = block.hits.size();
  const std::span<const Stretch> box = covers_[drawn.task]->state(drawn.state).box;
  for (const auto& feature : decider.drawn()) {
    Cell begin = 0;
    Cell end = feature.n_cells;
    for (const Stretch& left : box) {
      if (covers_[drawn.task]->feature(left.feature) != feature.feature) continue;
      XCOUNT_ASSERT(left.begin < left.end);
      begin = left.begin;
      end = left.end;
    }
    const Cell cell =
        begin + static_cast<Cell>(random.below(static_cast<std::uint32_t>(end - begin)));
    decider.set(feature, sample, std::span(&cell, 1), block.work);
  }
  block.hits.push_back(hit);
  if (block.hits.size() == kBlock) decide(drawn.task, block);
}

template <class Value>
void Cover<Value>::decide(std::size_t task, Block& block) const {
  for (std::uint8_t* hit : block.hits) *hit = 0;
  const auto visit = [&](std::uint64_t first, std::size_t n, std::span<const std::uint8_t> flags,
                         std::size_t) {
    for (std::size_t i = 0; i < n; ++i) *block.hits[first + i] = flags[i];
  };
  deciders_[task].decide(0, block.hits.size(), block.work, visit);
  deciders_[task].finish(block.work, visit);
  block.hits.clear();
}

template class Cover<std::int64_t>;
template class Cover<Int128>;
template class Cover<Int2304>;

}  // namespace xcount

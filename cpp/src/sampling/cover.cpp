#include "xcount/sampling/cover.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>

#include "xcount/support/parallel.hpp"

namespace xcount {

namespace {

constexpr std::size_t kBatch = Sampler<std::int64_t>::kBatch;
constexpr std::size_t kMaxDeciders = 16;   // beyond, too few samples of a batch share a task
constexpr double kSecondsPerTree = 15e-9;  // of a decider, of which a sample walks all trees
constexpr double kSecondsPerResidual = 300e-9;
constexpr double kSecondsPerDraw = 7e-7;
constexpr std::uint64_t kWeightUnit = std::uint64_t{1} << 62;

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
  for (const CoverTask& task : tasks) deciders_.emplace_back(forest, masks, threshold, task.pairs);
}

template <class Value>
Volume Cover<Value>::solved() const {
  Volume total = 0;
  for (std::size_t i = 0; i < covers_.size(); ++i) total += multiplicity_[i] * covers_[i]->solved();
  return total;
}

template <class Value>
Volume Cover<Value>::open() const {
  Volume total = 0;
  for (std::size_t i = 0; i < covers_.size(); ++i) {
    for (const auto& entry : covers_[i]->frontier()) total += multiplicity_[i] * entry.second;
  }
  return total;
}

template <class Value>
std::uint64_t Cover<Value>::n_expanded() const {
  std::uint64_t total = 0;
  for (const auto& cover : covers_) total += cover->n_expanded();
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
  return total;
}

template <class Value>
void Cover<Value>::refine(std::uint64_t work, double max_seconds, unsigned n_threads) {
  const auto deadline = Stop::after(max_seconds);
  Volume total = 0;
  for (std::size_t i = 0; i < covers_.size(); ++i) total += multiplicity_[i] * covers_[i]->open();
  if (!(total > 0)) return;
  parallel(covers_.size(), n_threads, [&](std::size_t i) {
    const Volume part = multiplicity_[i] * covers_[i]->open() / total;
    const auto quota = static_cast<std::uint64_t>(std::ceil(part * static_cast<Volume>(work)));
    covers_[i]->refine(quota, deadline);
  });
}

template <class Value>
double Cover<Value>::mean_residuals() const {
  Volume sum = 0;
  Volume total = 0;
  for (std::size_t i = 0; i < covers_.size(); ++i) {
    for (const auto& [state, volume] : covers_[i]->frontier()) {
      sum += volume * multiplicity_[i] * static_cast<Volume>(covers_[i]->n_residuals(state));
      total += volume * multiplicity_[i];
    }
  }
  return total > 0 ? static_cast<double>(sum / total) : 0.0;
}

template <class Value>
double Cover<Value>::seconds_per_sample() const {
  if (deciders_.empty()) return kSecondsPerDraw + kSecondsPerResidual * mean_residuals();
  Volume sum = 0;
  Volume total = 0;
  for (std::size_t i = 0; i < covers_.size(); ++i) {
    const Volume weight = multiplicity_[i] * covers_[i]->open();
    sum += weight * static_cast<Volume>(deciders_[i].n_trees());
    total += weight;
  }
  return kSecondsPerDraw + (total > 0 ? kSecondsPerTree * static_cast<double>(sum / total) : 0.0);
}

template <class Value>
void Cover<Value>::freeze() {
  frozen_.clear();
  cumulative_.clear();
  const Volume total = open();
  Volume before = 0;
  for (std::uint32_t i = 0; i < covers_.size(); ++i) {
    for (const auto& [state, volume] : covers_[i]->frontier()) {
      before += multiplicity_[i] * volume;
      frozen_.push_back({i, state});
      const Volume part = std::min<Volume>(1, before / total);
      cumulative_.push_back(static_cast<std::uint64_t>(std::ldexp(part, 62)));
    }
  }
  if (!cumulative_.empty()) cumulative_.back() = kWeightUnit;
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
  };
  parallel(n_threads, n_threads, work, &stop);
  if (stop.was_over()) return {};
  for (const std::uint8_t hit : outcomes.hits) ++outcomes.histogram[hit];
  return outcomes;
}

template <class Value>
typename Cover<Value>::Thread Cover<Value>::make_thread() const {
  Thread thread;
  thread.drawn.resize(kBatch);
  if (deciders_.empty()) thread.draws.resize(covers_.size());
  for (const auto& decider : deciders_) thread.works.push_back(decider.workspace(kBatch));
  return thread;
}

template <class Value>
void Cover<Value>::draw_batch(Random& random, Thread& thread, std::span<std::uint8_t> hits) const {
  for (std::size_t i = 0; i < hits.size(); ++i) {
    const std::uint64_t target = random.next() >> 2;
    const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), target);
    const Frozen& drawn = frozen_[static_cast<std::size_t>(found - cumulative_.begin())];
    thread.drawn[i] = drawn;
    if (!deciders_.empty()) continue;
    hits[i] = covers_[drawn.task]->sample(drawn.state, random, thread.draws[drawn.task]) ? 1 : 0;
  }
  for (std::uint32_t task = 0; task < deciders_.size(); ++task) {
    draw_group(task, random, thread, hits);
  }
}

// Decides the samples of one task together.
template <class Value>
void Cover<Value>::draw_group(std::uint32_t task, Random& random, Thread& thread,
                              std::span<std::uint8_t> hits) const {
  thread.group.clear();
  for (std::size_t i = 0; i < hits.size(); ++i) {
    if (thread.drawn[i].task == task) thread.group.push_back(i);
  }
  if (thread.group.empty()) return;
  const CoverDecider<Value>& decider = deciders_[task];
  auto& work = thread.works[task];
  decider.draw(random, kBatch, thread.group.size(), work);
  for (std::size_t g = 0; g < thread.group.size(); ++g) {
    hits[thread.group[g]] = 0;
    covers_[task]->for_each_fixed(
        thread.drawn[thread.group[g]].state,
        [&](Feature feature, Cell cell) { decider.fix(feature, cell, kBatch, g, work); });
  }
  decider.decide(kBatch, thread.group.size(), work,
                 [&](std::size_t g) { hits[thread.group[g]] = 1; });
}

template class Cover<std::int64_t>;
template class Cover<Int128>;
template class Cover<Int2304>;

}  // namespace xcount

#include "xcount/sampling/cover.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>

#include "xcount/support/parallel.hpp"

namespace xcount {

namespace {

constexpr std::size_t kBatch = Sampler<std::int64_t>::kBatch;
constexpr std::uint64_t kWorkPerNode = 8;  // of a new residual, in residuals looked at
constexpr std::size_t kMaxDeciders = 16;   // beyond, too few samples of a batch share a task
constexpr double kSecondsPerTree = 15e-9;  // of a decider, of which a sample walks all trees
constexpr double kSecondsPerResidual = 300e-9;
constexpr double kSecondsPerDraw = 7e-7;
constexpr std::size_t kMaxDifferenceBytes = std::size_t{512} << 20;  // of a task
constexpr std::uint64_t kWeightUnit = std::uint64_t{1} << 62;

}  // namespace

template <class Value>
TaskCover<Value>::TaskCover(const Forest<Value>& forest, DifferenceBuilder<Value>& builder,
                            const Value& threshold, const CoverTask& task, const Check& check)
    : store_(forest), threshold_(threshold) {
  if (builder.is_too_deep()) throw std::length_error("a tree is too deep to make differences of");
  const auto check_all = [&] {
    check();
    if (store_.bytes() > kMaxDifferenceBytes) {
      throw std::length_error("the differences of a pair of masks are too large");
    }
  };
  for (const auto& [a, b] : task.pairs) {
    std::vector<ResidualId> residuals;
    Value offset{};
    builder.build(a, b, store_, residuals, offset, check_all);
    Value least = offset;
    Value most = offset;
    for (const ResidualId id : residuals) {
      least += store_[id].min;
      most += store_[id].max;
    }
    const Verdict verdict = decide(least, most);
    if (verdict == Verdict::kNone) continue;
    if (verdict == Verdict::kAll) {
      solved_ = 1;
      return;
    }
    std::sort(residuals.begin(), residuals.end());
    key_ids_.insert(key_ids_.end(), residuals.begin(), residuals.end());
    key_ids_.push_back(kSeparator);
    key_offsets_.push_back(offset);
  }
  scores_.assign(store_.features().size(), 0.0);
  if (!key_offsets_.empty()) add_state(1);
}

template <class Value>
std::size_t TaskCover<Value>::bytes() const {
  return store_.bytes() + table_.bytes() + states_.capacity() * sizeof(State) +
         ids_.capacity() * sizeof(ResidualId) + offsets_.capacity() * sizeof(Value) +
         heap_.capacity() * sizeof(heap_[0]);
}

template <class Value>
typename TaskCover<Value>::Verdict TaskCover<Value>::decide(const Value& least,
                                                            const Value& most) const {
  if (least > threshold_ || -most > threshold_) return Verdict::kAll;
  return -least <= threshold_ && most <= threshold_ ? Verdict::kNone : Verdict::kOpen;
}

template <class Value>
void TaskCover<Value>::refine(std::uint64_t max_work, Clock::time_point deadline) {
  const std::uint64_t end = work_ + max_work;
  for (std::uint64_t n = 0; work_ < end && !heap_.empty();) {
    std::pop_heap(heap_.begin(), heap_.end());
    const auto [volume, state] = heap_.back();
    heap_.pop_back();
    if (states_[state].volume != volume) continue;  // expanded, or entered again with more volume
    expand(state);
    if ((++n & 15) == 0 && Clock::now() >= deadline) return;
  }
}

template <class Value>
void TaskCover<Value>::expand(std::uint32_t index) {
  ++n_expanded_;
  const std::size_t nodes_before = store_.size();
  const State state = states_[index];
  states_[index].volume = 0;
  open_ -= state.volume;
  const LocalFeature feature = choose_feature(state);
  parent_ = index;
  feature_ = feature;
  const Cell n_cells = store_.forest().axis(store_.features()[feature]).n_cells;
  split(state, feature);
  for (Cell cell = 0; cell < n_cells;) {
    const Verdict verdict = decide_child();
    work_ += moving_.size() + n_terms_;
    const std::vector<Moving> before = moving_;
    const Cell next = advance(n_cells);
    const Volume volume =
        state.volume * static_cast<Volume>(next - cell) / static_cast<Volume>(n_cells);
    if (verdict == Verdict::kAll) {
      solved_ += volume;
    } else if (verdict == Verdict::kOpen) {
      const std::vector<Moving> after = moving_;
      moving_ = before;
      cell_ = cell;
      add_child(volume);
      moving_ = after;
    }
    cell = next;
  }
  work_ += state.n_ids + kWorkPerNode * (store_.size() - nodes_before);
  if (heap_.empty()) open_ = 0;
}

// The feature at the roots that carries the most range, as in exact elimination.
template <class Value>
LocalFeature TaskCover<Value>::choose_feature(const State& state) {
  std::fill(scores_.begin(), scores_.end(), 0.0);
  scores_.resize(store_.features().size(), 0.0);
  for (std::uint32_t i = 0; i < state.n_ids; ++i) {
    const ResidualId id = ids_[state.ids + i];
    if (id == kSeparator) continue;
    const auto& node = store_[id];
    scores_[node.feature] += ValueTraits<Value>::to_double(node.max - node.min) + 1e-300;
  }
  return static_cast<LocalFeature>(std::max_element(scores_.begin(), scores_.end()) -
                                   scores_.begin());
}

template <class Value>
void TaskCover<Value>::split(const State& state, LocalFeature feature) {
  runs_.clear();
  moving_.clear();
  n_terms_ = state.n_terms;
  if (terms_.size() < n_terms_) terms_.resize(n_terms_);
  std::uint64_t at = state.ids;
  for (std::size_t t = 0; t < n_terms_; ++t) {
    Term& term = terms_[t];
    term.fixed.clear();
    term.fixed_min = term.fixed_max = offsets_[state.offsets + t];
    term.offset = offsets_[state.offsets + t];
    for (; ids_[at] != kSeparator; ++at) {
      const ResidualId id = ids_[at];
      if (!store_.mentions(id, feature)) {
        term.fixed.push_back(id);
        term.fixed_min += store_[id].min;
        term.fixed_max += store_[id].max;
        continue;
      }
      const std::span<const Run> runs = store_.cofactors(id, feature);
      moving_.push_back({t, runs_.size(), runs_.size() + runs.size()});
      runs_.insert(runs_.end(), runs.begin(), runs.end());
    }
    ++at;
  }
}

// Bounds of every constraint in the current segment.
template <class Value>
typename TaskCover<Value>::Verdict TaskCover<Value>::decide_child() {
  for (std::size_t t = 0; t < n_terms_; ++t) {
    terms_[t].min = terms_[t].fixed_min;
    terms_[t].max = terms_[t].fixed_max;
  }
  for (const Moving& moving : moving_) {
    const auto& node = store_[runs_[moving.at].node];
    terms_[moving.term].min += node.min;
    terms_[moving.term].max += node.max;
  }
  open_terms_.assign(n_terms_, 0);
  bool any = false;
  for (std::size_t t = 0; t < n_terms_; ++t) {
    const Verdict verdict = decide(terms_[t].min, terms_[t].max);
    if (verdict == Verdict::kAll) return verdict;
    open_terms_[t] = verdict == Verdict::kOpen ? 1 : 0;
    any = any || verdict == Verdict::kOpen;
  }
  return any ? Verdict::kOpen : Verdict::kNone;
}

template <class Value>
Cell TaskCover<Value>::advance(Cell n_cells) {
  Cell next = n_cells;
  for (const Moving& moving : moving_) {
    if (moving.at + 1 < moving.end) next = std::min(next, runs_[moving.at + 1].start);
  }
  for (Moving& moving : moving_) {
    if (moving.at + 1 < moving.end && runs_[moving.at + 1].start == next) ++moving.at;
  }
  return next;
}

template <class Value>
void TaskCover<Value>::add_child(Volume volume) {
  key_ids_.clear();
  key_offsets_.clear();
  auto moving = moving_.begin();
  for (std::size_t t = 0; t < n_terms_; ++t) {
    const Term& term = terms_[t];
    Value offset = term.offset;
    moved_.clear();
    for (; moving != moving_.end() && moving->term == t; ++moving) {
      const ResidualId id = runs_[moving->at].node;
      if (store_.is_leaf(id)) {
        offset += store_[id].min;
      } else {
        moved_.push_back(id);
      }
    }
    if (open_terms_[t] == 0) continue;
    std::sort(moved_.begin(), moved_.end());
    std::merge(term.fixed.begin(), term.fixed.end(), moved_.begin(), moved_.end(),
               std::back_inserter(key_ids_));
    key_ids_.push_back(kSeparator);
    key_offsets_.push_back(offset);
  }
  work_ += key_ids_.size();
  add_state(volume);
}

// Adds volume to the state of key_ids_ and key_offsets_.
template <class Value>
void TaskCover<Value>::add_state(Volume volume) {
  std::uint64_t hash = key_offsets_.size();
  for (const ResidualId id : key_ids_) hash = mix(hash, id);
  for (const Value& offset : key_offsets_) hash = mix(hash, ValueTraits<Value>::hash(offset));
  std::uint32_t index = table_.find(hash, [&](std::uint32_t i) {
    const State& s = states_[i];
    return s.n_ids == key_ids_.size() && s.n_terms == key_offsets_.size() &&
           std::equal(key_ids_.begin(), key_ids_.end(),
                      ids_.begin() + static_cast<std::ptrdiff_t>(s.ids)) &&
           std::equal(key_offsets_.begin(), key_offsets_.end(),
                      offsets_.begin() + static_cast<std::ptrdiff_t>(s.offsets));
  });
  if (index == HashIndex::kNone) {
    index = static_cast<std::uint32_t>(states_.size());
    states_.push_back({ids_.size(), offsets_.size(), static_cast<std::uint32_t>(key_ids_.size()),
                       static_cast<std::uint32_t>(key_offsets_.size()), 0, parent_, feature_,
                       cell_});
    ids_.insert(ids_.end(), key_ids_.begin(), key_ids_.end());
    offsets_.insert(offsets_.end(), key_offsets_.begin(), key_offsets_.end());
    table_.insert(hash, index);
  }
  states_[index].volume += volume;
  open_ += volume;
  heap_.emplace_back(states_[index].volume, index);
  std::push_heap(heap_.begin(), heap_.end());
}

template <class Value>
std::vector<std::pair<std::uint32_t, Volume>> TaskCover<Value>::frontier() const {
  std::vector<std::pair<std::uint32_t, Volume>> result;
  for (std::uint32_t i = 0; i < states_.size(); ++i) {
    if (states_[i].volume > 0) result.emplace_back(i, states_[i].volume);
  }
  return result;
}

template <class Value>
bool TaskCover<Value>::sample(std::uint32_t index, Random& random, Draw& draw) const {
  const State& state = states_[index];
  draw.cells.resize(store_.features().size());
  draw.stamps.resize(store_.features().size(), 0);
  ++draw.stamp;
  std::uint64_t at = state.ids;
  for (std::uint32_t t = 0; t < state.n_terms; ++t) {
    Value sum = offsets_[state.offsets + t];
    for (; ids_[at] != kSeparator; ++at) {
      ResidualId id = ids_[at];
      while (!store_.is_leaf(id)) {
        const auto& node = store_[id];
        if (draw.stamps[node.feature] != draw.stamp) {
          draw.stamps[node.feature] = draw.stamp;
          const Cell n_cells = store_.forest().axis(node.test.feature).n_cells;
          draw.cells[node.feature] =
              static_cast<Cell>(random.below(static_cast<std::uint32_t>(n_cells)));
        }
        id = store_.forest().goes_left(node.test, draw.cells[node.feature]) ? node.low : node.high;
      }
      sum += store_[id].min;
    }
    ++at;
    if (sum > threshold_ || -sum > threshold_) return true;
  }
  return false;
}

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

template class TaskCover<std::int64_t>;
template class TaskCover<Int128>;
template class TaskCover<Int2304>;
template class Cover<std::int64_t>;
template class Cover<Int128>;
template class Cover<Int2304>;

}  // namespace xcount

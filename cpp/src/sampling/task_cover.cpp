#include "xcount/sampling/task_cover.hpp"

#include <algorithm>
#include <stdexcept>

namespace xcount {

namespace {

constexpr std::uint64_t kWorkPerNode = 8;  // of a new residual, in residuals looked at
constexpr std::size_t kMaxDifferenceBytes = std::size_t{512} << 20;  // of a task

}  // namespace

template <class Value>
TaskCover<Value>::TaskCover(const Forest<Value>& forest, DifferenceBuilder<Value>& builder,
                            const Value& threshold, const CoverTask& task, const Check& check)
    : store_(forest), gap_(threshold) {
  if (builder.is_too_deep()) throw std::length_error("a tree is too deep to make differences of");
  const auto check_all = [&] {
    check();
    if (store_.bytes() > kMaxDifferenceBytes) {
      throw std::length_error("the differences of a pair of masks are too large");
    }
  };
  for (const auto& [a, b] : task.pairs) {
    std::vector<ResidualId> residuals;
    BoundedSum<Value> sum;
    builder.build(a, b, store_, residuals, sum.offset, check_all);
    for (const ResidualId id : residuals) {
      sum.min += store_[id].min;
      sum.max += store_[id].max;
    }
    const Verdict verdict = gap_.decide(sum.least(), sum.most());
    if (verdict.inside) continue;
    if (verdict.holds()) {
      solved_ = 1;
      return;
    }
    std::sort(residuals.begin(), residuals.end());
    key_ids_.insert(key_ids_.end(), residuals.begin(), residuals.end());
    key_ids_.push_back(kSeparator);
    key_offsets_.push_back(sum.offset);
  }
  scores_.resize(store_.features().size());
  if (!key_offsets_.empty()) add_state(1, {kNone, 0, 0});
}

template <class Value>
std::size_t TaskCover<Value>::bytes() const {
  return store_.bytes() + table_.bytes() + states_.capacity() * sizeof(State) +
         ids_.capacity() * sizeof(ResidualId) + offsets_.capacity() * sizeof(Value) +
         heap_.capacity() * sizeof(heap_[0]);
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
  XCOUNT_ASSERT(state.volume > 0 && state.n_terms > 0);
  states_[index].volume = 0;
  open_ -= state.volume;
  const LocalFeature feature = choose_feature(state);
  const Cell n_cells = store_.forest().axis(store_.features()[feature]).n_cells;
  split(state, feature);
  for (Cell cell = 0; cell < n_cells;) {
    const Verdict verdict = decide_child(state);
    work_ += sweep_.n_moving() + state.n_terms;
    const Cell next = sweep_.next(n_cells);
    const Volume volume =
        state.volume * static_cast<Volume>(next - cell) / static_cast<Volume>(n_cells);
    if (verdict.holds()) {
      solved_ += volume;
    } else if (verdict.is_open()) {
      add_child(volume, {index, feature, cell});
    }
    sweep_.advance(next);
    cell = next;
  }
  work_ += state.n_ids + kWorkPerNode * (store_.size() - nodes_before);
  if (heap_.empty()) open_ = 0;
}

// The feature at the roots that carries the most range, as in exact elimination.
template <class Value>
LocalFeature TaskCover<Value>::choose_feature(const State& state) {
  for (std::uint32_t i = 0; i < state.n_ids; ++i) {
    const ResidualId id = ids_[state.ids + i];
    if (id == kSeparator) continue;
    const auto& node = store_[id];
    scores_.add(node.feature, node.test.cut, range_of(node));
  }
  return scores_.choose().feature;
}

template <class Value>
void TaskCover<Value>::split(const State& state, LocalFeature feature) {
  const auto into_cells = [&](ResidualId id, std::vector<Run>& runs) {
    if (!store_.mentions(id, feature)) return;
    const std::span<const Run> all = store_.cofactors(id, feature);
    runs.insert(runs.end(), all.begin(), all.end());
  };
  sweep_.open();
  const ResidualId* begin = ids_.data() + state.ids;
  const ResidualId* const last = begin + state.n_ids;
  for (std::uint32_t t = 0; t < state.n_terms; ++t) {
    const ResidualId* const end = std::find(begin, last, kSeparator);
    sweep_.add_term(store_, {begin, end}, into_cells);
    begin = end + 1;
  }
}

// What bounds say of the union of the state's constraints, where the sweep stands.
template <class Value>
Verdict TaskCover<Value>::decide_child(const State& state) {
  sums_.resize(state.n_terms);
  for (std::uint32_t t = 0; t < state.n_terms; ++t) sums_[t].offset = offsets_[state.offsets + t];
  sweep_.bound(store_, sums_);
  live_.clear();
  for (std::uint32_t t = 0; t < state.n_terms; ++t) {
    const Verdict verdict = gap_.decide(sums_[t].least(), sums_[t].most());
    if (verdict.holds()) return verdict;
    if (verdict.is_open()) live_.push_back(t);
  }
  return {false, false, live_.empty()};
}

template <class Value>
void TaskCover<Value>::add_child(Volume volume, const Origin& origin) {
  key_ids_.clear();
  key_offsets_.clear();
  for (const std::uint32_t t : live_) {
    sweep_.append_ids(store_, t, key_ids_);
    key_ids_.push_back(kSeparator);
    key_offsets_.push_back(sums_[t].offset);
  }
  work_ += key_ids_.size();
  add_state(volume, origin);
}

// Adds volume to the state of key_ids_ and key_offsets_.
template <class Value>
void TaskCover<Value>::add_state(Volume volume, const Origin& origin) {
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
    states_.push_back({origin, ids_.size(), offsets_.size(),
                       static_cast<std::uint32_t>(key_ids_.size()),
                       static_cast<std::uint32_t>(key_offsets_.size()), 0});
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
Cell TaskCover<Value>::draw_cell(const Test& test, LocalFeature feature, Random& random,
                                 Draw& draw) const {
  if (draw.stamps[feature] != draw.stamp) {
    draw.stamps[feature] = draw.stamp;
    const Cell n_cells = store_.forest().axis(test.feature).n_cells;
    draw.cells[feature] = static_cast<Cell>(random.below(static_cast<std::uint32_t>(n_cells)));
  }
  return draw.cells[feature];
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
        const Cell cell = draw_cell(node.test, node.feature, random, draw);
        id = store_.forest().goes_left(node.test, cell) ? node.low : node.high;
      }
      sum += store_[id].min;
    }
    ++at;
    if (gap_.is_exceeded(sum)) return true;
  }
  return false;
}

template class TaskCover<std::int64_t>;
template class TaskCover<Int128>;
template class TaskCover<Int2304>;

}  // namespace xcount

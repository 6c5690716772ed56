#include "xcount/exact/elimination.hpp"

#include <algorithm>

namespace xcount {

namespace {

constexpr std::size_t kMaxItems = std::size_t{1} << 31;       // ids are 32 bits wide
constexpr std::size_t kMaxStackBytes = std::size_t{3} << 20;  // of the usual 8 MiB

std::uintptr_t stack_position() {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

std::size_t stack_depth(std::uintptr_t base) {
  const std::uintptr_t here = stack_position();
  return here < base ? base - here : here - base;
}

template <class T>
std::size_t bytes_of(const std::vector<T>& items) {
  return items.capacity() * sizeof(T);
}

}  // namespace

template <class Value, class Values>
void Eliminator<Value, Values>::clear() {
  memo_.clear();
  small_.clear();
  n_steps_ = 0;
  n_checks_ = 0;
  n_forgotten_ = 0;
}

template <class Value, class Values>
std::size_t Eliminator<Value, Values>::bytes() const {
  return memo_.bytes() + small_.bytes();
}

// What the memo and what belongs to it hold: the same whatever was solved before.
template <class Value, class Values>
std::size_t Eliminator<Value, Values>::used() const {
  return memo_.used() + small_.used() + values_.used();
}

template <class Value, class Values>
typename Eliminator<Value, Values>::Level& Eliminator<Value, Values>::level(std::size_t depth) {
  while (levels_.size() <= depth) levels_.emplace_back();
  return levels_[depth];
}

template <class Value, class Values>
SolutionId Eliminator<Value, Values>::solve(const std::vector<ResidualSum<Value>>& constraints,
                                            Combine combine, const EliminationLimits& limits,
                                            const Part& part, DiagramRecorder* recorder) {
  combine_ = combine;
  limits_ = limits;
  part_ = part;
  is_measuring_ = false;
  recorder_ = recorder;
  memo_bytes_ = limits.memo_bytes;
  stack_base_ = stack_position();
  scores_.assign(store_.features().size(), {});
  Level& root = level(0);
  root.terms.clear();
  root.ids.clear();
  root.narrowed.clear();
  for (const ResidualSum<Value>& constraint : constraints) {
    Term term;
    term.begin = static_cast<std::uint32_t>(root.ids.size());
    term.offset = constraint.offset;
    for (const ResidualId id : constraint.residuals) {
      term.min += store_[id].min;
      term.max += store_[id].max;
      root.ids.push_back(id);
    }
    term.end = static_cast<std::uint32_t>(root.ids.size());
    std::sort(root.ids.begin() + term.begin, root.ids.end());
    root.terms.push_back(term);
  }
  const SolutionId decided = decide(root);
  return decided == kUndecided ? solve_undecided(0) : end(0, decided);
}

template <class Value, class Values>
SolutionId Eliminator<Value, Values>::whole_part() {
  is_measuring_ = true;
  limits_ = {};  // a few splits, of something that is solved
  const bool is_end = decide(level(0)) != kUndecided || part_.n_bits == 0;
  return is_end ? end(0, kAllSolve) : expand(0);
}

// What a state that needs no more splits contributes to the part.
template <class Value, class Values>
SolutionId Eliminator<Value, Values>::end(std::size_t depth, SolutionId solution) const {
  if (!part_.has_end(depth)) return kNoneSolve;
  return is_measuring_ ? kAllSolve : solution;
}

template <class Value, class Values>
SolutionId Eliminator<Value, Values>::decide(Level& state) const {
  const Value infinity = ValueTraits<Value>::infinity();
  const bool any = combine_ == Combine::kAny;
  state.live.clear();
  for (Term& term : state.terms) {
    term.low = -infinity;
    term.high = infinity;
  }
  for (std::uint32_t i = 0; i < state.terms.size(); ++i) {
    Term& term = state.terms[i];
    const Value least = term.offset + term.min;
    const Value most = term.offset + term.max;
    const bool above = least > threshold_;
    const bool below = -most > threshold_;
    const bool inside = -least <= threshold_ && most <= threshold_;
    if (!above && !below && !inside) {
      state.live.push_back(i);
      continue;
    }
    const Value low = inside ? -threshold_ - term.min : threshold_ - term.min + Value(1);
    const Value high = inside ? threshold_ - term.max : -threshold_ - term.max - Value(1);
    if (inside == any) {  // this constraint no longer matters
      term.low = inside || above ? low : -infinity;
      term.high = inside || below ? high : infinity;
      continue;
    }
    // This constraint alone decides: the others may have any offset.
    for (std::uint32_t j = 0; j < i; ++j) {
      state.terms[j].low = -infinity;
      state.terms[j].high = infinity;
    }
    term.low = inside || above ? low : -infinity;
    term.high = inside || below ? high : infinity;
    return any ? kAllSolve : kNoneSolve;
  }
  if (!state.live.empty()) return kUndecided;
  return any ? kNoneSolve : kAllSolve;
}

template <class Value, class Values>
SolutionId Eliminator<Value, Values>::solve_undecided(std::size_t depth) {
  if (depth < part_.n_bits) return expand(depth);  // only a part of it: nothing to remember
  Level& state = level(depth);
  const std::uint64_t hash = make_key(state);
  std::uint32_t entry = memo_.find(hash, key_);
  if (entry != memo_.kNone) {
    const SolutionId known = recall(state, entry);
    if (known != kUndecided) return known;
  } else {
    entry = memo_.add(hash, key_);
  }
  const std::uint64_t n_forgotten = n_forgotten_;
  const SolutionId solution = open_small(state) ? enumerate(state) : expand(depth);
  if (n_forgotten != n_forgotten_) {  // the entry is no more, or there is another
    make_key(state);
    entry = memo_.find(hash, key_);
    if (entry == memo_.kNone) entry = memo_.add(hash, key_);
  }
  remember(state, entry, solution);
  return solution;
}

template <class Value, class Values>
SolutionId Eliminator<Value, Values>::expand(std::size_t depth) {
  n_steps_ += kStepsPerSplit;
  check_limits();
  level(depth + 1);  // deque: references to other levels stay valid
  Level& state = level(depth);
  Level& child = level(depth + 1);
  const Split split = choose_split(state, depth < part_.n_bits);
  const LocalFeature feature = split.stretch.feature;
  split_residuals(state, split);
  values_.start(state.sum);
  state.edges.clear();
  std::size_t half = 0;
  for (Cell cell = split.stretch.begin; cell < split.stretch.end;) {
    const Cell next = next_part(state, split.stretch.end);
    if (!part_.has_half(depth, half++)) {
      advance(state, next);
      cell = next;
      continue;
    }
    prepare_child(state, child);
    SolutionId solution = decide(child);
    bool ended = solution != kUndecided;
    if (!ended) fill_ids(state, child);
    narrow(state, child, {feature, cell, next}, ended);
    if (!ended && is_measuring_ && depth + 1 >= part_.n_bits) {
      ended = true;
      narrow(state, child, {feature, cell, next}, ended);
    }
    solution = ended ? end(depth + 1, solution) : solve_undecided(depth + 1);
    absorb_bounds(state, child);
    values_.add(state.sum, solution, state.dropped);
    if (recorder_ != nullptr) {
      double share = values_.share(solution);
      for (const Stretch& stretch : state.dropped) share *= values_.weight(stretch);
      state.edges.push_back({next, solution, share});
    }
    advance(state, next);
    cell = next;
  }
  if (recorder_ != nullptr) record(split.stretch, state);
  return values_.finish(state.sum);
}

// The feature at the roots that carries the most range, cut where the widest of its residuals asks:
// what is decided there matters most. The parts of a state must split it alike, but they number
// their residuals each in its own way, and a sum of doubles depends on the order.
template <class Value, class Values>
typename Eliminator<Value, Values>::Split Eliminator<Value, Values>::choose_split(
    const Level& state, bool alike) {
  const auto add = [this](ResidualId id) {
    const auto& node = store_[id];
    Score& score = scores_[node.feature];
    const double range = ValueTraits<Value>::to_double(node.max - node.min) + 1e-300;
    if (score.total == 0.0) scored_.push_back(node.feature);
    score.total += range;
    if (range > score.widest || (range == score.widest && node.test.cut < score.cut)) {
      score.widest = range;
      score.cut = node.test.cut;
    }
  };
  scored_ids_.clear();
  for (const std::uint32_t i : state.live) {
    const Term& term = state.terms[i];
    const std::span<const ResidualId> ids{state.ids.data() + term.begin, term.end - term.begin};
    if (alike) {
      scored_ids_.insert(scored_ids_.end(), ids.begin(), ids.end());
    } else {
      std::ranges::for_each(ids, add);
    }
  }
  std::ranges::sort(scored_ids_, {}, [this](ResidualId id) {
    return ValueTraits<Value>::to_double(store_[id].max - store_[id].min);
  });
  std::ranges::for_each(scored_ids_, add);
  LocalFeature best = scored_.front();
  for (const LocalFeature feature : scored_) {
    const double total = scores_[feature].total;
    if (total > scores_[best].total || (total == scores_[best].total && feature < best)) {
      best = feature;
    }
  }
  const Cell cut = scores_[best].cut;
  for (const LocalFeature feature : scored_) scores_[feature] = {};
  scored_.clear();
  const auto left = std::find_if(state.narrowed.begin(), state.narrowed.end(),
                                 [best](const Stretch& s) { return s.feature == best; });
  if (left != state.narrowed.end()) return {*left, cut};
  const Cell n_cells = store_.forest().axis(store_.features()[best]).n_cells;
  return {{best, 0, n_cells}, store_.has_order(best) ? cut : kEveryCell};
}

template <class Value, class Values>
void Eliminator<Value, Values>::split_residuals(Level& state, const Split& split) {
  const LocalFeature feature = split.stretch.feature;
  state.fixed.clear();
  state.fixed_ends.clear();
  state.fixed_min.clear();
  state.fixed_max.clear();
  state.runs.clear();
  state.moving.clear();
  for (std::uint32_t live = 0; live < state.live.size(); ++live) {
    const Term& term = state.terms[state.live[live]];
    Value min{}, max{};
    for (std::uint32_t k = term.begin; k < term.end; ++k) {
      const ResidualId id = state.ids[k];
      const auto begin = static_cast<std::uint32_t>(state.runs.size());
      if (store_.mentions(id, feature)) {
        if (split.cut == kEveryCell) {
          const std::span<const Run> runs = store_.cofactors(id, feature);
          state.runs.insert(state.runs.end(), runs.begin(), runs.end());
        } else {
          const ResidualId before = store_.restrict(id, feature, split.cut, true);
          const ResidualId from = store_.restrict(id, feature, split.cut, false);
          if (before != id || from != id) {
            state.runs.push_back({split.stretch.begin, before});
            state.runs.push_back({split.cut, from});
          }
        }
      }
      const auto end = static_cast<std::uint32_t>(state.runs.size());
      if (begin != end) {
        state.moving.push_back({live, begin, end});
      } else {
        state.fixed.push_back(id);
        min += store_[id].min;
        max += store_[id].max;
      }
    }
    state.fixed_ends.push_back(static_cast<std::uint32_t>(state.fixed.size()));
    state.fixed_min.push_back(min);
    state.fixed_max.push_back(max);
  }
}

// Sets offsets and bounds of the child's terms: enough to decide it.
template <class Value, class Values>
void Eliminator<Value, Values>::prepare_child(const Level& state, Level& child) const {
  child.terms.resize(state.live.size());
  for (std::size_t live = 0; live < state.live.size(); ++live) {
    Term& term = child.terms[live];
    term.offset = state.terms[state.live[live]].offset;
    term.min = state.fixed_min[live];
    term.max = state.fixed_max[live];
  }
  for (const Moving& moving : state.moving) {
    const auto& node = store_[state.runs[moving.at].node];
    Term& term = child.terms[moving.term];
    if (node.test.feature == kLeaf) {
      term.offset += node.min;
    } else {
      term.min += node.min;
      term.max += node.max;
    }
  }
}

// Writes the sorted residuals of the child's live terms.
template <class Value, class Values>
void Eliminator<Value, Values>::fill_ids(Level& state, Level& child) const {
  child.ids.clear();
  std::size_t next_moving = 0;
  std::size_t next_live = 0;
  std::uint32_t fixed_begin = 0;
  for (std::uint32_t i = 0; i < child.terms.size(); ++i) {
    state.moved.clear();
    while (next_moving < state.moving.size() && state.moving[next_moving].term == i) {
      const ResidualId id = state.runs[state.moving[next_moving++].at].node;
      if (!store_.is_leaf(id)) state.moved.push_back(id);
    }
    const std::uint32_t fixed_end = state.fixed_ends[i];
    if (next_live < child.live.size() && child.live[next_live] == i) {
      ++next_live;
      std::sort(state.moved.begin(), state.moved.end());
      Term& term = child.terms[i];
      term.begin = static_cast<std::uint32_t>(child.ids.size());
      std::merge(state.fixed.begin() + fixed_begin, state.fixed.begin() + fixed_end,
                 state.moved.begin(), state.moved.end(), std::back_inserter(child.ids));
      term.end = static_cast<std::uint32_t>(child.ids.size());
    }
    fixed_begin = fixed_end;
  }
}

// The answer holds only where the child's answer holds: intersect, shifted to this offset.
template <class Value, class Values>
void Eliminator<Value, Values>::absorb_bounds(Level& state, const Level& child) const {
  const Value infinity = ValueTraits<Value>::infinity();
  for (std::size_t live = 0; live < state.live.size(); ++live) {
    Term& term = state.terms[state.live[live]];
    const Term& below = child.terms[live];
    const Value shift = below.offset - term.offset;
    if (below.low > -infinity) term.low = std::max(term.low, below.low - shift);
    if (below.high < infinity) term.high = std::min(term.high, below.high - shift);
  }
}

// Where the current part ends: the next cell at which some residual changes.
template <class Value, class Values>
Cell Eliminator<Value, Values>::next_part(const Level& state, Cell end) {
  Cell next = end;
  for (const Moving& moving : state.moving) {
    if (moving.at + 1 < moving.end) next = std::min(next, state.runs[moving.at + 1].start);
  }
  return next;
}

template <class Value, class Values>
void Eliminator<Value, Values>::advance(Level& state, Cell cell) {
  for (Moving& moving : state.moving) {
    if (moving.at + 1 < moving.end && state.runs[moving.at + 1].start == cell) ++moving.at;
  }
}

// Splits what is left of axes into what the child still mentions and what it is free of.
template <class Value, class Values>
void Eliminator<Value, Values>::narrow(Level& state, Level& child, const Stretch& part,
                                       bool ended) const {
  child.narrowed.clear();
  state.dropped.clear();
  std::uint64_t support = 0;
  if (!ended) {
    for (const ResidualId id : child.ids) support |= store_[id].support;
  }
  const auto place = [&](const Stretch& stretch) {
    const bool mentioned = (support >> (stretch.feature & 63) & 1) != 0;
    (mentioned ? child.narrowed : state.dropped).push_back(stretch);
  };
  bool placed = false;
  for (const Stretch& stretch : state.narrowed) {
    if (!placed && stretch.feature >= part.feature) {
      place(part);
      placed = true;
    }
    if (stretch.feature != part.feature) place(stretch);
  }
  if (!placed) place(part);
}

template <class Value, class Values>
bool Eliminator<Value, Values>::open_small(const Level& state) {
  if (recorder_ != nullptr) return false;
  small_.open();
  for (const std::uint32_t i : state.live) {
    const Term& term = state.terms[i];
    small_.add_term(term.offset, {state.ids.data() + term.begin, term.end - term.begin});
  }
  return small_.prepare(state.narrowed, limits_.max_paths);
}

template <class Value, class Values>
SolutionId Eliminator<Value, Values>::enumerate(Level& state) {
  const SolutionId solution = small_.run(combine_);
  n_steps_ += small_.n_steps();
  for (std::size_t t = 0; t < state.live.size(); ++t) {
    state.terms[state.live[t]].low = small_.terms()[t].low;
    state.terms[state.live[t]].high = small_.terms()[t].high;
  }
  return solution;
}

template <class Value, class Values>
std::uint64_t Eliminator<Value, Values>::make_key(const Level& state) {
  key_.clear();
  std::uint64_t hash = 0;
  for (const std::uint32_t i : state.live) {
    const Term& term = state.terms[i];
    for (std::uint32_t k = term.begin; k < term.end; ++k) {
      key_.push_back(state.ids[k]);
      hash = (hash ^ state.ids[k]) * 0x9E3779B97F4A7C15ULL;
      hash ^= hash >> 29;
    }
    key_.push_back(kSeparator);
    hash = (hash ^ kSeparator) * 0x9E3779B97F4A7C15ULL;
  }
  for (const Stretch& stretch : state.narrowed) {
    key_.push_back(stretch.feature);
    key_.push_back(static_cast<ResidualId>(stretch.begin));
    key_.push_back(static_cast<ResidualId>(stretch.end));
    hash = mix(hash, static_cast<std::uint64_t>(stretch.feature) << 40 ^
                         static_cast<std::uint64_t>(stretch.begin) << 20 ^
                         static_cast<std::uint64_t>(stretch.end));
  }
  return mix(hash, 0);
}

template <class Value, class Values>
SolutionId Eliminator<Value, Values>::recall(Level& state, std::uint32_t entry) {
  const auto term = [&state](std::size_t i) -> Term& { return state.terms[state.live[i]]; };
  const auto answer =
      memo_.recall(entry, state.live.size(), [&](std::size_t i) { return term(i).offset; });
  if (!answer) return kUndecided;
  for (std::size_t i = 0; i < state.live.size(); ++i) {
    term(i).low = answer->bounds[2 * i];
    term(i).high = answer->bounds[2 * i + 1];
  }
  return answer->solution;
}

template <class Value, class Values>
void Eliminator<Value, Values>::remember(const Level& state, std::uint32_t entry,
                                         SolutionId solution) {
  memo_.remember(entry, solution);
  for (const std::uint32_t i : state.live) {
    memo_.add_bounds(state.terms[i].low, state.terms[i].high);
  }
}

template <class Value, class Values>
void Eliminator<Value, Values>::record(const Stretch& stretch, Level& state) {
  const auto first = static_cast<std::uint32_t>(recorder_->edges.size());
  recorder_->edges.insert(recorder_->edges.end(), state.edges.begin(), state.edges.end());
  recorder_->nodes.push_back(
      {stretch.feature, stretch.begin, first, static_cast<std::uint32_t>(state.edges.size())});
}

template <class Value, class Values>
void Eliminator<Value, Values>::check_limits() {
  if (n_steps_ > limits_.max_steps) throw GiveUp::kSteps;
  if (limits_.cancel != nullptr && limits_.cancel->load(std::memory_order_relaxed)) {
    throw GiveUp::kCancelled;
  }
  if (stack_depth(stack_base_) > kMaxStackBytes) throw GiveUp::kMemory;
  if ((++n_checks_ & 31) == 0 && !has_room() && !make_room()) throw GiveUp::kMemory;
}

template <class Value, class Values>
bool Eliminator<Value, Values>::has_room() const {
  return used() <= memo_bytes_ && fits();
}

// The tables within the memory, and at least half of it left to the memo.
template <class Value, class Values>
bool Eliminator<Value, Values>::fits() const {
  const std::size_t needed = needed_bytes();
  return bytes() + values_.bytes() + needed <= limits_.max_bytes &&
         needed <= limits_.max_bytes / 2 && values_.size() <= kMaxItems &&
         memo_.size() <= kMaxItems;
}

template <class Value, class Values>
bool Eliminator<Value, Values>::make_room() {
  if (fits() && (memo_.is_used() || recorder_ != nullptr)) {
    memo_bytes_ = 2 * used();
    return true;
  }
  if (recorder_ != nullptr) return false;  // it needs every solution
  forget();
  return fits();
}

// What was solved on the way may have to be solved again. The states that are being solved keep
// sums of their own, not solutions.
template <class Value, class Values>
void Eliminator<Value, Values>::forget() {
  memo_.clear();
  small_.clear();
  values_.forget();
  ++n_forgotten_;
  if (fits()) return;
  memo_ = OffsetMemo<Value>();
  small_.release();
  values_.shrink();
}

template <class Value, class Values>
std::size_t Eliminator<Value, Values>::needed_bytes() const {
  std::size_t total = store_.bytes();
  for (const Level& l : levels_) {
    total += sizeof(Level) + bytes_of(l.terms) + bytes_of(l.live) + bytes_of(l.ids) +
             bytes_of(l.narrowed) + bytes_of(l.fixed) + bytes_of(l.fixed_ends) +
             bytes_of(l.fixed_min) + bytes_of(l.fixed_max) + bytes_of(l.runs) + bytes_of(l.moving) +
             bytes_of(l.moved) + bytes_of(l.dropped) + bytes_of(l.edges);
  }
  if (recorder_ != nullptr) total += bytes_of(recorder_->nodes) + bytes_of(recorder_->edges);
  return total;
}

template class Eliminator<std::int64_t, CountValues>;
template class Eliminator<Int128, CountValues>;
template class Eliminator<Int2304, CountValues>;
template class Eliminator<std::int64_t, WeightValues>;
template class Eliminator<Int128, WeightValues>;
template class Eliminator<Int2304, WeightValues>;

}  // namespace xcount

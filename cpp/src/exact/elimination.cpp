#include "xcount/exact/elimination.hpp"

#include <algorithm>

#include "xcount/support/assert.hpp"

namespace xcount {

namespace {

constexpr Share kWholeWalk = 4;  // times the least volume: such a state may take all of max_paths

template <class T>
std::size_t bytes_of(const std::vector<T>& items) {
  return items.capacity() * sizeof(T);
}

}  // namespace

template <class Value, class Values>
void Eliminator<Value, Values>::clear() {
  room_.clear();
  n_steps_ = 0;
  n_looked_at_ = 0;
  n_checks_ = 0;
}

template <class Value, class Values>
typename Eliminator<Value, Values>::Level& Eliminator<Value, Values>::level(std::size_t depth) {
  while (levels_.size() <= depth) levels_.emplace_back();
  return levels_[depth];
}

template <class Value, class Values>
typename Eliminator<Value, Values>::Level& Eliminator<Value, Values>::emptied_root() {
  Level& root = level(0);
  root.terms.clear();
  root.ids.clear();
  root.narrowed.clear();
  return root;
}

template <class Value, class Values>
SolutionId Eliminator<Value, Values>::solve(const std::vector<ResidualSum<Value>>& constraints,
                                            Combine combine, const EliminationLimits& limits,
                                            const Part& part, DiagramRecorder* recorder) {
  start(combine, limits);
  part_ = part;
  recorder_ = recorder;
  room_.allow(limits.memo_bytes);
  set_root(constraints);
  const SolutionId decided = decide(level(0));
  return decided == kUndecided ? solve_undecided(0) : end(0, decided);
}

template <class Value, class Values>
void Eliminator<Value, Values>::start(Combine combine, const EliminationLimits& limits) {
  combine_ = combine;
  limits_ = limits;
  part_ = {};
  is_measuring_ = false;
  recorder_ = nullptr;
  open_ = nullptr;
  stack_.start();
  scores_.resize(store_.features().size());
}

template <class Value, class Values>
void Eliminator<Value, Values>::deepen(const OpenState<Value>& state, Combine combine,
                                       const EliminationLimits& limits, Share least,
                                       Frontier<Value>& open, typename Values::Sum& solved) {
  start(combine, limits);
  open_ = &open;
  least_ = least;
  set_root(state);
  const SolutionId decided = decide(level(0));
  const SolutionId solution = decided == kUndecided ? solve_undecided(0) : decided;
  values_.add(solved, solution, outer_dropped_);
}

template <class Value, class Values>
void Eliminator<Value, Values>::set_root(const std::vector<ResidualSum<Value>>& constraints) {
  Level& root = emptied_root();
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
}

template <class Value, class Values>
void Eliminator<Value, Values>::set_root(const OpenState<Value>& state) {
  Level& root = emptied_root();
  outer_dropped_.clear();
  root.volume = state.volume;
  std::uint64_t support = 0;
  Term term;
  for (const ResidualId id : state.ids) {
    if (id != kSeparator) {
      term.min += store_[id].min;
      term.max += store_[id].max;
      support |= store_[id].support;
      root.ids.push_back(id);
      continue;
    }
    term.end = static_cast<std::uint32_t>(root.ids.size());
    term.offset = state.offsets[root.terms.size()];
    root.terms.push_back(term);
    term = {{}, term.end, term.end, {}};
  }
  for (const Stretch& stretch : state.box) {
    const bool is_mentioned = (support >> (stretch.feature & 63) & 1) != 0;
    (is_mentioned ? root.narrowed : outer_dropped_).push_back(stretch);
  }
  std::ranges::sort(root.narrowed, {}, &Stretch::feature);
}

// Without a memo: states that are as large as these are hardly ever met again. What a walk may cost
// goes with the volume that it decides.
template <class Value, class Values>
SolutionId Eliminator<Value, Values>::deepen_undecided(std::size_t depth) {
  Level& state = level(depth);
  const Share part = std::min<Share>(1, state.volume / (kWholeWalk * least_));
  const Share max_paths = part * static_cast<Share>(limits_.max_paths);
  if (open_small(state, static_cast<std::uint64_t>(max_paths))) return enumerate(state);
  if (state.volume > least_) return expand(depth);
  for (const std::uint32_t i : state.live) {
    open_->add_constraint(state.terms[i].offset, state.ids_of(state.terms[i]));
  }
  open_->add_stretches(outer_dropped_);
  for (std::size_t d = 0; d < depth; ++d) open_->add_stretches(level(d).dropped);
  open_->add_stretches(state.narrowed);
  open_->close(state.volume);
  return kNoneSolve;  // nothing of it is known to solve
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
  const bool any = combine_ == Combine::kAny;
  state.live.clear();
  for (Term& term : state.terms) term.holds = {};
  for (std::uint32_t i = 0; i < state.terms.size(); ++i) {
    Term& term = state.terms[i];
    const Verdict verdict = gap_.decide(term.least(), term.most());
    if (verdict.is_open()) {
      state.live.push_back(i);
      continue;
    }
    gap_.narrow(verdict, term.min, term.max, Value{}, term.holds);
    if (verdict.inside == any) continue;  // this constraint no longer matters
    // This constraint alone decides: the others may have any offset.
    for (std::uint32_t j = 0; j < i; ++j) state.terms[j].holds = {};
    return any ? kAllSolve : kNoneSolve;
  }
  if (!state.live.empty()) return kUndecided;
  return any ? kNoneSolve : kAllSolve;
}

template <class Value, class Values>
SolutionId Eliminator<Value, Values>::solve_undecided(std::size_t depth) {
  if (depth < part_.n_bits) return expand(depth);  // only a part of it: nothing to remember
  Level& state = level(depth);
  XCOUNT_ASSERT(is_well_formed(state));
  if (open_ != nullptr) return deepen_undecided(depth);
  const std::uint64_t hash = make_key(state);
  std::uint32_t entry = room_.memo().find(hash, key_);
  if (entry != OffsetMemo<Value>::kNone) {
    const SolutionId known = recall(state, entry);
    if (known != kUndecided) return known;
  } else {
    entry = room_.memo().add(hash, key_);
  }
  const std::uint64_t n_forgotten = room_.n_forgotten();
  const bool is_small = open_small(state, limits_.max_paths);
  const SolutionId solution = is_small ? enumerate(state) : expand(depth);
  if (n_forgotten != room_.n_forgotten()) {  // the entry is no more, or there is another
    make_key(state);
    entry = room_.memo().find(hash, key_);
    if (entry == OffsetMemo<Value>::kNone) entry = room_.memo().add(hash, key_);
  }
  remember(state, entry, solution);
  return solution;
}

template <class Value, class Values>
SolutionId Eliminator<Value, Values>::expand(std::size_t depth) {
  n_steps_ += std::max<std::uint64_t>(kStepsPerSplit, level(depth).ids.size());
  check_limits();
  level(depth + 1);  // deque: references to other levels stay valid
  Level& state = level(depth);
  n_looked_at_ += state.ids.size();
  const Split split = choose_split(state, depth < part_.n_bits);
  XCOUNT_ASSERT(split.stretch.begin < split.stretch.end);
  XCOUNT_ASSERT(split.cut == kEveryCell ||
                (split.stretch.begin < split.cut && split.cut < split.stretch.end));
  split_residuals(state, split);
  state.volume_per_cell =
      state.volume / static_cast<Share>(split.stretch.end - split.stretch.begin);
  values_.start(state.sum);
  state.edges.clear();
  std::size_t half = 0;
  for (Cell cell = split.stretch.begin; cell < split.stretch.end;) {
    const Cell next = state.sweep.next(split.stretch.end);
    XCOUNT_ASSERT(cell < next);
    if (part_.has_half(depth, half++)) expand_part(depth, {split.stretch.feature, cell, next});
    state.sweep.advance(next);
    cell = next;
  }
  if (recorder_ != nullptr) recorder_->add(split.stretch, state.edges);
  return values_.finish(state.sum);
}

// Adds the solutions of the part at which the sweep of this depth stands.
template <class Value, class Values>
void Eliminator<Value, Values>::expand_part(std::size_t depth, const Stretch& part) {
  Level& state = level(depth);
  Level& child = level(depth + 1);
  prepare_child(state, child);
  const SolutionId decided = decide(child);
  const bool ended = decided != kUndecided || (is_measuring_ && depth + 1 >= part_.n_bits);
  if (!ended) fill_ids(state, child);
  narrow(state, child, part, ended);
  child.volume = state.volume_per_cell * static_cast<Share>(part.end - part.begin);
  XCOUNT_ASSERT(open_ == nullptr ||
                (child.volume > 0 && child.volume <= state.volume * (1 + 1e-9L)));
  const SolutionId solution = ended ? end(depth + 1, decided) : solve_undecided(depth + 1);
  absorb_bounds(state, child);
  values_.add(state.sum, solution, state.dropped);
  if (recorder_ == nullptr) return;
  double share = values_.share(solution);
  for (const Stretch& stretch : state.dropped) share *= values_.weight(stretch);
  state.edges.push_back({part.end, solution, share});
}

// The feature at the roots that carries the most range, cut where the widest of its residuals asks.
// The parts of a state must split it alike, but they number their residuals each in its own way,
// and a sum of doubles depends on the order.
template <class Value, class Values>
typename Eliminator<Value, Values>::Split Eliminator<Value, Values>::choose_split(
    const Level& state, bool alike) {
  const auto add = [this](ResidualId id) {
    const auto& node = store_[id];
    scores_.add(node.feature, node.test.cut, range_of(node));
  };
  scored_ids_.clear();
  for (const std::uint32_t i : state.live) {
    const std::span<const ResidualId> ids = state.ids_of(state.terms[i]);
    if (alike) {
      scored_ids_.insert(scored_ids_.end(), ids.begin(), ids.end());
    } else {
      std::ranges::for_each(ids, add);
    }
  }
  if (alike) {
    std::ranges::sort(scored_ids_, {}, [this](ResidualId id) { return range_of(store_[id]); });
    std::ranges::for_each(scored_ids_, add);
  }
  const auto [best, cut, total] = scores_.choose();
  XCOUNT_ASSERT(best < store_.features().size() && total > 0.0);
  const auto left = std::ranges::find(state.narrowed, best, &Stretch::feature);
  if (left != state.narrowed.end()) return {*left, cut};
  const Cell n_cells = store_.forest().axis(store_.features()[best]).n_cells;
  return {{best, 0, n_cells}, store_.has_order(best) ? cut : kEveryCell};
}

template <class Value, class Values>
void Eliminator<Value, Values>::split_residuals(Level& state, const Split& split) {
  const LocalFeature feature = split.stretch.feature;
  const auto into_cells = [&](ResidualId id, std::vector<Run>& runs) {
    if (!store_.mentions(id, feature)) return;
    const std::span<const Run> all = store_.cofactors(id, feature);
    runs.insert(runs.end(), all.begin(), all.end());
  };
  const auto in_two = [&](ResidualId id, std::vector<Run>& runs) {
    if (!store_.mentions(id, feature)) return;
    const ResidualId before = store_.restrict(id, feature, split.cut, true);
    const ResidualId from = store_.restrict(id, feature, split.cut, false);
    if (before == id && from == id) return;
    runs.push_back({split.stretch.begin, before});
    runs.push_back({split.cut, from});
  };
  state.sweep.open();
  for (const std::uint32_t i : state.live) {
    const std::span<const ResidualId> ids = state.ids_of(state.terms[i]);
    if (split.cut == kEveryCell) {
      state.sweep.add_term(store_, ids, into_cells);
    } else {
      state.sweep.add_term(store_, ids, in_two);
    }
  }
}

// Sets offsets and bounds of the child's terms: enough to decide it.
template <class Value, class Values>
void Eliminator<Value, Values>::prepare_child(const Level& state, Level& child) const {
  child.terms.resize(state.live.size());
  for (std::size_t live = 0; live < state.live.size(); ++live) {
    child.terms[live].offset = state.terms[state.live[live]].offset;
  }
  state.sweep.bound(store_, child.terms);
}

// Writes the sorted residuals of the child's live terms.
template <class Value, class Values>
void Eliminator<Value, Values>::fill_ids(Level& state, Level& child) const {
  child.ids.clear();
  for (const std::uint32_t i : child.live) {
    Term& term = child.terms[i];
    term.begin = static_cast<std::uint32_t>(child.ids.size());
    state.sweep.append_ids(store_, i, child.ids);
    XCOUNT_ASSERT(i < child.terms.size());
    term.end = static_cast<std::uint32_t>(child.ids.size());
  }
}

// The answer holds only where the child's answer holds: intersect, shifted to this offset.
template <class Value, class Values>
void Eliminator<Value, Values>::absorb_bounds(Level& state, const Level& child) const {
  for (std::size_t live = 0; live < state.live.size(); ++live) {
    Term& term = state.terms[state.live[live]];
    const Term& below = child.terms[live];
    term.holds.absorb(below.holds, below.offset - term.offset);
    XCOUNT_ASSERT(term.holds.contains(term.offset));
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
  XCOUNT_ASSERT(std::ranges::is_sorted(child.narrowed, {}, &Stretch::feature));
}

template <class Value, class Values>
bool Eliminator<Value, Values>::open_small(const Level& state, std::uint64_t max_paths) {
  if (recorder_ != nullptr) return false;
  small_.open();
  for (const std::uint32_t i : state.live) {
    small_.add_term(state.terms[i].offset, state.ids_of(state.terms[i]));
  }
  return small_.prepare(state.narrowed, max_paths);
}

template <class Value, class Values>
SolutionId Eliminator<Value, Values>::enumerate(Level& state) {
  const SolutionId solution = small_.run(combine_);
  n_steps_ += small_.n_steps();
  for (std::size_t t = 0; t < state.live.size(); ++t) {
    Term& term = state.terms[state.live[t]];
    term.holds = small_.terms()[t].holds;
    XCOUNT_ASSERT(term.holds.contains(term.offset));
  }
  return solution;
}

template <class Value, class Values>
std::uint64_t Eliminator<Value, Values>::make_key(const Level& state) {
  key_.clear();
  std::uint64_t hash = 0;
  for (const std::uint32_t i : state.live) {
    for (const ResidualId id : state.ids_of(state.terms[i])) {
      key_.push_back(id);
      hash = (hash ^ id) * 0x9E3779B97F4A7C15ULL;
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
      room_.memo().recall(entry, state.live.size(), [&](std::size_t i) { return term(i).offset; });
  if (!answer) return kUndecided;
  XCOUNT_ASSERT(answer->bounds.size() == 2 * state.live.size());
  for (std::size_t i = 0; i < state.live.size(); ++i) {
    term(i).holds = {answer->bounds[2 * i], answer->bounds[2 * i + 1]};
  }
  return answer->solution;
}

template <class Value, class Values>
void Eliminator<Value, Values>::remember(const Level& state, std::uint32_t entry,
                                         SolutionId solution) {
  room_.memo().remember(entry, solution);
  for (const std::uint32_t i : state.live) {
    room_.memo().add_bounds(state.terms[i].holds.low, state.terms[i].holds.high);
  }
}

template <class Value, class Values>
void Eliminator<Value, Values>::check_limits() {
  if (n_steps_ > limits_.max_steps) throw GiveUp::kSteps;
  if (limits_.is_cancelled()) throw GiveUp::kCancelled;
  if (stack_.is_too_deep()) throw GiveUp::kMemory;
  if ((++n_checks_ & 31) != 0) return;
  if (!room_.make_room(needed_bytes(), limits_.max_bytes, recorder_ != nullptr)) {
    throw GiveUp::kMemory;
  }
}

template <class Value, class Values>
std::size_t Eliminator<Value, Values>::level_bytes() const {
  std::size_t total = 0;
  for (const Level& l : levels_) total += l.bytes();
  return total;
}

template <class Value, class Values>
std::size_t Eliminator<Value, Values>::needed_bytes() const {
  std::size_t total = store_.bytes() + level_bytes();
  if (recorder_ != nullptr) total += recorder_->bytes();
  return total;
}

template <class Value, class Values>
std::size_t Eliminator<Value, Values>::Level::bytes() const {
  return sizeof(Level) + bytes_of(terms) + bytes_of(live) + bytes_of(ids) + bytes_of(narrowed) +
         sweep.bytes() + bytes_of(dropped) + bytes_of(edges);
}

// A state that is open: no leaves, residuals in order, bounds that say what the residuals say, and
// only stretches of mentioned features, by feature.
template <class Value, class Values>
bool Eliminator<Value, Values>::is_well_formed(const Level& state) const {
  std::uint64_t support = 0;
  for (const std::uint32_t i : state.live) {
    const Term& term = state.terms[i];
    const std::span<const ResidualId> ids = state.ids_of(term);
    Value min{}, max{};
    for (const ResidualId id : ids) {
      if (store_.is_leaf(id)) return false;
      min += store_[id].min;
      max += store_[id].max;
      support |= store_[id].support;
    }
    if (!std::ranges::is_sorted(ids) || !(min == term.min) || !(max == term.max)) return false;
  }
  for (const Stretch& stretch : state.narrowed) {
    const Cell n_cells = store_.forest().axis(store_.features()[stretch.feature]).n_cells;
    if (stretch.begin < 0 || stretch.begin >= stretch.end || stretch.end > n_cells) return false;
    if ((support >> (stretch.feature & 63) & 1) == 0) return false;
  }
  return !state.live.empty() && std::ranges::is_sorted(state.narrowed, {}, &Stretch::feature);
}

template class Eliminator<std::int64_t, CountValues>;
template class Eliminator<Int128, CountValues>;
template class Eliminator<Int2304, CountValues>;
template class Eliminator<std::int64_t, WeightValues>;
template class Eliminator<Int128, WeightValues>;
template class Eliminator<Int2304, WeightValues>;

}  // namespace xcount

#include "xcount/exact/path_walk.hpp"

#include <algorithm>

#include "xcount/support/assert.hpp"

namespace xcount {

template <class Value, class Values>
void PathWalk<Value, Values>::open() {
  items_.clear();
  terms_.clear();
  log2_tails_ = 0.0;
  tails_ = 1;
}

template <class Value, class Values>
void PathWalk<Value, Values>::add_term(const Value& offset) {
  terms_.push_back({offset, offset, {}, false, {}});
}

template <class Value, class Values>
void PathWalk<Value, Values>::add_tail(std::uint32_t term,
                                       const SumDistribution<Value, Volume>& tail) {
  XCOUNT_ASSERT(term < terms_.size() && terms_[term].tail.sums.empty());
  XCOUNT_ASSERT(tail.before.size() == tail.sums.size() + 1);
  terms_[term].tail = tail;
  log2_tails_ += tail.log2_volume;
  tails_ *= static_cast<Total>(tail.before.back());
}

template <class Value, class Values>
bool PathWalk<Value, Values>::narrow(std::span<const Stretch> narrowed) {
  roots_.clear();
  for (const Item& item : items_) roots_.push_back(item.root);
  box_.open();
  const bool ordered = box_.add(roots_, narrowed);
  return ordered && Values::enumerable(box_.log2_volume()) &&
         Values::summable(box_.log2_volume() + log2_tails_);
}

// The widest first: a decision there saves the walks through the others.
template <class Value, class Values>
void PathWalk<Value, Values>::order_items() {
  std::stable_sort(items_.begin(), items_.end(), [&](const Item& a, const Item& b) {
    return store_[a.root].max - store_[a.root].min > store_[b.root].max - store_[b.root].min;
  });
  rest_min_.assign(terms_.size(), Value{});
  rest_max_.assign(terms_.size(), Value{});
  for (std::size_t t = 0; t < terms_.size(); ++t) {
    if (terms_[t].tail.sums.empty()) continue;
    rest_min_[t] = terms_[t].tail.sums.front();
    rest_max_[t] = terms_[t].tail.sums.back();
  }
  for (std::size_t i = items_.size(); i-- > 0;) {
    Item& item = items_[i];
    item.rest_min = rest_min_[item.term];
    item.rest_max = rest_max_[item.term];
    rest_min_[item.term] += store_[item.root].min;
    rest_max_[item.term] += store_[item.root].max;
  }
}

template <class Value, class Values>
SolutionId PathWalk<Value, Values>::run(Combine combine) {
  XCOUNT_ASSERT(!items_.empty() && !terms_.empty());
  combine_ = combine;
  n_steps_ = 0;
  total_ = {};
  order_items();
  walk(0, items_[0].root, box_.volume());
  features_ = box_.mentioned();
  for (const Term& term : terms_) {
    XCOUNT_ASSERT(!term.settled && term.offset == term.start);
    features_.insert(features_.end(), term.tail.features.begin(), term.tail.features.end());
  }
  return values_.finish(total_, features_);
}

template <class Value, class Values>
void PathWalk<Value, Values>::walk_next(std::size_t i, Volume volume) {
  if (i + 1 < items_.size()) {
    walk(i + 1, items_[i + 1].root, volume);
  } else {
    reach_end(volume);
  }
}

// All trees are walked. Constraints with tails may be open; they are independent of each other.
template <class Value, class Values>
void PathWalk<Value, Values>::reach_end(Volume volume) {
  Total all = tails_;
  Total open = 1;    // of the tails of open constraints
  Total failed = 1;  // of those, where no constraint holds
  Total held = 1;    // of those, where every constraint holds
  bool any_open = false;
  for (Term& term : terms_) {
    if (term.settled || term.tail.sums.empty()) continue;
    any_open = true;
    const Volume whole = term.tail.before.back();
    const Volume part = beyond(term);
    open *= static_cast<Total>(whole);
    held *= static_cast<Total>(part);
    failed *= static_cast<Total>(whole - part);
  }
  if (!any_open) {  // every constraint was settled, and none decided for all
    if (combine_ == Combine::kAll) total_ += static_cast<Total>(volume) * all;
    return;
  }
  if (!(open > Total{})) return;
  const Total part = combine_ == Combine::kAll ? held : open - failed;
  total_ += static_cast<Total>(volume) * (all / open) * part;
}

// The volume of the tail that leads beyond the threshold.
template <class Value, class Values>
typename PathWalk<Value, Values>::Volume PathWalk<Value, Values>::beyond(Term& term) const {
  const auto& sums = term.tail.sums;
  XCOUNT_ASSERT(std::is_sorted(sums.begin(), sums.end()));
  const Value& base = term.offset;
  const Value& threshold = gap_.threshold();
  const auto first_above = std::partition_point(
      sums.begin(), sums.end(), [&](const Value& sum) { return base + sum <= threshold; });
  const auto first_inside = std::partition_point(
      sums.begin(), first_above, [&](const Value& sum) { return -(base + sum) > threshold; });
  const Value shift = base - term.start;
  if (first_above != sums.end()) term.holds.raise_low(gap_.first_above(*first_above) - shift);
  if (first_above != sums.begin()) {
    term.holds.lower_high(gap_.last_not_above(*(first_above - 1)) - shift);
  }
  if (first_inside != sums.begin()) {
    term.holds.lower_high(gap_.last_below(*(first_inside - 1)) - shift);
  }
  if (first_inside != sums.end()) term.holds.raise_low(gap_.first_not_below(*first_inside) - shift);
  return term.tail.before[static_cast<std::size_t>(first_inside - sums.begin())] +
         term.tail.from[static_cast<std::size_t>(first_above - sums.begin())];
}

// The current term is decided: it drops out, or it decides for all.
template <class Value, class Values>
void PathWalk<Value, Values>::settle(std::size_t i, bool inside, Volume volume) {
  if (inside == (combine_ == Combine::kAny)) {
    Term& term = terms_[items_[i].term];
    term.settled = true;
    walk_next(i, volume);
    term.settled = false;
  } else if (!inside) {
    total_ += static_cast<Total>(volume) * tails_;
  }
}

template <class Value, class Values>
void PathWalk<Value, Values>::walk(std::size_t i, ResidualId id, Volume volume) {
  ++n_steps_;
  XCOUNT_ASSERT(i < items_.size());
  const Item& item = items_[i];
  Term& term = terms_[item.term];
  if (term.settled) return walk_next(i, volume);
  const auto& node = store_[id];
  const Value min = item.rest_min + node.min;
  const Value max = item.rest_max + node.max;
  const Verdict verdict = gap_.decide(term.offset + min, term.offset + max);
  if (!verdict.is_open()) {
    gap_.narrow(verdict, min, max, term.offset - term.start, term.holds);
    return settle(i, verdict.inside, volume);
  }
  if (node.test.feature == kLeaf) {  // of a constraint with more to come
    const Value value = node.min;
    term.offset += value;
    walk_next(i, volume);
    term.offset -= value;
    return;
  }
  box_.branch(node, volume, [this, i](ResidualId child, Volume half) { walk(i, child, half); });
}

template class PathWalk<std::int64_t, CountValues>;
template class PathWalk<Int128, CountValues>;
template class PathWalk<Int2304, CountValues>;
template class PathWalk<std::int64_t, WeightValues>;
template class PathWalk<Int128, WeightValues>;
template class PathWalk<Int2304, WeightValues>;

}  // namespace xcount

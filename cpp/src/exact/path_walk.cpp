#include "xcount/exact/path_walk.hpp"

#include <algorithm>
#include <cmath>

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
  const Value infinity = ValueTraits<Value>::infinity();
  terms_.push_back({offset, offset, -infinity, infinity, false, {}});
}

template <class Value, class Values>
void PathWalk<Value, Values>::add_tail(std::uint32_t term,
                                       const SumDistribution<Value, Volume>& tail) {
  terms_[term].tail = tail;
  log2_tails_ += tail.log2_volume;
  tails_ *= static_cast<Total>(tail.before.back());
}

// Lists the features that the residuals test; false if some axis has no order.
template <class Value, class Values>
bool PathWalk<Value, Values>::find_mentioned() {
  bool ordered = true;
  mentioned_.clear();
  seen_.resize(store_.features().size(), 0);
  open_.clear();
  for (const Item& item : items_) open_.push_back(item.root);
  while (!open_.empty()) {
    const auto& node = store_[open_.back()];
    open_.pop_back();
    if (node.test.feature == kLeaf) continue;
    if (seen_[node.feature] == 0) {
      seen_[node.feature] = 1;
      mentioned_.push_back(node.feature);
      ordered = ordered && store_.has_order(node.feature);
    }
    open_.push_back(node.low);
    open_.push_back(node.high);
  }
  return ordered;
}

template <class Value, class Values>
bool PathWalk<Value, Values>::narrow(std::span<const Stretch> narrowed) {
  box_.resize(store_.features().size());
  const bool ordered = find_mentioned();
  std::uint64_t support = 0;
  for (const Item& item : items_) support |= store_[item.root].support;
  for (const LocalFeature feature : mentioned_) {
    box_[feature] = {feature, 0, store_.forest().axis(store_.features()[feature]).n_cells};
  }
  for (const Stretch& stretch : narrowed) {
    if ((support >> (stretch.feature & 63) & 1) == 0) continue;  // a tail's
    // With more than 64 features the support may name a narrowed one that no tree tests.
    if (seen_[stretch.feature] == 0) mentioned_.push_back(stretch.feature);
    box_[stretch.feature] = stretch;
  }
  double log2_volume = 0.0;
  for (const LocalFeature feature : mentioned_) {
    seen_[feature] = 0;
    log2_volume += std::log2(static_cast<double>(box_[feature].end - box_[feature].begin));
  }
  return ordered && Values::enumerable(log2_volume) && Values::summable(log2_volume + log2_tails_);
}

// The widest first: what it decides spares the walks through the others.
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
  combine_ = combine;
  n_steps_ = 0;
  total_ = {};
  order_items();
  Volume volume = 1;
  for (const LocalFeature feature : mentioned_) volume *= values_.volume(box_[feature]);
  walk(0, items_[0].root, volume);
  for (const Term& term : terms_) {
    mentioned_.insert(mentioned_.end(), term.tail.features.begin(), term.tail.features.end());
  }
  return values_.finish(total_, mentioned_);
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
  const Value& base = term.offset;
  const auto first_above = std::partition_point(
      sums.begin(), sums.end(), [&](const Value& sum) { return base + sum <= threshold_; });
  const auto first_inside = std::partition_point(
      sums.begin(), first_above, [&](const Value& sum) { return -(base + sum) > threshold_; });
  const Value shift = base - term.start;
  if (first_above != sums.end()) {
    term.low = std::max(term.low, threshold_ - *first_above + Value(1) - shift);
  }
  if (first_above != sums.begin()) {
    term.high = std::min(term.high, threshold_ - *(first_above - 1) - shift);
  }
  if (first_inside != sums.begin()) {
    term.high = std::min(term.high, -threshold_ - *(first_inside - 1) - Value(1) - shift);
  }
  if (first_inside != sums.end()) {
    term.low = std::max(term.low, -threshold_ - *first_inside - shift);
  }
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
  const Item& item = items_[i];
  Term& term = terms_[item.term];
  if (term.settled) return walk_next(i, volume);
  const auto& node = store_[id];
  const Value min = item.rest_min + node.min;
  const Value max = item.rest_max + node.max;
  const Value least = term.offset + min;
  const Value most = term.offset + max;
  const bool above = least > threshold_;
  const bool below = -most > threshold_;
  const bool inside = -least <= threshold_ && most <= threshold_;
  if (above || below || inside) {
    const Value shift = term.offset - term.start;
    if (above) term.low = std::max(term.low, threshold_ - min + Value(1) - shift);
    if (below) term.high = std::min(term.high, -threshold_ - max - Value(1) - shift);
    if (inside) {
      term.low = std::max(term.low, -threshold_ - min - shift);
      term.high = std::min(term.high, threshold_ - max - shift);
    }
    return settle(i, inside, volume);
  }
  if (node.test.feature == kLeaf) {  // of a constraint with more to come
    const Value value = node.min;
    term.offset += value;
    walk_next(i, volume);
    term.offset -= value;
    return;
  }
  Stretch& stretch = box_[node.feature];
  const Cell cut = node.test.cut;
  if (cut >= stretch.end) return walk(i, node.low, volume);
  if (cut <= stretch.begin) return walk(i, node.high, volume);
  const Stretch saved = stretch;
  const Volume before = values_.before(volume, stretch, cut);
  stretch.end = cut;
  walk(i, node.low, before);
  stretch = {saved.feature, cut, saved.end};
  walk(i, node.high, volume - before);
  stretch = saved;
}

template class PathWalk<std::int64_t, CountValues>;
template class PathWalk<Int128, CountValues>;
template class PathWalk<Int2304, CountValues>;
template class PathWalk<std::int64_t, WeightValues>;
template class PathWalk<Int128, WeightValues>;
template class PathWalk<Int2304, WeightValues>;

}  // namespace xcount

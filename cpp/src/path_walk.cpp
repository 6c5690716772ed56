#include "xcount/path_walk.hpp"

#include <algorithm>
#include <cmath>

namespace xcount {

// Lists the features that the residuals test; false if some axis has no order.
template <class Value, class Values>
bool PathWalk<Value, Values>::find_mentioned(std::span<const ResidualId> ids) {
  bool ordered = true;
  mentioned_.clear();
  seen_.resize(store_.features().size(), 0);
  open_.assign(ids.begin(), ids.end());
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
bool PathWalk<Value, Values>::open(std::span<const ResidualId> ids,
                                   std::span<const Stretch> narrowed) {
  items_.clear();
  terms_.clear();
  box_.resize(store_.features().size());
  const bool ordered = find_mentioned(ids);
  for (const LocalFeature feature : mentioned_) {
    box_[feature] = {feature, 0, store_.forest().axis(store_.features()[feature]).n_cells};
  }
  for (const Stretch& stretch : narrowed) {
    // With more than 64 features the support may name a narrowed one that no tree tests.
    if (seen_[stretch.feature] == 0) mentioned_.push_back(stretch.feature);
    box_[stretch.feature] = stretch;
  }
  double log2_volume = 0.0;
  for (const LocalFeature feature : mentioned_) {
    seen_[feature] = 0;
    log2_volume += std::log2(static_cast<double>(box_[feature].end - box_[feature].begin));
  }
  return ordered && Values::enumerable(log2_volume);
}

template <class Value, class Values>
void PathWalk<Value, Values>::add_term(const Value& offset, std::span<const ResidualId> ids) {
  const auto term = static_cast<std::uint32_t>(terms_.size());
  const Value infinity = ValueTraits<Value>::infinity();
  terms_.push_back({offset, offset, -infinity, infinity, false});
  for (const ResidualId id : ids) items_.push_back({id, term, {}, {}});
}

// The widest first: what it decides spares the walks through the others.
template <class Value, class Values>
void PathWalk<Value, Values>::order_items() {
  std::stable_sort(items_.begin(), items_.end(), [&](const Item& a, const Item& b) {
    return store_[a.root].max - store_[a.root].min > store_[b.root].max - store_[b.root].min;
  });
  rest_min_.assign(terms_.size(), Value{});
  rest_max_.assign(terms_.size(), Value{});
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
  return values_.finish(total_, mentioned_);
}

template <class Value, class Values>
void PathWalk<Value, Values>::walk_next(std::size_t i, Volume volume) {
  if (i + 1 < items_.size()) {
    walk(i + 1, items_[i + 1].root, volume);
  } else if (combine_ == Combine::kAll) {  // every constraint was settled, none failed
    total_ += volume;
  }
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
    total_ += volume;
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
  if (node.test.feature == kLeaf) {
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

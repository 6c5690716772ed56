#include "xcount/trees/residuals.hpp"

#include <algorithm>
#include <bit>

#include "xcount/support/assert.hpp"

namespace xcount {

template <class Value>
void ResidualStore<Value>::clear() {
  nodes_.clear();
  unique_.clear();
  for (const Feature feature : features_) local_[static_cast<std::size_t>(feature)] = kNoLocal;
  features_.clear();
  keys_.clear();
  cofactor_table_.clear();
  runs_.clear();
  ++generation_;
}

template <class Value>
void ResidualStore<Value>::release_caches() {
  release(restrictions_);
}

template <class Value>
LocalFeature ResidualStore<Value>::local(Feature feature) {
  LocalFeature& number = local_[static_cast<std::size_t>(feature)];
  if (number == kNoLocal) {
    number = static_cast<LocalFeature>(features_.size());
    features_.push_back(feature);
  }
  return number;
}

template <class Value>
ResidualId ResidualStore<Value>::leaf(const Value& value) {
  const std::uint64_t hash = mix(ValueTraits<Value>::hash(value), 0x51ED);
  const std::uint32_t found = unique_.find(hash, [&](std::uint32_t i) {
    return nodes_[i].test.feature == kLeaf && nodes_[i].min == value;
  });
  if (found != HashIndex::kNone) return found;
  const auto id = static_cast<ResidualId>(nodes_.size());
  nodes_.push_back({value, value, 0, Test{}, kNoLocal, id, id, 1});
  unique_.insert(hash, id);
  return id;
}

template <class Value>
ResidualId ResidualStore<Value>::node(const Test& test, ResidualId low, ResidualId high) {
  XCOUNT_ASSERT(test.feature != kLeaf && low < nodes_.size() && high < nodes_.size());
  if (low == high) return low;
  const auto test_bits = static_cast<std::uint64_t>(static_cast<std::uint32_t>(test.cut)) << 32 |
                         static_cast<std::uint32_t>(test.feature) << 1 |
                         static_cast<std::uint32_t>(test.missing_left);
  const std::uint64_t hash = mix(mix(test_bits, low), high);
  const std::uint32_t found = unique_.find(hash, [&](std::uint32_t i) {
    const Node& n = nodes_[i];
    return n.low == low && n.high == high && n.test.feature == test.feature &&
           n.test.cut == test.cut && n.test.missing_left == test.missing_left;
  });
  if (found != HashIndex::kNone) return found;
  const LocalFeature feature = local(test.feature);
  const auto id = static_cast<ResidualId>(nodes_.size());
  const Value min = std::min(nodes_[low].min, nodes_[high].min);
  const Value max = std::max(nodes_[low].max, nodes_[high].max);
  XCOUNT_ASSERT(min <= max && id > low && id > high);
  const std::uint64_t support =
      nodes_[low].support | nodes_[high].support | std::uint64_t{1} << (feature & 63);
  const std::uint32_t n_leaves =
      std::min(kManyLeaves, nodes_[low].n_leaves + nodes_[high].n_leaves);
  nodes_.push_back({min, max, support, test, feature, low, high, n_leaves});
  unique_.insert(hash, id);
  return id;
}

template <class Value>
ResidualId ResidualStore<Value>::restrict(ResidualId id, LocalFeature feature, Cell cut,
                                          bool keep_before) {
  if (!mentions(id, feature)) return id;
  XCOUNT_ASSERT(has_order(feature));
  XCOUNT_ASSERT(cut >= 0 && cut <= forest_.axis(features_[feature]).n_cells);
  const Node& n = nodes_[id];
  const ResidualId low = n.low;
  const ResidualId high = n.high;
  const Test test = n.test;
  if (n.feature == feature) {
    if (keep_before && test.cut >= cut) return restrict(low, feature, cut, keep_before);
    if (!keep_before && test.cut <= cut) return restrict(high, feature, cut, keep_before);
  }
  // Grows with the nodes, so that small subproblems stay cheap; what it held is forgotten.
  if (restrictions_.size() < std::min(kRestrictions, nodes_.size())) {
    restrictions_.assign(std::min(kRestrictions, 4 * std::bit_ceil(nodes_.size())), {});
  }
  const std::uint64_t hash = mix(mix(id, feature), static_cast<std::uint64_t>(cut) * 2 +
                                                       static_cast<std::uint64_t>(keep_before));
  const RestrictKey& known = restrictions_[hash & (restrictions_.size() - 1)];
  if (known.id == id && known.feature == feature && known.cut == cut &&
      known.keep_before == keep_before && known.generation == generation_) {
    return known.result;
  }
  const ResidualId new_low = restrict(low, feature, cut, keep_before);
  const ResidualId new_high = restrict(high, feature, cut, keep_before);
  const ResidualId result = new_low == low && new_high == high ? id : node(test, new_low, new_high);
  XCOUNT_ASSERT(nodes_[id].min <= nodes_[result].min && nodes_[result].max <= nodes_[id].max);
  restrictions_[hash & (restrictions_.size() - 1)] = {generation_, id,     feature,
                                                      cut,         result, keep_before};
  return result;
}

template <class Value>
std::span<const Run> ResidualStore<Value>::cofactors(ResidualId id, LocalFeature feature) {
  const CofactorKey& key = keys_[cofactor_index(id, feature)];
  return {runs_.data() + key.begin, key.end - key.begin};
}

template <class Value>
std::uint32_t ResidualStore<Value>::find_cofactors(ResidualId id, LocalFeature feature) const {
  return cofactor_table_.find(mix(id, feature), [&](std::uint32_t i) {
    return keys_[i].id == id && keys_[i].feature == feature;
  });
}

template <class Value>
std::uint32_t ResidualStore<Value>::cofactor_index(ResidualId id, LocalFeature feature) {
  const std::uint32_t found = find_cofactors(id, feature);
  if (found != HashIndex::kNone) return found;
  scratch_.clear();
  if (!mentions(id, feature)) {
    scratch_.push_back({0, id});
  } else {
    const ResidualId low = nodes_[id].low;
    const ResidualId high = nodes_[id].high;
    const std::uint32_t low_key = cofactor_index(low, feature);
    const std::uint32_t high_key = cofactor_index(high, feature);
    scratch_.clear();
    if (nodes_[id].feature == feature) {
      split_runs(id, low_key, high_key);
    } else {
      merge_runs(id, low_key, high_key);
    }
  }
  XCOUNT_ASSERT(!scratch_.empty() && scratch_.front().start == 0);
  const std::size_t begin = runs_.size();
  runs_.insert(runs_.end(), scratch_.begin(), scratch_.end());
  keys_.push_back({id, feature, begin, runs_.size()});
  const auto index = static_cast<std::uint32_t>(keys_.size() - 1);
  cofactor_table_.insert(mix(id, feature), index);
  return index;
}

template <class Value>
void ResidualStore<Value>::append(Cell start, ResidualId node) {
  XCOUNT_ASSERT(scratch_.empty() || scratch_.back().start < start);
  XCOUNT_ASSERT(node < nodes_.size());
  if (scratch_.empty() || scratch_.back().node != node) scratch_.push_back({start, node});
}

// The first cell after `cell` that the test may send elsewhere.
template <class Value>
Cell ResidualStore<Value>::next_change(const Test& test, Cell cell) const {
  const Axis& axis = forest_.axis(test.feature);
  if (test.cut < 0) return cell + 1;
  if (cell < test.cut) return test.cut;
  return axis.missing_cell > cell ? axis.missing_cell : axis.n_cells;
}

// The node tests the feature itself: every cell takes the run of the side it goes to.
template <class Value>
void ResidualStore<Value>::split_runs(ResidualId id, std::size_t low_key, std::size_t high_key) {
  const Test test = nodes_[id].test;
  const Cell n_cells = forest_.axis(test.feature).n_cells;
  XCOUNT_ASSERT(low_key < keys_.size() && high_key < keys_.size());
  std::size_t position[2] = {keys_[low_key].begin, keys_[high_key].begin};
  const std::size_t end[2] = {keys_[low_key].end, keys_[high_key].end};
  for (Cell cell = 0; cell < n_cells;) {
    const int side = forest_.goes_left(test, cell) ? 0 : 1;
    std::size_t& at = position[side];
    while (at + 1 < end[side] && runs_[at + 1].start <= cell) ++at;
    append(cell, runs_[at].node);
    Cell next = next_change(test, cell);
    XCOUNT_ASSERT(cell < next && next <= n_cells);
    if (at + 1 < end[side]) next = std::min(next, runs_[at + 1].start);
    cell = next;
  }
}

// The node tests another feature: ask its test above the children's cofactors.
template <class Value>
void ResidualStore<Value>::merge_runs(ResidualId id, std::size_t low_key, std::size_t high_key) {
  const Test test = nodes_[id].test;
  std::size_t low = keys_[low_key].begin;
  std::size_t high = keys_[high_key].begin;
  const std::size_t low_end = keys_[low_key].end;
  const std::size_t high_end = keys_[high_key].end;
  Cell cell = 0;
  while (true) {
    append(cell, node(test, runs_[low].node, runs_[high].node));
    const bool more_low = low + 1 < low_end;
    const bool more_high = high + 1 < high_end;
    if (!more_low && !more_high) return;
    if (!more_high || (more_low && runs_[low + 1].start <= runs_[high + 1].start)) {
      cell = runs_[low + 1].start;
    } else {
      cell = runs_[high + 1].start;
    }
    if (more_low && runs_[low + 1].start == cell) ++low;
    if (more_high && runs_[high + 1].start == cell) ++high;
  }
}

template <class Value>
std::size_t ResidualStore<Value>::bytes() const {
  return held_bytes(nodes_) + unique_.bytes() + held_bytes(keys_) + cofactor_table_.bytes() +
         held_bytes(runs_) + restrictions_.capacity() * sizeof(RestrictKey);
}

template class ResidualStore<std::int64_t>;
template class ResidualStore<Int128>;
template class ResidualStore<Int2304>;

}  // namespace xcount

#include "xcount/exact/group_sums.hpp"

#include <algorithm>
#include <type_traits>

#include "xcount/support/assert.hpp"

namespace xcount {

namespace {

constexpr std::uint64_t kMaxDense = std::uint64_t{1} << 20;
constexpr std::uint64_t kDensePerMass = 4;  // slots of a dense table for each pair of masses

}  // namespace

template <class Value, class Values>
void GroupSums<Value, Values>::clear() {
  keys_.clear();
  features_.clear();
  sums_.clear();
  before_.clear();
  from_.clear();
  known_.clear();
  table_.clear();
  n_steps_ = 0;
}

template <class Value, class Values>
void GroupSums<Value, Values>::release() {
  xcount::release(keys_);
  xcount::release(features_);
  xcount::release(sums_);
  xcount::release(before_);
  xcount::release(from_);
  xcount::release(known_);
  table_.release();
}

template <class Value, class Values>
std::size_t GroupSums<Value, Values>::used() const {
  return used_bytes(keys_) + used_bytes(features_) + used_bytes(sums_) + used_bytes(before_) +
         used_bytes(from_) + used_bytes(known_) + table_.used();
}

template <class Value, class Values>
std::size_t GroupSums<Value, Values>::bytes() const {
  return held_bytes(keys_) + held_bytes(features_) + held_bytes(sums_) + held_bytes(before_) +
         held_bytes(from_) + held_bytes(known_) + table_.bytes();
}

template <class Value, class Values>
typename GroupSums<Value, Values>::Distribution GroupSums<Value, Values>::operator[](
    std::uint32_t number) const {
  XCOUNT_ASSERT(number < known_.size() && known_[number].n_sums > 0);
  const Known& known = known_[number];
  // Of volumes there is one more than of sums, for each distribution.
  const std::uint64_t first_volume = known.first_sum + number;
  return {{sums_.data() + known.first_sum, known.n_sums},
          {before_.data() + first_volume, known.n_sums + std::size_t{1}},
          {from_.data() + first_volume, known.n_sums + std::size_t{1}},
          {features_.data() + known.first_feature, known.n_features},
          known.log2_volume};
}

template <class Value, class Values>
void GroupSums<Value, Values>::add(ResidualId id, std::uint32_t term) {
  const auto& node = store_[id];
  std::size_t home = n_groups_;
  for (std::size_t g = 0; g < n_groups_;) {
    if ((groups_[g].support & node.support) == 0) {
      ++g;
    } else if (home == n_groups_) {
      home = g++;
    } else {  // the residual links two groups
      ResidualGroup& into = groups_[home];
      const ResidualGroup& from = groups_[g];
      into.support |= from.support;
      into.paths *= from.paths;
      into.range += from.range;
      if (from.term != into.term) into.term = ResidualGroup::kMixed;
      into.ids.insert(into.ids.end(), from.ids.begin(), from.ids.end());
      std::swap(groups_[g], groups_[--n_groups_]);
    }
  }
  if (home == n_groups_) {
    if (groups_.size() == n_groups_) groups_.emplace_back();
    ResidualGroup& group = groups_[n_groups_++];
    group.support = 0;
    group.paths = 1.0;
    group.range = 0.0;
    group.term = term;
    group.ids.clear();
  }
  ResidualGroup& group = groups_[home];
  group.support |= node.support;
  group.paths *= node.n_leaves;
  group.range += ValueTraits<Value>::to_number(node.max - node.min);
  if (term != group.term) group.term = ResidualGroup::kMixed;
  group.ids.push_back(id);
  XCOUNT_ASSERT(are_disjoint());
}

template <class Value, class Values>
bool GroupSums<Value, Values>::are_disjoint() const {
  std::uint64_t support = 0;
  for (std::size_t g = 0; g < n_groups_; ++g) {
    if ((support & groups_[g].support) != 0) return false;
    support |= groups_[g].support;
  }
  return true;
}

template <class Value, class Values>
std::uint32_t GroupSums<Value, Values>::find(std::span<const ResidualGroup* const> groups,
                                             std::span<const Stretch> narrowed) {
  key_.clear();
  std::uint64_t support = 0;
  for (const ResidualGroup* group : groups) {
    key_.insert(key_.end(), group->ids.begin(), group->ids.end());
    support |= group->support;
  }
  std::sort(key_.begin(), key_.end());
  const auto n_ids = static_cast<std::uint32_t>(key_.size());
  for (const Stretch& stretch : narrowed) {
    if ((support >> (stretch.feature & 63) & 1) == 0) continue;
    key_.push_back(stretch.feature);
    key_.push_back(static_cast<std::uint32_t>(stretch.begin));
    key_.push_back(static_cast<std::uint32_t>(stretch.end));
  }
  key_.push_back(n_ids);  // which of these are ids
  std::uint64_t hash = 0;
  for (const std::uint32_t part : key_) hash = mix(hash, part);
  std::uint32_t number = table_.find(hash, [&](std::uint32_t i) {
    return known_[i].n_keys == key_.size() &&
           std::equal(key_.begin(), key_.end(),
                      keys_.begin() + static_cast<std::ptrdiff_t>(known_[i].first_key));
  });
  if (number == HashIndex::kNone) {
    number = make(groups, narrowed);
    table_.insert(hash, number);
  }
  return known_[number].n_sums == 0 ? kNone : number;
}

template <class Value, class Values>
std::uint32_t GroupSums<Value, Values>::make(std::span<const ResidualGroup* const> groups,
                                             std::span<const Stretch> narrowed) {
  box_.open();
  sum_.clear();
  for (const ResidualGroup* group : groups) {
    if (!build(*group, narrowed)) {
      sum_.clear();
      break;
    }
    convolve();
    if (sum_.empty()) break;  // all of it weighs nothing: no distribution to add the others to
  }
  XCOUNT_ASSERT(std::is_sorted(sum_.begin(), sum_.end(),
                               [](const Mass& a, const Mass& b) { return a.sum <= b.sum; }));
  known_.push_back({keys_.size(), features_.size(), sums_.size(),
                    static_cast<std::uint32_t>(key_.size()),
                    static_cast<std::uint32_t>(box_.mentioned().size()),
                    static_cast<std::uint32_t>(sum_.size()), box_.log2_volume()});
  keys_.insert(keys_.end(), key_.begin(), key_.end());
  features_.insert(features_.end(), box_.mentioned().begin(), box_.mentioned().end());
  Volume before{};
  for (const Mass& mass : sum_) {
    sums_.push_back(mass.sum);
    before_.push_back(before);
    before += mass.volume;
  }
  before_.push_back(before);
  from_.resize(before_.size(), Volume{});
  for (std::size_t i = sum_.size(); i-- > 0;) {
    Volume* const last = from_.data() + from_.size() - 1 - sum_.size();
    last[i] = last[i + 1] + sum_[i].volume;
  }
  return static_cast<std::uint32_t>(known_.size() - 1);
}

template <class Value, class Values>
bool GroupSums<Value, Values>::build(const ResidualGroup& group,
                                     std::span<const Stretch> narrowed) {
  const bool ordered = box_.add(group.ids, narrowed);
  if (!ordered || !Values::enumerable(box_.log2_volume())) return false;
  built_.clear();
  walk(group, 0, group.ids[0], Value{}, box_.volume());
  merge_equal(built_);
  return true;
}

template <class Value, class Values>
void GroupSums<Value, Values>::walk(const ResidualGroup& group, std::size_t i, ResidualId id,
                                    Value sum, Volume volume) {
  XCOUNT_ASSERT(i < group.ids.size() && volume >= Volume{});
  ++n_steps_;
  const auto& node = store_[id];
  if (node.test.feature == kLeaf) {
    sum += node.min;
    if (i + 1 < group.ids.size()) return walk(group, i + 1, group.ids[i + 1], sum, volume);
    built_.push_back({sum, volume});
    return;
  }
  box_.branch(node, volume,
              [&](ResidualId child, Volume half) { walk(group, i, child, sum, half); });
}

template <class Value, class Values>
void GroupSums<Value, Values>::merge_equal(std::vector<Mass>& masses) {
  std::sort(masses.begin(), masses.end(),
            [](const Mass& a, const Mass& b) { return a.sum < b.sum; });
  std::size_t n = 0;
  for (std::size_t i = 0; i < masses.size(); ++i) {
    if (n > 0 && masses[n - 1].sum == masses[i].sum) {
      masses[n - 1].volume += masses[i].volume;
    } else {
      masses[n++] = masses[i];
    }
  }
  masses.resize(n);
}

// sum_ becomes the distribution of its sums plus those of built_.
template <class Value, class Values>
void GroupSums<Value, Values>::convolve() {
  if (sum_.empty()) return sum_.swap(built_);  // the first group
  n_steps_ += sum_.size() * built_.size();
  product_.clear();
  if (!convolve_densely()) {
    product_.reserve(sum_.size() * built_.size());
    for (const Mass& a : sum_) {
      for (const Mass& b : built_) product_.push_back({a.sum + b.sum, a.volume * b.volume});
    }
    merge_equal(product_);
  }
  sum_.swap(product_);
}

// Adds up in a table with a slot for every sum, if that is not much larger than the list.
template <class Value, class Values>
bool GroupSums<Value, Values>::convolve_densely() {
  if constexpr (std::is_same_v<Value, std::int64_t>) {
    const Value least = sum_.front().sum + built_.front().sum;
    const auto range = static_cast<std::uint64_t>(sum_.back().sum + built_.back().sum - least);
    if (range >= kMaxDense || range >= kDensePerMass * sum_.size() * built_.size()) return false;
    dense_.assign(range + 1, Volume{});
    for (const Mass& a : sum_) {
      Volume* const slots = dense_.data() + (a.sum - sum_.front().sum);
      for (const Mass& b : built_) slots[b.sum - built_.front().sum] += a.volume * b.volume;
    }
    for (std::uint64_t i = 0; i <= range; ++i) {
      if (dense_[i] != Volume{}) product_.push_back({least + static_cast<Value>(i), dense_[i]});
    }
    return true;
  } else {
    return false;
  }
}

template class GroupSums<std::int64_t, CountValues>;
template class GroupSums<Int128, CountValues>;
template class GroupSums<Int2304, CountValues>;
template class GroupSums<std::int64_t, WeightValues>;
template class GroupSums<Int128, WeightValues>;
template class GroupSums<Int2304, WeightValues>;

}  // namespace xcount

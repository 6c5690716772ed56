#include "xcount/exact/small_states.hpp"

#include <algorithm>

#include "xcount/support/assert.hpp"

namespace xcount {

namespace {

constexpr std::size_t kMaxResiduals = 256;  // of a state that is looked at for groups

}  // namespace

template <class Value, class Values>
bool SmallStates<Value, Values>::prepare(std::span<const Stretch> narrowed,
                                         std::uint64_t max_paths) {
  // A walk may be as deep as there are paths, and wide numbers make deep stacks.
  const auto limit = static_cast<double>(max_paths * sizeof(std::int64_t) / sizeof(Value));
  if (!find_groups() || choose_tails(limit) > limit) return false;
  walk_.open();
  for (const Term& term : terms_) walk_.add_term(term.offset);
  if (!make_tails(narrowed)) return false;
  add_walked();
  return walk_.narrow(narrowed);
}

template <class Value, class Values>
bool SmallStates<Value, Values>::find_groups() {
  std::size_t n_residuals = 0;
  for (const Term& term : terms_) n_residuals += term.ids.size();
  if (n_residuals > kMaxResiduals) return false;
  groups_.open();
  for (std::uint32_t t = 0; t < terms_.size(); ++t) {
    for (const ResidualId id : terms_[t].ids) groups_.add(id, t);
  }
  return true;
}

// Groups that belong to one constraint become its tail, the smallest first, as long as that is
// cheaper than walking them. Returns how many combinations of leaves are left to walk.
template <class Value, class Values>
double SmallStates<Value, Values>::choose_tails(double max_work) {
  walked_.clear();
  double paths = 1.0;
  for (const ResidualGroup& group : groups_.groups()) {
    walked_.push_back(&group);
    paths *= group.paths;
  }
  std::sort(walked_.begin(), walked_.end(), [](const ResidualGroup* a, const ResidualGroup* b) {
    return a->paths < b->paths || (a->paths == b->paths && a->ids < b->ids);
  });
  if (tails_.size() < terms_.size()) tails_.resize(terms_.size());
  for (Tail& tail : tails_) {
    tail.groups.clear();
    tail.n_sums = 1.0;
    tail.range = 0.0;
  }
  double work = 0.0;
  std::size_t n_left = walked_.size();
  for (const ResidualGroup*& group : walked_) {
    if (n_left == 1) break;
    if (group->term == ResidualGroup::kMixed) continue;
    XCOUNT_ASSERT(group->term < terms_.size() && group->paths >= 1.0);
    Tail& tail = tails_[group->term];
    const double n_sums = std::min(group->paths, group->range + 1.0);
    work += group->paths + tail.n_sums * n_sums;
    if (work > max_work || work > paths / group->paths) break;
    paths /= group->paths;
    tail.range += group->range;
    tail.n_sums = std::min(tail.n_sums * n_sums, tail.range + 1.0);
    tail.groups.push_back(group);
    group = nullptr;
    --n_left;
  }
  return paths;
}

template <class Value, class Values>
bool SmallStates<Value, Values>::make_tails(std::span<const Stretch> narrowed) {
  XCOUNT_ASSERT(tails_.size() >= terms_.size());
  const std::uint64_t steps_before = groups_.n_steps();
  for (std::size_t t = 0; t < terms_.size(); ++t) {
    if (tails_[t].groups.empty()) continue;
    tails_[t].number = groups_.find(tails_[t].groups, narrowed);
    if (tails_[t].number == groups_.kNone) return false;
  }
  n_group_steps_ = groups_.n_steps() - steps_before;
  for (std::uint32_t t = 0; t < terms_.size(); ++t) {
    if (!tails_[t].groups.empty()) walk_.add_tail(t, groups_[tails_[t].number]);
  }
  return true;
}

template <class Value, class Values>
void SmallStates<Value, Values>::add_walked() {
  std::uint64_t support = 0;
  for (const ResidualGroup* group : walked_) {
    if (group != nullptr) support |= group->support;
  }
  for (std::uint32_t t = 0; t < terms_.size(); ++t) {
    for (const ResidualId id : terms_[t].ids) {
      if ((store_[id].support & support) != 0) walk_.add_residual(id, t);
    }
  }
}

template class SmallStates<std::int64_t, CountValues>;
template class SmallStates<Int128, CountValues>;
template class SmallStates<Int2304, CountValues>;
template class SmallStates<std::int64_t, WeightValues>;
template class SmallStates<Int128, WeightValues>;
template class SmallStates<Int2304, WeightValues>;

}  // namespace xcount

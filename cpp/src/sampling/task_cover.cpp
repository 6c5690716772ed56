#include "xcount/sampling/task_cover.hpp"

#include <algorithm>
#include <stdexcept>

#include "xcount/support/assert.hpp"

namespace xcount {

namespace {

constexpr std::size_t kMaxDifferenceBytes = std::size_t{512} << 20;  // of a task
constexpr Share kLowering = 0.25;  // of the least volume: a few splits of each state
constexpr std::size_t kStatesPerCheck = 16;

}  // namespace

template <class Value>
TaskCover<Value>::TaskCover(const Forest<Value>& forest, DifferenceBuilder<Value>& builder,
                            const Value& threshold, const CoverTask& task, const Check& check)
    : store_(forest),
      gap_(threshold),
      combine_(task.combine),
      eliminator_(store_, values_, threshold) {
  if (builder.is_too_deep()) throw std::length_error("a tree is too deep to make differences of");
  const auto check_all = [&] {
    check();
    if (store_.bytes() > kMaxDifferenceBytes) {
      throw std::length_error("the differences of a pair of masks are too large");
    }
  };
  Frontier<Value> root;
  for (const auto& [a, b] : task.pairs) {
    std::vector<ResidualId> residuals;
    Value offset{};
    builder.build(a, b, store_, residuals, offset, check_all);
    std::sort(residuals.begin(), residuals.end());
    root.add_constraint(offset, residuals);
  }
  root.close(1);
  values_.reset(store_.forest(), store_.features());
  values_.start(solved_);
  eliminator_.allow_memo(kFirstMemoBytes);
  EliminationLimits limits;
  limits.max_paths = 0;  // decides if that is easy, and does no more
  eliminator_.deepen(root[0], combine_, limits, least_, later_, solved_);
  later_share_ = static_cast<Share>(later_.size());
}

template <class Value>
void TaskCover<Value>::refine(std::uint64_t max_work, std::size_t max_bytes,
                              std::uint64_t max_paths) {
  const std::uint64_t end = work_ + max_work;
  EliminationLimits limits;
  // Only the eliminator's tables; its rule is that those it needs take at most half.
  limits.max_bytes = 2 * std::min(max_bytes, ~std::size_t{0} / 4);
  limits.max_paths = max_paths;
  is_full_ = false;
  for (std::size_t n = 0; work_ < end && n_open() > 0; ++n) {
    if (n_split_ == now_.size()) lower();
    if (n % kStatesPerCheck == 0 && bytes() >= max_bytes) is_full_ = true;
    if (is_full_ || !split_next(limits)) return;
  }
}

// Goes on with what was left for later.
template <class Value>
void TaskCover<Value>::lower() {
  XCOUNT_ASSERT(n_split_ == now_.size() && later_.size() > 0);
  now_ = std::move(later_);
  later_.release();
  now_share_ = later_share_;
  later_share_ = 0;
  n_split_ = 0;
  least_ *= kLowering;
}

// Splits the next state; false if there is no room for that.
template <class Value>
bool TaskCover<Value>::split_next(const EliminationLimits& limits) {
  XCOUNT_ASSERT(n_split_ < now_.size());
  const OpenState<Value> state = now_[n_split_];
  const std::size_t n_later = later_.size();
  if (state.volume <= least_) {
    later_.add(state);
  } else {
    const std::uint64_t before = eliminator_.n_steps() + eliminator_.n_looked_at();
    try {
      eliminator_.deepen(state, combine_, limits, least_, later_, solved_);
    } catch (const GiveUp&) {
      later_.truncate(n_later);
      is_full_ = true;
    }
    work_ += eliminator_.n_steps() + eliminator_.n_looked_at() - before;
    if (is_full_) return false;
  }
  for (std::size_t i = n_later; i < later_.size(); ++i) later_share_ += later_.volume(i);
  now_share_ = ++n_split_ == now_.size() ? 0 : now_share_ - state.volume;
  return true;
}

template <class Value>
void TaskCover<Value>::release_caches() {
  eliminator_.release();
  store_.release_caches();
}

template <class Value>
typename TaskCover<Value>::Number TaskCover<Value>::open() const {
  CountValues::Sum sum;
  values_.start(sum);
  for (std::size_t i = 0; i < n_open(); ++i) values_.add_box(sum, state(i).box);
  return sum;
}

template <class Value>
std::size_t TaskCover<Value>::bytes() const {
  return store_.bytes() + values_.bytes() + eliminator_.bytes() + now_.bytes() + later_.bytes();
}

template <class Value>
Cell TaskCover<Value>::draw_cell(LocalFeature feature, Random& random, Draw& draw) const {
  Stretch& left = draw.left[feature];
  XCOUNT_ASSERT(left.begin < left.end);
  if (!draw.is_drawn[feature]) {
    draw.is_drawn[feature] = true;
    left.begin +=
        static_cast<Cell>(random.below(static_cast<std::uint32_t>(left.end - left.begin)));
  }
  return left.begin;
}

template <class Value>
bool TaskCover<Value>::sample(std::size_t number, Random& random, Draw& draw) const {
  const OpenState<Value> state = this->state(number);
  const std::size_t n_features = store_.features().size();
  draw.is_drawn.assign(n_features, false);
  draw.left.resize(n_features);
  for (LocalFeature f = 0; f < n_features; ++f) {
    draw.left[f] = {f, 0, store_.forest().axis(feature(f)).n_cells};
  }
  for (const Stretch& stretch : state.box) draw.left[stretch.feature] = stretch;
  const bool any = combine_ == Combine::kAny;
  Value sum{};
  std::size_t term = 0;
  for (const ResidualId root : state.ids) {
    if (root == OpenState<Value>::kSeparator) {
      XCOUNT_ASSERT(term < state.offsets.size());
      if (gap_.is_exceeded(sum + state.offsets[term++]) == any) return any;
      sum = Value{};
      continue;
    }
    ResidualId id = root;
    while (!store_.is_leaf(id)) {
      const auto& node = store_[id];
      const Cell cell = draw_cell(node.feature, random, draw);
      id = store_.forest().goes_left(node.test, cell) ? node.low : node.high;
    }
    sum += store_[id].min;
  }
  return !any;
}

template class TaskCover<std::int64_t>;
template class TaskCover<Int128>;
template class TaskCover<Int2304>;

}  // namespace xcount

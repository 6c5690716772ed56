#include "xcount/worst/pair_search.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "xcount/support/assert.hpp"
#include "xcount/support/parallel.hpp"

namespace xcount {

namespace {

constexpr std::size_t kFirstClimbs = 8;        // of each root, before the search
constexpr std::uint64_t kEarlyBoxes = 24;      // each of the first boxes is climbed from
constexpr std::uint64_t kBoxesPerClimb = 100;  // later, one of so many

}  // namespace

// Splits one box at a time, and climbs from some of them: one per thread.
template <class Value, class Objective>
class PairSearch<Value, Objective>::Evaluator {
 public:
  explicit Evaluator(const PairSearch& search)
      : search_(search),
        splitter_(search.trees_, search.reach_, search.objective_),
        climber_(search.trees_, search.reach_) {}

  Climber<Value>& climber() { return climber_; }

  Outcome evaluate(const Node& node) {
    Outcome outcome;
    auto found = splitter_.split(node.box, node.score, *node.leaves, search_.bar_);
    if (found.fate == Fate::kConstant) outcome.point = corner(node.box);
    if (found.fate != Fate::kOpen) return outcome;
    if (climbs(node)) outcome.point = climbed(node);
    outcome.children = std::move(found.children);
    if (!outcome.children.empty()) outcome.leaves = search_.keeper_.keep(std::move(found.leaves));
    return outcome;
  }

 private:
  [[nodiscard]] PairPoint corner(const PairBox& box) const {
    PairPoint point;
    for (const CellRun& run : box) point.push_back(run.low);
    search_.reach_.set_nearest(box, point);
    return point;
  }

  [[nodiscard]] static bool climbs(const Node& node) {
    return node.number < kEarlyBoxes || node.number % kBoxesPerClimb == 0;
  }
  [[nodiscard]] PairPoint climbed(const Node& node) {
    PairPoint point = splitter_.best_cells();
    if (!search_.reach_.allows(point)) search_.reach_.set_nearest(node.box, point);
    Random random(search_.seed_, 1, node.number);
    climber_.climb(search_.objective_, search_.roots_[node.root], point, random);
    return point;
  }

  const PairSearch& search_;
  BoxSplitter<Value, Objective> splitter_;
  Climber<Value> climber_;
};

template <class Value, class Objective>
PairSearch<Value, Objective>::PairSearch(const Forest<Value>& forest,
                                         std::vector<Feature> sensitive,
                                         std::optional<std::int64_t> distance,
                                         const Objective& objective,
                                         const std::vector<PairBox>& roots, const Value& floor,
                                         std::uint64_t seed)
    : forest_(forest),
      trees_(forest, std::move(sensitive), Objective::kSums > 1,
             PairTrees<Value>::max_leaves(forest.roots.size())),
      reach_(forest, trees_.sensitive(), trees_.start_of(0), distance),
      objective_(objective),
      seed_(seed) {
  bar_.difference = floor;
  if constexpr (std::is_same_v<Objective, MarginObjective>) {
    bar_.score = trees_.rounded_down(floor);
  } else {
    bar_.score = objective.floor;
  }
  objective_.round_to(trees_.shift());
  start(roots);
}

template <class Value, class Objective>
PairSearch<Value, Objective>::~PairSearch() = default;

template <class Value, class Objective>
void PairSearch<Value, Objective>::start(const std::vector<PairBox>& roots) {
  const std::shared_ptr<const Leaves> shared = Leaves::all(trees_);
  Sums top{};
  for (const Factor<Value>& factor : trees_.factors()) top[factor.sum] += factor.values.front();
  for (const PairBox& runs : roots) {
    if (runs.size() != 2 * trees_.sensitive().size()) {
      throw std::invalid_argument("largest change: a box has a run too many, or too few");
    }
    PairBox box = shared->box;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      CellRun& own = box[trees_.start_of(0) + i];
      if (runs[i].low < 0 || runs[i].low > runs[i].high || runs[i].high > own.high) {
        throw std::invalid_argument("largest change: a box has cells that do not exist");
      }
      own = runs[i];
    }
    if (!reach_.trim(box)) continue;
    roots_.push_back(box);
    push(objective_.score(top), roots_.size() - 1, std::move(box), shared);
  }
}

template <class Value, class Objective>
void PairSearch<Value, Objective>::push(Score score, std::size_t root, PairBox box,
                                        std::shared_ptr<const Leaves> leaves) {
  open_.push_back({score, next_number_++, root, std::move(box), std::move(leaves)});
  std::push_heap(open_.begin(), open_.end());
}

template <class Value, class Objective>
auto PairSearch<Value, Objective>::pair_of(const PairPoint& point) const -> Pair {
  Pair pair;
  pair.start.assign(forest_.axes.size(), 0);
  pair.target = pair.start;
  for (std::size_t v = 0; v < point.size(); ++v) {
    const PairVariable& own = trees_.variables()[v];
    const auto feature = static_cast<std::size_t>(own.feature);
    if (own.role != Role::kTarget) pair.start[feature] = point[v];
    if (own.role != Role::kStart) pair.target[feature] = point[v];
  }
  return pair;
}

template <class Value, class Objective>
void PairSearch<Value, Objective>::try_point(const PairPoint& point) {
  XCOUNT_ASSERT(reach_.allows(point));
  Pair pair = pair_of(point);
  const Value target = forest_.sum(pair.target), start = forest_.sum(pair.start);
  const Value difference = target - start;
  if constexpr (std::is_same_v<Objective, MarginObjective>) {
    if (difference <= bar_.difference) return;
    bar_.score = trees_.rounded_down(difference);
  } else {
    const auto number = [&](const Value& value) {
      const bool is_negative = value < Value{};
      const double size =
          ValueTraits<Value>::scaled(is_negative ? Value{} - value : value, -shift());
      return is_negative ? -size : size;
    };
    const double found = objective_.change(number(target), number(start));
    if (!(found > bar_.score)) return;
    bar_.score = found;
  }
  bar_.difference = difference;
  pair_ = std::move(pair);
  prune();
}

// Gives back the memory of boxes that cannot beat the best pair, if they are many.
template <class Value, class Objective>
void PairSearch<Value, Objective>::prune() {
  const auto dead = [&](const Node& node) { return !bar_.may_beat(node.score); };
  if (std::erase_if(open_, dead) > 0) std::make_heap(open_.begin(), open_.end());
}

template <class Value, class Objective>
void PairSearch<Value, Objective>::climb_from_roots() {
  Climber<Value>& climber = evaluators_.front()->climber();
  PairPoint point;
  const std::size_t n = std::max<std::size_t>(1, kFirstClimbs / roots_.size());
  for (std::size_t root = 0; root < roots_.size(); ++root) {
    for (std::size_t i = 0; i < n; ++i) {
      Random random(seed_, 0, root * n + i);
      climber.draw(roots_[root], point, random);
      climber.climb(objective_, roots_[root], point, random);
      try_point(point);
    }
  }
}

template <class Value, class Objective>
void PairSearch<Value, Objective>::advance(std::uint64_t max_boxes, unsigned n_threads,
                                           std::size_t max_bytes, bool until_found, Stop& stop) {
  const std::size_t n_evaluators = std::min<std::size_t>(std::max(1U, n_threads), kBatch);
  while (evaluators_.size() < n_evaluators)
    evaluators_.push_back(std::make_unique<Evaluator>(*this));
  keeper_.set_limit(max_bytes / 2);
  is_full_ = false;
  if (n_boxes_ == 0 && !open_.empty()) climb_from_roots();
  std::vector<Node> batch;
  std::vector<Outcome> outcomes;
  const std::uint64_t end = n_boxes_ + std::min(max_boxes, ~n_boxes_);
  while (!open_.empty() && n_boxes_ < end && !(until_found && pair_)) {
    if (bytes() > max_bytes) {
      is_full_ = true;
      return;
    }
    if (stop.is_over()) return;
    batch.clear();
    while (batch.size() < kBatch && !open_.empty()) {
      std::pop_heap(open_.begin(), open_.end());
      batch.push_back(std::move(open_.back()));
      open_.pop_back();
    }
    outcomes.assign(batch.size(), {});
    const std::size_t n = std::min(n_evaluators, batch.size());
    parallel(n, static_cast<unsigned>(n), [&](std::size_t worker) {
      for (std::size_t i = worker; i < batch.size(); i += n) {
        outcomes[i] = evaluators_[worker]->evaluate(batch[i]);
      }
    });
    n_boxes_ += batch.size();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (outcomes[i].point) try_point(*outcomes[i].point);
      const auto& leaves = outcomes[i].leaves ? outcomes[i].leaves : batch[i].leaves;
      for (Child& child : outcomes[i].children) {
        if (bar_.may_beat(child.score)) {
          push(child.score, batch[i].root, std::move(child.box), leaves);
        }
      }
    }
  }
}

template <class Value, class Objective>
auto PairSearch<Value, Objective>::high() const -> Score {
  Score most = bar_.score;
  if constexpr (std::is_same_v<Objective, MarginObjective>) {
    // A floor or a best difference that is no multiple of 2^shift lies above low.
    if (shift() > 0) ++most;
  }
  return open_.empty() ? most : std::max(most, open_.front().score);
}

template <class Value, class Objective>
std::size_t PairSearch<Value, Objective>::bytes() const {
  const std::size_t box = sizeof(CellRun) * trees_.variables().size() + 32;
  return trees_.bytes() + keeper_.bytes() + open_.capacity() * sizeof(Node) + open_.size() * box;
}

template class PairSearch<std::int64_t, MarginObjective>;
template class PairSearch<Int128, MarginObjective>;
template class PairSearch<Int2304, MarginObjective>;
template class PairSearch<std::int64_t, ProbabilityObjective>;
template class PairSearch<Int128, ProbabilityObjective>;
template class PairSearch<Int2304, ProbabilityObjective>;

}  // namespace xcount

#include "xcount/worst/climb.hpp"

#include <algorithm>

namespace xcount {

namespace {

template <class Value>
double as_number(const Value& value, int shift) {
  const bool is_negative = value < Value{};
  const Value size = is_negative ? Value{} - value : value;
  const double number = ValueTraits<Value>::scaled(size, -shift);
  return is_negative ? -number : number;
}

}  // namespace

template <class Value>
Climber<Value>::Climber(const PairTrees<Value>& trees, const PairReach& reach)
    : trees_(trees), reach_(reach), order_(trees.variables().size()) {
  for (const Value& value : trees.forest().values) {
    values_.push_back(as_number(value, trees.shift()));
  }
  start_.resize(trees.forest().axes.size());
  target_ = start_;
}

template <class Value>
void Climber<Value>::set_regions(const PairPoint& point) {
  for (std::size_t v = 0; v < point.size(); ++v) set(v, point[v]);
}

template <class Value>
void Climber<Value>::set(std::size_t variable, Cell cell) {
  const PairVariable& own = trees_.variables()[variable];
  if (own.role != Role::kTarget) start_[static_cast<std::size_t>(own.feature)] = cell;
  if (own.role != Role::kStart) target_[static_cast<std::size_t>(own.feature)] = cell;
}

template <class Value>
void Climber<Value>::shuffle(Random& random) {
  for (std::size_t i = order_.size(); i > 1; --i) {
    std::swap(order_[i - 1], order_[random.below(static_cast<std::uint32_t>(i))]);
  }
}

template <class Value>
void Climber<Value>::draw(const PairBox& box, PairPoint& point, Random& random) const {
  point.resize(box.size());
  for (std::size_t v = 0; v < box.size(); ++v) {
    point[v] =
        box[v].low + static_cast<Cell>(random.below(static_cast<std::uint32_t>(box[v].size())));
  }
  if (reach_.allows(point)) return;
  // Fix the starts that were drawn, and go to the nearest targets.
  PairBox near = box;
  for (std::size_t v = 0; v < box.size(); ++v) {
    if (trees_.variables()[v].role == Role::kStart) near[v] = {point[v], point[v]};
  }
  reach_.set_nearest(near, point);
  if (!reach_.allows(point)) reach_.set_nearest(box, point);
}

template <class Value>
void Climber<Value>::walk(std::vector<Cell>& region, Feature feature, const CellRun& run,
                          std::vector<double>& along) const {
  const Forest<Value>& forest = trees_.forest();
  along.assign(static_cast<std::size_t>(run.size()) + 1, 0.0);
  const auto leaf_sum = [&] {
    double total = 0;
    for (const NodeIndex root : trees_.roots()) {
      total += values_[static_cast<std::size_t>(forest.leaf(root, region))];
    }
    return total;
  };
  if (run.low == run.high || feature == kLeaf) {
    if (feature != kLeaf) region[static_cast<std::size_t>(feature)] = run.low;
    along[0] = leaf_sum();
    return;
  }
  const Axis& axis = forest.axis(feature);
  const auto place = static_cast<std::size_t>(feature);
  const Cell own = region[place];
  const bool by_cell = !axis.all_prefixes;
  const CellRun ordered{run.low, by_cell ? run.low - 1 : std::min(run.high, axis.n_ordered() - 1)};
  if (ordered.low <= ordered.high) {
    for (const NodeIndex root : trees_.roots()) walk_ordered(root, region, feature, ordered, along);
    for (std::size_t i = 1; i < static_cast<std::size_t>(ordered.size()); ++i) {
      along[i] += along[i - 1];
    }
  }
  for (Cell cell = ordered.high + 1; cell <= run.high; ++cell) {
    region[place] = cell;
    along[static_cast<std::size_t>(cell - run.low)] = leaf_sum();
  }
  region[place] = own;
}

template <class Value>
void Climber<Value>::walk_ordered(NodeIndex root, const std::vector<Cell>& region, Feature feature,
                                  const CellRun& run, std::vector<double>& along) const {
  const Forest<Value>& forest = trees_.forest();
  struct Open {
    NodeIndex node;
    CellRun run;
  };
  std::vector<Open> open{{root, run}};
  while (!open.empty()) {
    auto [node, cells] = open.back();
    open.pop_back();
    while (!forest.is_leaf(node)) {
      const Test& test = forest.test(node);
      const auto i = static_cast<std::size_t>(node);
      if (test.feature != feature) {
        node = forest.child(node, region[static_cast<std::size_t>(test.feature)]);
      } else if (cells.high < test.cut) {
        node = forest.left[i];
      } else if (cells.low >= test.cut) {
        node = forest.right[i];
      } else {
        open.push_back({forest.right[i], {test.cut, cells.high}});
        cells.high = test.cut - 1;
        node = forest.left[i];
      }
    }
    const double value = values_[static_cast<std::size_t>(node)];
    along[static_cast<std::size_t>(cells.low - run.low)] += value;
    along[static_cast<std::size_t>(cells.high + 1 - run.low)] -= value;
  }
}

template class Climber<std::int64_t>;
template class Climber<Int128>;
template class Climber<Int2304>;

}  // namespace xcount

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
constexpr double kLeastGain = 1e-3;            // of a side, in the product of the gains

constexpr std::size_t kMaxPairLeaves = 2'000'000;  // of all factors, roughly
constexpr std::size_t kLeastLeaves = 1024;         // that a factor may have in any case

std::size_t max_leaves(std::size_t n_trees) {
  return std::max(kLeastLeaves, kMaxPairLeaves / std::max<std::size_t>(1, n_trees));
}

std::uint64_t bits_between(std::size_t first, std::size_t last) {
  return (~std::uint64_t{0} >> (63 - last)) & (~std::uint64_t{0} << first);
}

// value / 2^shift, rounded down.
Bound rounded_down(std::int64_t value, int /*shift*/) { return value; }
Bound rounded_down(Int128 value, int shift) { return static_cast<Bound>(value >> shift); }
Bound rounded_down(const Int2304& value, int shift) {
  const auto limb = static_cast<std::size_t>(shift) / 64;
  const int bit = shift % 64;
  std::uint64_t word = value.limbs[limb] >> bit;
  if (bit != 0 && limb + 1 < value.limbs.size()) word |= value.limbs[limb + 1] << (64 - bit);
  return static_cast<Bound>(word);
}

}  // namespace

// Evaluates one box at a time, with tables of its own: one per thread.
template <class Value, class Objective>
class PairSearch<Value, Objective>::Evaluator {
 public:
  explicit Evaluator(const PairSearch& search)
      : search_(search), trees_(search.trees_), climber_(search.trees_, search.reach_) {
    const auto& variables = trees_.variables();
    for (const PairVariable& variable : variables) {
      offset_.push_back(n_cells_);
      n_cells_ += static_cast<std::size_t>(variable.n_cells) + 1;
    }
    for (auto* table : {&cell_, &below_, &from_}) table->resize(n_cells_ * kSums);
    own_.resize(variables.size() * kSums);
    best_cell_.resize(variables.size());
    std::size_t most = 1;
    for (const Factor<Value>& factor : trees_.factors()) {
      for (const Segments& segments : factor.segments) {
        most = std::max(most, 64 * segments.n_words());
      }
    }
    largest_.resize(most);
  }

  Climber<Value>& climber() { return climber_; }

  Outcome evaluate(const Node& node) {
    Outcome outcome;
    clear(node.box);
    auto found = std::make_unique<Leaves>();
    reach(node, *found);
    if (found->factor.empty()) {
      if (is_better(*found)) outcome.point = corner(node.box);
      return outcome;
    }
    if (!search_.may_beat(objective().score(total_)) || !exact_may_beat(*found)) return outcome;
    PairBox box = node.box;
    Score score = std::min(node.score, objective().score(total_));
    if (!bound_cells(box, score) || !search_.may_beat(score)) return outcome;
    if (climbs(node)) outcome.point = climbed(node);
    split(node, *found, box, score, outcome);
    if (!outcome.children.empty()) {
      outcome.leaves = search_.keep(std::move(found));
    }
    return outcome;
  }

 private:
  static constexpr std::size_t kSums = Objective::kSums;

  [[nodiscard]] const Objective& objective() const { return search_.objective_; }
  [[nodiscard]] std::size_t at(std::size_t sum, std::size_t variable, Cell cell) const {
    return sum * n_cells_ + offset_[variable] + static_cast<std::size_t>(cell);
  }

  void clear(const PairBox& box) {
    for (std::size_t sum = 0; sum < kSums; ++sum) {
      for (std::size_t v = 0; v < box.size(); ++v) {
        const auto size = static_cast<std::ptrdiff_t>(box[v].size()) + 1;
        const auto first = static_cast<std::ptrdiff_t>(at(sum, v, 0));
        for (auto* table : {&cell_, &below_, &from_}) {
          std::fill_n(table->begin() + first, size, Bound{0});
        }
      }
    }
    std::fill(own_.begin(), own_.end(), Bound{0});
    total_ = {};
    exact_total_ = {};
  }

  // Finds the leaves of each factor in the box, and adds up bounds for all cells and cuts.
  void reach(const Node& node, Leaves& found) {
    const Leaves& around = *node.leaves;
    found.box = node.box;
    found.constant = around.constant;
    found.exact = around.exact;
    found.leaf.reserve(around.leaf.size());
    total_ = around.constant;
    exact_total_ = around.exact;
    for (std::size_t i = 0; i < around.factor.size(); ++i) {
      const Factor<Value>& factor = trees_.factors()[around.factor[i]];
      const std::size_t start = found.leaf.size();
      filter(factor, around, i, node.box, found.leaf);
      const std::uint16_t first = found.leaf[start], last = found.leaf.back();
      total_[factor.sum] += factor.values[first];
      add_exact(factor, first, exact_total_[factor.sum]);
      if (is_constant(factor, first, last)) {
        found.constant[factor.sum] += factor.values[first];
        add_exact(factor, first, found.exact[factor.sum]);
        found.leaf.resize(start);
        continue;
      }
      found.factor.push_back(around.factor[i]);
      found.first.push_back(static_cast<std::uint32_t>(start));
      add_bounds(factor, node.box, found.leaf.data() + start, found.leaf.size() - start);
    }
    found.first.push_back(static_cast<std::uint32_t>(found.leaf.size()));
  }

  static bool is_constant(const Factor<Value>& factor, std::uint16_t first, std::uint16_t last) {
    if (factor.exact.empty()) return factor.values[first] == factor.values[last];
    return factor.exact[first] == factor.exact[last];
  }
  static void add_exact(const Factor<Value>& factor, std::uint16_t leaf, Value& sum) {
    sum += factor.exact.empty() ? Value(factor.values[leaf]) : factor.exact[leaf];
  }

  // Appends the leaves of a factor that the box reaches, of those that the box around it reaches.
  static void filter(const Factor<Value>& factor, const Leaves& around, std::size_t i,
                     const PairBox& box, std::vector<std::uint16_t>& out) {
    const std::size_t start = out.size();
    out.insert(out.end(), around.leaf.begin() + around.first[i],
               around.leaf.begin() + around.first[i + 1]);
    for (const Segments& segments : factor.segments) {
      const CellRun &run = box[segments.variable], &wider = around.box[segments.variable];
      const std::size_t low = segment(segments, run.low), high = segment(segments, run.high);
      if (low == segment(segments, wider.low) && high == segment(segments, wider.high)) continue;
      std::uint16_t* kept = out.data() + start;
      const std::uint16_t* const end = out.data() + out.size();
      const std::size_t word = low / 64;
      if (word == high / 64) {
        const std::uint64_t bits = bits_between(low % 64, high % 64);
        const std::uint64_t* column = factor.column(segments.first_column + word);
        for (const std::uint16_t* leaf = kept; leaf != end; ++leaf) {
          *kept = *leaf;
          kept += (column[*leaf] & bits) != 0 ? 1 : 0;
        }
      } else {
        for (const std::uint16_t* leaf = kept; leaf != end; ++leaf) {
          const bool holds = holds_any(factor, segments, *leaf, low, high);
          *kept = *leaf;
          kept += holds ? 1 : 0;
        }
      }
      out.resize(static_cast<std::size_t>(kept - out.data()));
    }
    XCOUNT_ASSERT(out.size() > start);
  }
  static std::size_t segment(const Segments& segments, Cell cell) {
    return segments.of_cell[static_cast<std::size_t>(cell)];
  }
  static bool holds_any(const Factor<Value>& factor, const Segments& segments, std::uint16_t leaf,
                        std::size_t low, std::size_t high) {
    for (std::size_t word = low / 64; word <= high / 64; ++word) {
      const std::size_t first = word == low / 64 ? low % 64 : 0;
      const std::size_t last = word == high / 64 ? high % 64 : 63;
      const std::uint64_t bits = bits_between(first, last);
      if ((factor.column(segments.first_column + word)[leaf] & bits) != 0) return true;
    }
    return false;
  }

  // Adds a factor's bounds for each cell, and below and from each cell, of each variable.
  void add_bounds(const Factor<Value>& factor, const PairBox& box, const std::uint16_t* leaves,
                  std::size_t n) {
    const Bound top = factor.values[leaves[0]];
    for (const Segments& segments : factor.segments) {
      const std::size_t v = segments.variable;
      const Cell base = box[v].low;
      const std::size_t low = segment(segments, base), high = segment(segments, box[v].high);
      if (low == high) continue;
      own_[factor.sum * box.size() + v] += top;
      for (std::size_t word = low / 64; word <= high / 64; ++word) {
        const std::size_t first = word == low / 64 ? low % 64 : 0;
        const std::size_t last = word == high / 64 ? high % 64 : 63;
        find_largest(factor, factor.column(segments.first_column + word), leaves, n,
                     bits_between(first, last), &largest_[64 * word]);
      }
      Bound* cell = &cell_[at(factor.sum, v, 0)];
      Bound* below = &below_[at(factor.sum, v, 0)];
      Bound* from = &from_[at(factor.sum, v, 0)];
      const auto place = [&](std::size_t s) {
        return static_cast<std::size_t>(std::max(segments.starts[s], base) - base);
      };
      Bound previous = largest_[low], highest = previous;
      cell[0] += previous;
      below[0] += previous;
      for (std::size_t s = low + 1; s <= high; ++s) {
        const std::size_t i = place(s);
        cell[i] += largest_[s] - previous;
        previous = largest_[s];
        if (previous > highest) {
          below[i] += previous - highest;
          highest = previous;
        }
      }
      highest = largest_[high];
      for (std::size_t s = high; s-- > low;) {
        if (largest_[s] <= highest) continue;
        from[place(s + 1)] += highest - largest_[s];
        highest = largest_[s];
      }
      from[0] += highest;
    }
  }

  // The largest value of the leaves that hold each of these segments.
  static void find_largest(const Factor<Value>& factor, const std::uint64_t* column,
                           const std::uint16_t* leaves, std::size_t n, std::uint64_t wanted,
                           Bound* largest) {
    for (std::size_t i = 0; i < n; ++i) {
      std::uint64_t held = column[leaves[i]] & wanted;
      if (held == 0) continue;
      wanted ^= held;
      const Bound value = factor.values[leaves[i]];
      do {
        largest[std::countr_zero(held)] = value;
        held &= held - 1;
      } while (held != 0);
      if (wanted == 0) return;
    }
    XCOUNT_ASSERT(wanted == 0);
  }

  [[nodiscard]] Sums sums_at(const std::vector<Bound>& table, std::size_t v, Cell cell) const {
    Sums sums;
    for (std::size_t sum = 0; sum < kSums; ++sum) sums[sum] = table[at(sum, v, cell)];
    return sums;
  }
  [[nodiscard]] Score cell_score(std::size_t v, Cell cell) const {
    return objective().score(sums_at(cell_, v, cell));
  }

  // Turns differences into bounds, cuts off cells that cannot beat the best pair, and lowers the
  // score of the box to the best of a variable's cells. False if nothing is left.
  bool bound_cells(PairBox& box, Score& score) {
    const std::size_t n_variables = box.size();
    for (std::size_t v = 0; v < n_variables; ++v) {
      best_cell_[v] = box[v].low;
      const Cell n = box[v].size();
      if (n < 2) continue;
      for (std::size_t sum = 0; sum < kSums; ++sum) {
        const Bound others = total_[sum] - own_[sum * n_variables + v];
        for (auto* table : {&cell_, &below_, &from_}) {
          Bound running = others;
          Bound* entry = &(*table)[at(sum, v, 0)];
          for (Cell c = 0; c < n; ++c, ++entry) *entry = running += *entry;
        }
      }
      Cell first = n, last = -1, best = 0;
      Score most = cell_score(v, 0);
      for (Cell c = 0; c < n; ++c) {
        const Score own = cell_score(v, c);
        if (own > most) {
          most = own;
          best = c;
        }
        if (search_.may_beat(own)) {
          first = std::min(first, c);
          last = c;
        }
      }
      if (last < 0) return false;
      best_cell_[v] = box[v].low + best;
      score = std::min(score, most);
      box[v] = {box[v].low + first, box[v].low + last};
    }
    return true;
  }

  struct Cut {
    std::size_t variable = 0;
    Cell cell = -1;  // the first cell of the upper side, counted from the box's first
    double gain = -1;
  };

  void split(const Node& node, const Leaves& found, const PairBox& box, Score score,
             Outcome& outcome) const {
    Cut cut = best_cut(node.box, box);
    if (cut.cell < 0) cut = any_cut(found, node.box, box);
    if (cut.cell < 0) {
      XCOUNT_ASSERT(box != node.box);
      add_child(box, score, outcome);
      return;
    }
    const Cell base = node.box[cut.variable].low;
    for (const bool is_upper : {false, true}) {
      PairBox child = box;
      CellRun& run = child[cut.variable];
      (is_upper ? run.low : run.high) = base + cut.cell - (is_upper ? 0 : 1);
      // Dead cells beside the cut go, too.
      const auto lives = [&](Cell c) {
        return search_.may_beat(cell_score(cut.variable, c - base));
      };
      while (run.low < run.high && !lives(run.low)) ++run.low;
      while (run.low < run.high && !lives(run.high)) --run.high;
      Score most = cell_score(cut.variable, run.low - base);
      for (Cell c = run.low; c <= run.high; ++c) {
        most = std::max(most, cell_score(cut.variable, c - base));
      }
      add_child(std::move(child), std::min(score, most), outcome);
    }
  }
  void add_child(PairBox child, Score score, Outcome& outcome) const {
    if (search_.may_beat(score) && search_.reach_.trim(child)) {
      outcome.children.push_back({score, std::move(child)});
    }
  }

  // The cut with the largest product of gains, among those at which a bound changes.
  [[nodiscard]] Cut best_cut(const PairBox& whole, const PairBox& box) const {
    const auto number = [](Score score) { return static_cast<double>(score); };
    const Score top = objective().score(total_);
    const double most = number(top) - number(search_.low_);
    Cut best;
    for (std::size_t v = 0; v < box.size(); ++v) {
      const Cell low = box[v].low - whole[v].low, high = box[v].high - whole[v].low;
      for (Cell c = low + 1; c <= high; ++c) {
        if (sums_at(cell_, v, c) == sums_at(cell_, v, c - 1)) continue;
        const double lower = number(top) - number(objective().score(sums_at(below_, v, c - 1)));
        const double upper = number(top) - number(objective().score(sums_at(from_, v, c)));
        const double gain = (std::min(lower, most) + kLeastGain * most) *
                            (std::min(upper, most) + kLeastGain * most);
        if (gain > best.gain) best = {v, c, gain};
      }
    }
    return best;
  }
  // A cut at which some factor changes, for boxes in which no bound of a cell does.
  [[nodiscard]] Cut any_cut(const Leaves& found, const PairBox& whole, const PairBox& box) const {
    for (const std::uint32_t number : found.factor) {
      for (const Segments& segments : trees_.factors()[number].segments) {
        const CellRun& run = box[segments.variable];
        const std::size_t next = segment(segments, run.low) + 1;
        if (next < segments.size() && segments.starts[next] <= run.high) {
          return {segments.variable, segments.starts[next] - whole[segments.variable].low, 0};
        }
      }
    }
    return {};
  }

  // Whether the sum of largest values, not rounded, is more than the best difference.
  [[nodiscard]] bool exact_may_beat(const Leaves& /*found*/) const {
    if constexpr (std::is_same_v<Objective, MarginObjective>) {
      if (search_.shift() > 0) return search_.difference_ < exact_total_[kDifferenceSum];
    }
    return true;
  }
  // Whether a box in which all factors are constant is better than the best pair.
  [[nodiscard]] bool is_better(const Leaves& found) const {
    if constexpr (std::is_same_v<Objective, MarginObjective>) {
      return search_.difference_ < found.exact[kDifferenceSum];
    } else {
      return search_.may_beat(objective().score(found.constant));
    }
  }
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
    PairPoint point(best_cell_.begin(), best_cell_.end());
    if (!search_.reach_.allows(point)) search_.reach_.set_nearest(node.box, point);
    Random random(search_.seed_, 1, node.number);
    climber_.climb(objective(), search_.roots_[node.root], point, random);
    return point;
  }

  const PairSearch& search_;
  const PairTrees<Value>& trees_;
  Climber<Value> climber_;
  std::size_t n_cells_ = 0;
  std::vector<std::size_t> offset_;  // per variable, of its cells in the tables
  // Per sum, variable and cell, counted from the box's first: bounds of the sum in the cell, in
  // the cells up to it, and from it on. While they are added up, differences of neighbours.
  std::vector<Bound> cell_, below_, from_;
  std::vector<Bound> own_;      // per sum and variable: the part of the factors that test it
  std::vector<Bound> largest_;  // per segment
  std::vector<Cell> best_cell_;
  Sums total_{};
  std::array<Value, kSums> exact_total_{};
};

template <class Value, class Objective>
PairSearch<Value, Objective>::PairSearch(const Forest<Value>& forest,
                                         std::vector<Feature> sensitive,
                                         std::optional<std::int64_t> distance,
                                         const Objective& objective,
                                         const std::vector<PairBox>& roots, const Value& floor,
                                         std::uint64_t seed)
    : forest_(forest),
      trees_(forest, std::move(sensitive), Objective::kSums > 1, max_leaves(forest.roots.size())),
      reach_(forest, trees_.sensitive(), trees_.start_of(0), distance),
      objective_(objective),
      seed_(seed),
      difference_(floor) {
  if constexpr (std::is_same_v<Objective, MarginObjective>) {
    low_ = rounded_down(floor, trees_.shift());
  } else {
    low_ = objective.floor;
  }
  objective_.round_to(trees_.shift());
  start(roots);
}

template <class Value, class Objective>
PairSearch<Value, Objective>::~PairSearch() = default;

template <class Value, class Objective>
void PairSearch<Value, Objective>::start(const std::vector<PairBox>& roots) {
  PairBox all;
  for (const PairVariable& variable : trees_.variables()) all.push_back({0, variable.n_cells - 1});
  auto leaves = std::make_unique<Leaves>();
  leaves->box = all;
  Sums top{};
  for (std::size_t i = 0; i < trees_.factors().size(); ++i) {
    top[trees_.factors()[i].sum] += trees_.factors()[i].values.front();
    leaves->factor.push_back(static_cast<std::uint32_t>(i));
    leaves->first.push_back(static_cast<std::uint32_t>(leaves->leaf.size()));
    for (std::size_t leaf = 0; leaf < trees_.factors()[i].n_leaves(); ++leaf) {
      leaves->leaf.push_back(static_cast<std::uint16_t>(leaf));
    }
  }
  leaves->first.push_back(static_cast<std::uint32_t>(leaves->leaf.size()));
  const std::shared_ptr<const Leaves> shared = std::move(leaves);
  for (const PairBox& runs : roots) {
    if (runs.size() != 2 * trees_.sensitive().size()) {
      throw std::invalid_argument("largest change: a box has a run too many, or too few");
    }
    PairBox box = all;
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
auto PairSearch<Value, Objective>::keep(std::unique_ptr<Leaves> leaves) const
    -> std::shared_ptr<const Leaves> {
  leaves->leaf.shrink_to_fit();
  const std::size_t size = leaves->bytes();
  if (kept_bytes_->load(std::memory_order_relaxed) + size > max_kept_bytes_) return nullptr;
  kept_bytes_->fetch_add(size, std::memory_order_relaxed);
  return {leaves.release(), [counter = kept_bytes_, size](const Leaves* own) {
            counter->fetch_sub(size, std::memory_order_relaxed);
            delete own;
          }};
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
    if (difference <= difference_) return;
    low_ = rounded_down(difference, shift());
  } else {
    const auto number = [&](const Value& value) {
      const bool is_negative = value < Value{};
      const double size =
          ValueTraits<Value>::scaled(is_negative ? Value{} - value : value, -shift());
      return is_negative ? -size : size;
    };
    const double found = objective_.change(number(target), number(start));
    if (!(found > low_)) return;
    low_ = found;
  }
  difference_ = difference;
  pair_ = std::move(pair);
  prune();
}

// Gives back the memory of boxes that cannot beat the best pair, if they are many.
template <class Value, class Objective>
void PairSearch<Value, Objective>::prune() {
  const auto dead = [&](const Node& node) { return !may_beat(node.score); };
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
  max_kept_bytes_ = max_bytes / 2;
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
        if (may_beat(child.score)) {
          push(child.score, batch[i].root, std::move(child.box), leaves);
        }
      }
    }
  }
}

template <class Value, class Objective>
auto PairSearch<Value, Objective>::high() const -> Score {
  Score most = low_;
  if constexpr (std::is_same_v<Objective, MarginObjective>) {
    // A floor or a best difference that is no multiple of 2^shift lies above low.
    if (shift() > 0) ++most;
  }
  return open_.empty() ? most : std::max(most, open_.front().score);
}

template <class Value, class Objective>
std::size_t PairSearch<Value, Objective>::bytes() const {
  const std::size_t box = sizeof(CellRun) * trees_.variables().size() + 32;
  return trees_.bytes() + kept_bytes_->load(std::memory_order_relaxed) +
         open_.capacity() * sizeof(Node) + open_.size() * box;
}

template class PairSearch<std::int64_t, MarginObjective>;
template class PairSearch<Int128, MarginObjective>;
template class PairSearch<Int2304, MarginObjective>;
template class PairSearch<std::int64_t, ProbabilityObjective>;
template class PairSearch<Int128, ProbabilityObjective>;
template class PairSearch<Int2304, ProbabilityObjective>;

}  // namespace xcount

#include "xcount/worst/pair_cover.hpp"

#include <algorithm>
#include <utility>

#include "xcount/support/assert.hpp"
#include "xcount/support/parallel.hpp"

namespace xcount {

namespace {

constexpr std::uint64_t kMaxMasks = std::uint64_t{1} << 30;  // of all boxes

}  // namespace

template <class Value>
PairCover<Value>::PairCover(const Forest<Value>& forest, std::vector<Feature> sensitive,
                            std::optional<std::int64_t> distance, const Value& threshold,
                            Direction direction)
    : trees_(forest, std::move(sensitive), false,
             PairTrees<Value>::max_leaves(forest.roots.size())),
      reach_(forest, trees_.sensitive(), trees_.start_of(0), distance),
      direction_(direction),
      bar_{trees_.rounded_down(threshold), threshold} {
  const auto leaves = Leaves::all(trees_);
  PairBox box = leaves->box;
  Bound top = 0;
  for (const Factor<Value>& factor : trees_.factors()) top += factor.values.front();
  if (bar_.may_beat(top) && reach_.trim(box)) push(top, std::move(box), leaves);
}

template <class Value>
PairCover<Value>::~PairCover() = default;

template <class Value>
void PairCover<Value>::refine(std::uint64_t work, unsigned n_threads, std::size_t max_bytes,
                              Stop& stop) {
  const std::size_t n_splitters = std::min<std::size_t>(std::max(1U, n_threads), kBatch);
  while (splitters_.size() < n_splitters) {
    splitters_.push_back(
        std::make_unique<BoxSplitter<Value, Objective>>(trees_, reach_, objective_));
  }
  keeper_.set_limit(max_bytes / 2);
  is_full_ = false;
  std::vector<Node> batch;
  std::vector<SplitBox<Value, Objective>> found;
  while (!open_.empty() && work_ < work && !stop.is_over()) {
    is_full_ = bytes() > max_bytes || n_masks_ > kMaxMasks;
    if (is_full_) return;
    batch.clear();
    while (batch.size() < kBatch && !open_.empty()) {
      std::pop_heap(open_.begin(), open_.end());
      batch.push_back(std::move(open_.back()));
      open_.pop_back();
    }
    found.clear();
    found.resize(batch.size());
    const std::size_t n = std::min(n_splitters, batch.size());
    parallel(n, static_cast<unsigned>(n), [&](std::size_t worker) {
      for (std::size_t i = worker; i < batch.size(); i += n) {
        found[i] = splitters_[worker]->split(batch[i].box, batch[i].score, *batch[i].leaves, bar_);
      }
    });
    for (std::size_t i = 0; i < batch.size(); ++i) take(batch[i], found[i]);
  }
}

template <class Value>
void PairCover<Value>::take(Node& node, SplitBox<Value, Objective>& found) {
  work_ += found.work;
  n_masks_ -= n_masks(node.box);
  if (found.fate == Fate::kBelow) return;
  if (found.fate == Fate::kConstant || found.is_above) {
    settle(std::move(node.box));
    return;
  }
  if (found.children.empty()) return;
  auto leaves = keeper_.keep(std::move(found.leaves));
  if (leaves == nullptr) leaves = node.leaves;
  for (auto& child : found.children) push(child.score, std::move(child.box), leaves);
}

template <class Value>
void PairCover<Value>::push(Bound score, PairBox box, std::shared_ptr<const Leaves> leaves) {
  n_masks_ += n_masks(box);
  const long double size = volume(box);
  open_.push_back({size, next_number_++, score, std::move(box), std::move(leaves)});
  std::push_heap(open_.begin(), open_.end());
}

template <class Value>
void PairCover<Value>::settle(PairBox box) {
  n_masks_ += n_masks(box);
  settled_.push_back(std::move(box));
}

template <class Value>
long double PairCover<Value>::volume(const PairBox& box) const {
  long double product = 1;
  for (std::size_t v = 0; v < box.size(); ++v) {
    product *= static_cast<long double>(box[v].size()) /
               static_cast<long double>(trees_.variables()[v].n_cells);
  }
  return product;
}

// How many masks the starts, the targets, or both have.
template <class Value>
std::uint64_t PairCover<Value>::n_masks(const PairBox& box) const {
  std::uint64_t starts = 1, targets = 1, both = 1;
  for (std::size_t i = 0; i < trees_.sensitive().size(); ++i) {
    const CellRun &start = box[trees_.start_of(i)], &target = box[trees_.target_of(i)];
    const Cell common = std::min(start.high, target.high) - std::max(start.low, target.low) + 1;
    starts *= static_cast<std::uint64_t>(start.size());
    targets *= static_cast<std::uint64_t>(target.size());
    both *= static_cast<std::uint64_t>(std::max(Cell{0}, common));
  }
  if (direction_ == Direction::kUp) return starts;
  return direction_ == Direction::kDown ? targets : starts + targets - both;
}

template <class Value>
std::size_t PairCover<Value>::bytes() const {
  const std::size_t box = sizeof(CellRun) * trees_.variables().size() + 32;
  return trees_.bytes() + keeper_.bytes() + open_.capacity() * sizeof(Node) +
         settled_.capacity() * sizeof(PairBox) + (open_.size() + settled_.size()) * box;
}

template <class Value>
auto PairCover<Value>::projection() const -> Projection {
  Projection found;
  for (std::size_t v = 0; v < trees_.start_of(0); ++v) {
    found.axes.push_back({trees_.variables()[v].feature, trees_.variables()[v].n_cells});
  }
  const auto add = [&](const PairBox& box) {
    for (std::size_t v = 0; v < found.axes.size(); ++v) {
      found.runs.push_back(box[v].low);
      found.runs.push_back(box[v].high);
    }
    found.n_masks.push_back(static_cast<std::uint32_t>(n_masks(box)));
  };
  for (const PairBox& box : settled_) add(box);
  for (const Node& node : open_) add(node.box);
  return found;
}

template class PairCover<std::int64_t>;
template class PairCover<Int128>;
template class PairCover<Int2304>;

}  // namespace xcount

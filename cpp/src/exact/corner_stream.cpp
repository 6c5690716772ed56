#include "xcount/exact/corner_stream.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "xcount/support/assert.hpp"

namespace xcount {

namespace {

constexpr Cell kLongWay = 4;  // cells of an outer axis

template <class T>
constexpr std::size_t kLanes = LaneTraits<T>::kLanes;

template <class T>
LaneResidue<T>* numbers(std::vector<Lanes<T>>& lanes) {
  return lanes.data()->lane;
}

// Whether 16 bits are compared first: only if that decides most lanes exactly, and pays.
template <class T>
bool is_narrow(const CornerPlan<T>& plan) {
  if constexpr (kLanes<T> == 1) {
    return false;
  } else {
    return plan.weights.empty() && plan.judge == nullptr && !plan.windows.any &&
           NarrowRoom<T>::suits(plan.changes, plan.layout.n_columns);
  }
}

// Columns that are held: see HeldSums.
template <class T>
std::size_t n_held_columns(const CornerLayout& layout) {
  constexpr std::size_t kColumns = LaneTraits<std::uint16_t>::kLanes / kLanes<T>;
  return (layout.n_columns + kColumns - 1) / kColumns * kColumns;
}

// Whether sums are held only for the masks that have corners: see docs/corner-sums.md, "Large
// tiles".
template <class T>
bool holds_few(const CornerPlan<T>& plan) {
  if constexpr (kLanes<T> == 1) {
    return false;
  } else {
    const CornerLayout& layout = plan.layout;
    return layout.is_large && plan.corners.size() == 1 && is_narrow(plan) &&
           !plan.windows.growth.empty() && layout.sensitive.size() <= kRowAxes;
  }
}

// Of sums of few masks, and of their places.
template <class T>
std::size_t held_bytes_for(const CornerLayout& layout) {
  return (layout.n_masks + 1) *
         (n_held_columns<T>(layout) * sizeof(Lanes<T>) + sizeof(std::uint32_t));
}

// Vectors of the tables of extremes, and of what they find.
template <class T>
std::size_t n_near_vectors(const MaskWindows& windows) {
  return kLanes<T> == 1 || windows.any ? 0 : 2 * (windows.table_size() + windows.n_masks);
}

// Of the tables that find the extremes around masks.
template <class T>
std::size_t near_bytes(const CornerPlan<T>& plan) {
  if constexpr (kLanes<T> == 1) {
    return WideTile<T>::bytes_for(plan.windows);
  } else {
    return n_near_vectors<T>(plan.windows) * sizeof(Lanes<T>) +
           plan.windows.near.size() * sizeof(NearExtremes<T>) +
           (is_narrow(plan) ? NarrowRoom<T>::bytes_for(plan.changes.size(), plan.windows) : 0);
  }
}

template <class T>
TileKernels<T> kernels_for(const CornerPlan<T>& plan) {
  if constexpr (kLanes<T> == 1) {
    return {};
  } else {
    return choose_kernels<T>(!plan.weights.empty(), plan.vector_unit);
  }
}

}  // namespace

template <class T>
CornerStream<T>::CornerStream(const CornerPlan<T>& plan)
    : plan_(plan), layout_(plan.layout), kernels_(kernels_for(plan)) {
  const std::size_t n_results = plan.changes.size() * layout_.n_masks;
  std::size_t n_vectors = layout_.n_tiles * layout_.tile_vectors();
  for (const std::size_t n : layout_.middle_cells) slab_vectors_.push_back(n_vectors /= n);
  slabs_.assign(layout_.middle_cells.size(), std::vector<const Lanes<T>*>(plan.corners.size()));
  if (holds_few(plan)) set_places();
  for (std::size_t k = 0; k < plan.corners.size(); ++k) {
    Output& output = outputs_.emplace_back();
    output.levels.resize(layout_.outer.size());
    output.block.resize(place_.empty() ? layout_.n_tiles * layout_.tile_vectors()
                                       : n_places_ * job_.held.n_columns);
    for (const std::size_t n : slab_vectors_) output.partials.emplace_back(n);
  }
  row_.resize(layout_.n_columns);
  set_job();
  if (plan.weights.empty()) return;
  tile_shares_.resize(n_results * kShareLanes);
  job_.results.shares = tile_shares_.data();
  block_shares_.resize(n_results);
  set_row_weights();
}

// Masks in the order of their positions, so that places are read in their order.
template <class T>
void CornerStream<T>::set_places() {
  place_.resize(layout_.n_masks);
  job_.held.n_columns = n_held_columns<T>(layout_);
  const unsigned n_bits = layout_.outer.empty() ? layout_.key_bits : layout_.outer.back().shift;
  const std::uint64_t below = n_bits < 64 ? (std::uint64_t{1} << n_bits) - 1 : ~std::uint64_t{0};
  for (const Corner<T>& corner : plan_.corners[0]) {
    place_[static_cast<std::size_t>((corner.key & below) >> layout_.row_bits)] = 1;
  }
  for (std::uint32_t& place : place_)
    place = place > 0 ? static_cast<std::uint32_t>(n_places_++) : 0;
}

template <class T>
void CornerStream<T>::set_row_weights() {
  std::vector<double> weights{1.0};
  for (const Feature feature : layout_.row) {
    std::vector<double> product;
    for (const double a : weights) {
      for (const double b : plan_.weights[static_cast<std::size_t>(feature)])
        product.push_back(a * b);
    }
    weights.swap(product);
  }
  weights.resize(layout_.n_columns * kLanes<T>);
  row_weights_ = std::move(weights);
  job_.results.row_weights = row_weights_.data();
}

template <class T>
void CornerStream<T>::set_job() {
  const std::size_t n_masks = layout_.n_masks;
  const std::size_t n_changes = plan_.changes.size();
  const std::size_t n_outputs = plan_.corners.size();
  const bool by_probability = plan_.judge != nullptr;
  sums_.resize(n_outputs);
  slab_.resize(n_outputs);
  column_.resize((n_outputs + (by_probability ? 1 : 0)) * n_masks);
  counts_.resize(n_changes * (n_masks + 1));
  job_.sums = {layout_.n_columns, n_masks,
               n_outputs,         {layout_.sensitive_cells.data(), layout_.sensitive_cells.size()},
               slab_.data(),      sums_.data()};
  if (!place_.empty()) {
    job_.held.place = place_.data();
    job_.held.filler = this;
  }
  job_.column = {column_.data(), n_outputs, n_masks};
  job_.question = {
      {plan_.changes.data(), n_changes}, plan_.span, plan_.judge.get(), plan_.link, plan_.zero};
  job_.results.counts = counts_.data();
  job_.results.common_counts = counts_.data() + n_changes * n_masks;
  job_.near.decided = column_.data() + (by_probability ? n_outputs * n_masks : 0);
  set_near();
}

template <class T>
void CornerStream<T>::set_near() {
  const MaskWindows& windows = plan_.windows;
  if constexpr (kLanes<T> == 1) {
    wide_ = std::make_unique<WideTile<T>>(windows, plan_.vector_unit);
  } else {
    tables_.resize(n_near_vectors<T>(windows));
    if (!windows.any) {
      job_.near.highest = tables_.data();
      job_.near.lowest = job_.near.highest + windows.table_size();
      job_.near.high = job_.near.lowest + windows.table_size();
      job_.near.low = job_.near.high + windows.n_masks;
    }
    near_ = connect(windows, job_.near);
    if (!is_narrow(plan_)) return;
    narrow_ = std::make_unique<NarrowRoom<T>>(job_, windows);
    job_.narrow = narrow_->tile();
  }
}

template <class T>
void CornerStream<T>::count_block(std::uint64_t block) {
  XCOUNT_ASSERT(block < layout_.n_blocks);
  move_to(block);
  if (changed_) {
    std::fill(counts_.begin(), counts_.end(), std::uint64_t{0});
    std::fill(block_shares_.begin(), block_shares_.end(), 0.0);
    if (layout_.middle.empty()) {
      // The block is a tile whose sums are there.
      for (std::size_t k = 0; k < outputs_.size(); ++k) sums_[k] = outputs_[k].block.data();
      if (!place_.empty()) job_.held.sums = outputs_[0].block.data();
      slab_.assign(sums_.begin(), sums_.end());
      count_tile(Start::kKept, 1.0);
    } else {
      for (std::size_t k = 0; k < outputs_.size(); ++k) slabs_[0][k] = outputs_[k].block.data();
      count_slabs(0, 1.0);
    }
    add_common_counts();
    XCOUNT_ASSERT(are_within_block());
    changed_ = false;
  }
}

template <class T>
void CornerStream<T>::move_to(std::uint64_t block) {
  std::vector<Cell> target(layout_.outer.size());
  for (std::size_t j = target.size(); j-- > 0;) {
    const auto n = static_cast<std::uint64_t>(layout_.outer[j].n_cells);
    target[j] = static_cast<Cell>(block % n);
    block /= n;
  }
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    std::vector<Level>& levels = outputs_[k].levels;
    if (levels.empty() && changed_) insert(k, plan_.corners[k], ~std::uint64_t{0});
    bool moved = false;
    for (std::size_t j = 0; j < levels.size(); ++j) {
      if (moved || levels[j].cell > target[j]) restart(k, j);
      moved = moved || levels[j].cell != target[j];
      advance(k, j, target[j]);
    }
  }
}

template <class T>
void CornerStream<T>::restart(std::size_t output, std::size_t level) {
  Level& state = outputs_[output].levels[level];
  state.cursor = 0;
  state.cell = -1;
  state.list.clear();
  if (level + 1 < layout_.outer.size()) return;
  std::fill(outputs_[output].block.begin(), outputs_[output].block.end(), Lanes<T>{});
  changed_ = true;
}

template <class T>
void CornerStream<T>::advance(std::size_t output, std::size_t level, Cell target) {
  std::vector<Level>& levels = outputs_[output].levels;
  Level& state = levels[level];
  const CornerList<T>& source = level == 0 ? plan_.corners[output] : levels[level - 1].list;
  XCOUNT_ASSERT(state.cursor <= source.size() && state.cell <= target);
  const OuterAxis& axis = layout_.outer[level];
  const std::uint64_t mask = (std::uint64_t{1} << axis.shift) - 1;
  const bool is_last = level + 1 == levels.size();
  // A long way is one step: all slices on it are gathered before they are merged.
  const Cell stride = !is_last && target - state.cell > kLongWay ? target - state.cell : 1;
  while (state.cell < target) {
    state.cell += stride;
    const std::size_t begin = state.cursor;
    while (state.cursor < source.size() &&
           source[state.cursor].key >> axis.shift <= static_cast<std::uint64_t>(state.cell)) {
      ++state.cursor;
    }
    std::span<const Corner<T>> slice(source.data() + begin, state.cursor - begin);
    if (slice.empty()) continue;
    if (is_last) {
      insert(output, slice, mask);
      continue;
    }
    if (stride > 1) {
      gathered_.assign(slice.begin(), slice.end());
      for (Corner<T>& corner : gathered_) corner.key &= mask;
      settle_corners<T>(gathered_, merged_, axis.shift);
      slice = gathered_;
    }
    merge_corners<T>(state.list, slice, mask, merged_);
    state.list.swap(merged_);
  }
}

template <class T>
void CornerStream<T>::insert(std::size_t output, std::span<const Corner<T>> corners,
                             std::uint64_t mask) {
  changed_ = true;
  Lanes<T>* block = outputs_[output].block.data();
  for (std::size_t i = 0; i < corners.size();) {
    const std::uint64_t number = (corners[i].key & mask) >> layout_.row_bits;
    std::size_t end = i + 1;
    while (end < corners.size() && (corners[end].key & mask) >> layout_.row_bits == number) ++end;
    const auto row = static_cast<std::size_t>(number);
    const std::size_t tile = row / layout_.n_masks;
    XCOUNT_ASSERT(tile < layout_.n_tiles);
    XCOUNT_ASSERT(place_.empty() || (place_[row] > 0 && place_[row] < n_places_));
    if (place_.empty()) {
      insert_row(block + tile * layout_.tile_vectors() + row % layout_.n_masks, layout_.n_masks,
                 corners.subspan(i, end - i));
    } else {
      insert_row(block + place_[row] * job_.held.n_columns, 1, corners.subspan(i, end - i));
    }
    i = end;
  }
}

// Adds the corners of one row, and their sums along it, to its vectors, `stride` apart.
template <class T>
void CornerStream<T>::insert_row(Lanes<T>* block, std::size_t stride,
                                 std::span<const Corner<T>> corners) {
  const std::uint64_t places = (std::uint64_t{1} << layout_.row_bits) - 1;
  const auto first = static_cast<std::size_t>(corners[0].key & places) / kLanes<T>;
  XCOUNT_ASSERT((corners.back().key & places) < layout_.row_size);
  if (layout_.row.size() > 1) {
    spread(corners);
  } else {
    spread_steps(corners);
  }
  for (std::size_t c = first; c < layout_.n_columns; ++c) {
    Lanes<T>& target = block[c * stride];
    for (std::size_t i = 0; i < kLanes<T>; ++i) target.lane[i] += row_[c].lane[i];
  }
}

// A row of one axis is a step function.
template <class T>
void CornerStream<T>::spread_steps(std::span<const Corner<T>> corners) {
  const std::uint64_t places = (std::uint64_t{1} << layout_.row_bits) - 1;
  LaneResidue<T>* row = numbers<T>(row_);
  LaneResidue<T> sum{};
  const auto first = static_cast<std::size_t>(corners[0].key & places);
  std::fill(row + first / kLanes<T> * kLanes<T>, row + first, LaneResidue<T>{});
  for (std::size_t i = 0; i < corners.size(); ++i) {
    sum += corners[i].value;
    const auto begin = static_cast<std::size_t>(corners[i].key & places);
    const std::size_t end = i + 1 < corners.size()
                                ? static_cast<std::size_t>(corners[i + 1].key & places)
                                : layout_.row_size;
    std::fill(row + begin, row + end, sum);
  }
}

template <class T>
void CornerStream<T>::spread(std::span<const Corner<T>> corners) {
  const std::uint64_t places = (std::uint64_t{1} << layout_.row_bits) - 1;
  LaneResidue<T>* row = numbers<T>(row_);
  std::fill(row, row + layout_.row_size, LaneResidue<T>{});
  for (const Corner<T>& corner : corners) row[corner.key & places] += corner.value;
  std::size_t stride = 1;
  for (std::size_t i = layout_.row_cells.size(); i-- > 0;) {
    const std::size_t period = stride * layout_.row_cells[i];
    for (std::size_t base = 0; base < layout_.row_size; base += period) {
      for (std::size_t p = base + stride; p < base + period; ++p) row[p] += row[p - stride];
    }
    stride = period;
  }
}

template <class T>
void CornerStream<T>::fill() {
  if (!filled_.empty() && sums_[0] == filled_.data()) return;  // it was done for this tile
  filled_.resize(layout_.tile_vectors());
  for (std::size_t m = 0; m < layout_.n_masks; ++m) {
    const Lanes<T>* held = job_.held.sums + place_[m] * job_.held.n_columns;
    for (std::size_t c = 0; c < layout_.n_columns; ++c) filled_[c * layout_.n_masks + m] = held[c];
    XCOUNT_ASSERT(place_[m] < n_places_);
  }
  sums_[0] = filled_.data();
}

template <class T>
void CornerStream<T>::count_tile(Start start, double weight) {
  job_.sums.start = start;
  if constexpr (kLanes<T> == 1) {
    wide_->count(job_);
  } else {
    kernels_.count_tile(job_);
  }
  if (!plan_.weights.empty()) add_tile_shares(weight);
}

template <class T>
void CornerStream<T>::add_slab(Lanes<T>* sums, const Lanes<T>* slab, std::size_t n) const {
  if constexpr (kLanes<T> == 1) {
    for (std::size_t i = 0; i < n; ++i) sums[i].lane[0] += slab[i].lane[0];
  } else {
    kernels_.add_lanes(sums, slab, n);
  }
}

// Sums along the middle axes, from the given one on, and counts the tiles.
template <class T>
void CornerStream<T>::count_slabs(std::size_t axis, double weight) {
  const bool is_last = axis + 1 == slab_vectors_.size();
  const std::size_t n_cells = layout_.middle_cells[axis];
  const std::size_t n = slab_vectors_[axis];
  for (std::size_t cell = 0; cell < n_cells; ++cell) {
    const double product =
        plan_.weights.empty()
            ? weight
            : weight * plan_.weights[static_cast<std::size_t>(layout_.middle[axis])][cell];
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      Lanes<T>* sums = outputs_[k].partials[axis].data();
      const Lanes<T>* slab = slabs_[axis][k] + cell * n;
      if (is_last) {
        slab_[k] = slab;
        sums_[k] = sums;
      } else {
        if (cell == 0) std::copy(slab, slab + n, sums);
        if (cell > 0) add_slab(sums, slab, n);
        slabs_[axis + 1][k] = sums;
      }
    }
    if (is_last) {
      count_tile(cell == 0 ? Start::kFresh : Start::kAdded, product);
    } else {
      count_slabs(axis + 1, product);
    }
  }
}

template <class T>
void CornerStream<T>::add_tile_shares(double weight) {
  for (std::size_t i = 0; i < block_shares_.size(); ++i) {
    double* sums = tile_shares_.data() + i * kShareLanes;
    block_shares_[i] += weight * std::accumulate(sums, sums + kShareLanes, 0.0);
    std::fill(sums, sums + kShareLanes, 0.0);
  }
}

template <class T>
void CornerStream<T>::add_common_counts() {
  const std::size_t n_masks = layout_.n_masks;
  for (std::size_t change = 0; change < plan_.changes.size(); ++change) {
    const std::uint64_t common = job_.results.common_counts[change];
    if (common == 0) continue;
    for (std::size_t m = 0; m < n_masks; ++m) counts_[change * n_masks + m] += common;
  }
}

template <class T>
bool CornerStream<T>::are_within_block() const {
  const std::uint64_t n_regions = layout_.n_tiles * layout_.row_size;
  return std::all_of(counts().begin(), counts().end(),
                     [&](std::uint64_t count) { return count <= n_regions; });
}

// Lists along the outer axes have at most as many corners as the whole list, and room for twice as
// many at most.
template <class T>
std::size_t CornerStream<T>::bytes_for(const CornerPlan<T>& plan) {
  const CornerLayout& layout = plan.layout;
  std::size_t longest = 0;
  std::size_t n_listed = 0;
  const std::size_t n_levels = layout.outer.empty() ? 0 : layout.outer.size() - 1;
  for (const CornerList<T>& corners : plan.corners) {
    longest = std::max(longest, corners.size());
    n_listed += n_levels * corners.size();
  }
  if (n_levels > 0) n_listed += 2 * longest;
  const std::size_t n_results = plan.changes.size() * layout.n_masks;
  const std::size_t n_rows = plan.corners.size() + (plan.judge != nullptr ? 1 : 0);
  std::size_t n_summed = layout.n_tiles * layout.tile_vectors();  // a block, and its slabs
  std::size_t slab = n_summed;
  for (const std::size_t n : layout.middle_cells) n_summed += slab /= n;
  const std::size_t n_vectors =
      plan.corners.size() * n_summed + n_rows * layout.n_masks + layout.n_columns;
  const std::size_t share_bytes =
      plan.weights.empty() ? 0 : sizeof(Int128) + sizeof(double) * (kShareLanes + 2);
  return near_bytes(plan) + 2 * n_listed * sizeof(Corner<T>) + n_vectors * sizeof(Lanes<T>) +
         (holds_few(plan) ? held_bytes_for<T>(layout) : 0) +
         n_results * (4 * sizeof(std::uint64_t) + share_bytes);
}

template class CornerStream<std::int32_t>;
template class CornerStream<std::int64_t>;
template class CornerStream<Int128>;
template class CornerStream<Int2304>;

}  // namespace xcount

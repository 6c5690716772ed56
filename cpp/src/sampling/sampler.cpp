#include "xcount/sampling/sampler.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>

#include "xcount/support/assert.hpp"
#include "xcount/support/parallel.hpp"

namespace xcount {

namespace {

constexpr std::uint64_t kTogether = 16;  // batches whose samples in doubt are decided together

}  // namespace

template <class Value>
Sampler<Value>::Sampler(const Forest<Value>& forest, const MaskSpace& masks, Value threshold,
                        const MaskQuestion& question, Direction direction)
    : n_features_(forest.axes.size()),
      decider_(forest, masks, question, Gap<Value>(threshold, direction)) {
  unresolved_.reserve(question.unresolved.size());
  for (const MaskIndex mask : question.unresolved) {
    if (mask < 0 || mask >= masks.size()) throw std::invalid_argument("sampling: no such mask");
    // With all pairs the scope holds all masks: each is its own index.
    unresolved_.push_back(question.all_pairs ? static_cast<std::uint32_t>(mask)
                                             : decider_.scope().index(masks, mask));
  }
  const std::size_t most = std::max<std::size_t>(1, unresolved_.size());
  levels_ = static_cast<std::uint32_t>(std::min<std::size_t>(most, kMaxLevels));
}

template <class Value>
Outcomes Sampler<Value>::draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
                              std::uint64_t n, unsigned n_threads, Stop& stop,
                              const OverlappingBoxes* boxes) const {
  if (unresolved_.empty() || (boxes != nullptr && boxes->size() == 0))
    throw std::invalid_argument("sampling: nothing to draw from");
  n_threads = std::max(1U, static_cast<unsigned>(std::min<std::uint64_t>(n_threads, n)));
  const std::uint32_t levels = boxes != nullptr ? kBoxLevels : levels_;
  const std::size_t n_axes = boxes != nullptr ? boxes->axes().size() : 0;
  Outcomes outcomes{std::vector<std::uint64_t>(levels + 1), std::vector<std::uint8_t>(n * kBatch)};
  std::vector<std::vector<std::uint64_t>> histograms(n_threads,
                                                     std::vector<std::uint64_t>(levels + 1));
  std::atomic<std::uint64_t> next{0};
  // Several batches at a time: their samples in doubt are decided together.
  const std::uint64_t step = std::clamp<std::uint64_t>(n / n_threads, 1, kTogether);
  const auto work = [&](std::size_t index) {
    Workspace room = decider_.workspace();
    Found found(step * kBatch);
    std::vector<Cell> cells(step * kBatch * n_axes);  // on the boxes' axes
    const auto cells_of = [&](std::size_t sample, std::size_t count) {
      return std::span(cells).subspan(sample * n_axes, count * n_axes);
    };
    const auto visit = [&](std::uint64_t number, std::size_t count,
                           std::span<const std::uint8_t> flags,
                           std::size_t stride) { add_up(number, count, flags, stride, found); };
    for (std::uint64_t batch = next.fetch_add(step); batch < n; batch = next.fetch_add(step)) {
      std::vector<Random> randoms;
      std::fill(found.begin(), found.end(), 0);
      for (std::uint64_t b = batch; b < std::min(n, batch + step) && !stop.is_over(); ++b) {
        randoms.emplace_back(seed, stream, first + b);
        if (boxes == nullptr) {
          draw_cells(randoms.back(), room);
        } else {
          draw_cells(randoms.back(), *boxes, cells_of((b - batch) * kBatch, kBatch), room);
        }
        decider_.decide((b - batch) * kBatch, kBatch, room, visit);
      }
      if (stop.is_over()) return;
      decider_.finish(room, visit);
      for (std::size_t i = 0; i < randoms.size(); ++i) {
        const auto whole = [&](std::size_t sample) {
          if (boxes == nullptr) return static_cast<std::uint32_t>(unresolved_.size());
          return boxes->around(cells_of(i * kBatch + sample, 1));
        };
        record(randoms[i], std::span(found).subspan(i * kBatch, kBatch), whole, histograms[index],
               std::span(outcomes.hits).subspan((batch + i) * kBatch, kBatch));
      }
    }
  };
  parallel(n_threads, n_threads, work, &stop);
  if (stop.was_over()) return {};
  for (const auto& histogram : histograms) {
    for (std::size_t i = 0; i <= levels; ++i) outcomes.histogram[i] += histogram[i];
  }
  return outcomes;
}

template <class Value>
void Sampler<Value>::draw_cells(Random& random, Workspace& work) const {
  std::array<Cell, kBatch> cells;
  for (const auto& drawn : decider_.drawn()) {
    const auto n_cells = static_cast<std::uint32_t>(drawn.n_cells);
    for (Cell& cell : cells) cell = static_cast<Cell>(random.below(n_cells));
    decider_.set(drawn, 0, cells, work);
  }
}

template <class Value>
void Sampler<Value>::draw_cells(Random& random, const OverlappingBoxes& boxes,
                                std::span<Cell> cells, Workspace& work) const {
  const std::size_t n_axes = boxes.axes().size();
  for (std::size_t i = 0; i < kBatch; ++i) boxes.draw(random, cells.subspan(i * n_axes, n_axes));
  std::array<Cell, kBatch> own;
  for (const auto& drawn : decider_.drawn()) {
    std::size_t axis = 0;
    while (axis < n_axes && boxes.axes()[axis].feature != drawn.feature) ++axis;
    for (std::size_t i = 0; i < kBatch; ++i) {
      own[i] = axis < n_axes
                   ? cells[i * n_axes + axis]
                   : static_cast<Cell>(random.below(static_cast<std::uint32_t>(drawn.n_cells)));
    }
    decider_.set(drawn, 0, own, work);
  }
}

template <class Value>
void Sampler<Value>::add_up(std::uint64_t first, std::size_t n, std::span<const std::uint8_t> flags,
                            std::size_t stride, Found& found) const {
  std::fill_n(found.begin() + static_cast<std::ptrdiff_t>(first), n, 0);
  for (const std::uint32_t mask : unresolved_) {
    const std::uint8_t* own = flags.data() + mask * stride;
    for (std::size_t i = 0; i < n; ++i) found[first + i] += own[i];
  }
}

template <class Value>
template <class Whole>
void Sampler<Value>::record(Random& random, std::span<const std::uint32_t> found,
                            const Whole& whole, std::span<std::uint64_t> histogram,
                            std::span<std::uint8_t> hits) const {
  const std::uint64_t levels = histogram.size() - 1;
  for (std::size_t i = 0; i < found.size(); ++i) {
    hits[i] = 0;
    if (found[i] == 0) {
      ++histogram[0];
      continue;
    }
    const std::uint32_t n = whole(i);
    XCOUNT_ASSERT(found[i] <= n);
    const std::uint64_t scaled = found[i] * levels;
    const bool up = scaled % n != 0 && random.below(n) < scaled % n;
    ++histogram[scaled / n + (up ? 1 : 0)];
    hits[i] = found[i] == n || random.below(n) < found[i] ? 1 : 0;
  }
}

template <class Value>
std::size_t Sampler<Value>::n_regions(std::span<const Cell> regions) const {
  if (n_features_ == 0 || regions.size() % n_features_ != 0) {
    throw std::invalid_argument("sampling: a region has one cell per feature");
  }
  return regions.size() / n_features_;
}

template <class Value>
std::size_t Sampler<Value>::set_cells(std::span<const Cell> regions, std::size_t first,
                                      Workspace& work) const {
  const std::size_t n = std::min(kBlock, regions.size() / n_features_ - first);
  std::array<Cell, kBlock> cells;
  for (const auto& drawn : decider_.drawn()) {
    const auto feature = static_cast<std::size_t>(drawn.feature);
    for (std::size_t i = 0; i < n; ++i) {
      cells[i] = regions[(first + i) * n_features_ + feature];
      if (cells[i] < 0 || cells[i] >= drawn.n_cells) {
        throw std::invalid_argument("sampling: a cell is out of range");
      }
    }
    decider_.set(drawn, 0, std::span(cells).first(n), work);
  }
  return n;
}

template <class Value>
std::vector<std::uint8_t> Sampler<Value>::decide(std::span<const Cell> regions) const {
  const std::size_t n_masks = decider_.n_masks();
  const std::size_t n = n_regions(regions);
  std::vector<std::uint8_t> found(n * n_masks);
  Workspace work = decider_.workspace();
  const auto visit = [&](std::uint64_t first, std::size_t count,
                         std::span<const std::uint8_t> flags, std::size_t stride) {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint8_t* row = found.data() + (first + i) * n_masks;
      for (std::size_t m = 0; m < n_masks; ++m) row[m] = flags[m * stride + i];
    }
  };
  for (std::size_t done = 0; done < n; done += kBlock) {
    const std::size_t count = set_cells(regions, done, work);
    decider_.decide(done, count, work, visit);
  }
  decider_.finish(work, visit);
  return found;
}

template <class Value>
std::vector<Value> Sampler<Value>::differences(std::span<const Cell> regions) const {
  const std::size_t n = n_regions(regions);
  const auto pairs = decider_.pairs();
  std::vector<Value> found(n * pairs.size());
  Workspace work = decider_.workspace();
  for (std::size_t done = 0; done < n; done += kBlock) {
    const std::size_t count = set_cells(regions, done, work);
    decider_.evaluate(count, work, [&](std::size_t i, const Value* row, std::size_t stride) {
      Value* to = found.data() + (done + i) * pairs.size();
      for (const auto& [a, b] : pairs) *to++ = row[b * stride] - row[a * stride];
    });
  }
  return found;
}

template <class Value>
Swings<Value> Sampler<Value>::swings(std::span<const Cell> regions,
                                     std::span<const MaskIndex> masks) const {
  const std::size_t n = n_regions(regions);
  const std::size_t n_masks = decider_.n_masks();
  if (masks.size() != n) throw std::invalid_argument("sampling: a region has one mask");
  for (const MaskIndex mask : masks) {
    if (mask < 0 || static_cast<std::size_t>(mask) >= n_masks) {
      throw std::invalid_argument("sampling: no such mask");
    }
  }
  Swings<Value> found{std::vector<Value>(n), std::vector<Value>(n),
                      std::vector<std::uint64_t>(n_masks)};
  Workspace work = decider_.workspace();
  for (std::size_t done = 0; done < n; done += kBlock) {
    const std::size_t count = set_cells(regions, done, work);
    decider_.find_extremes(count, work, [&](std::size_t begin, std::size_t size, const auto& rows) {
      for (std::size_t i = 0; i < size; ++i) {
        const std::size_t place = done + begin + i;
        const Value& own = rows.rows[static_cast<std::size_t>(masks[place]) * rows.stride + i];
        found.up[place] = rows.high[i] - own;
        found.down[place] = own - rows.low[i];
      }
      for (std::size_t m = 0; m < n_masks; ++m) {
        const Value* row = rows.rows + m * rows.stride;
        for (std::size_t i = 0; i < size; ++i) {
          found.highest[m] += row[i] == rows.high[i] && rows.low[i] < rows.high[i] ? 1 : 0;
        }
      }
    });
  }
  return found;
}

template class Sampler<std::int64_t>;
template class Sampler<Int128>;
template class Sampler<Int2304>;

}  // namespace xcount

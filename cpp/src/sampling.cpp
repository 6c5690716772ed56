#include "xcount/sampling.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "xcount/parallel.hpp"

namespace xcount {

namespace {

constexpr std::size_t kRowBytes = 64 * 1024;  // rows of one block: they should stay in cache
constexpr std::uint64_t kWeightUnit = std::uint64_t{1} << 62;

template <class Value>
Universe everything(const Forest<Value>& forest, const std::vector<Column>& columns,
                    std::vector<std::uint32_t> unresolved) {
  Universe universe;
  Universe::Box box;
  for (const Column& column : columns) {
    if (!universe.features.empty() && universe.features.back() == column.feature) continue;
    box.sides.push_back(static_cast<std::uint32_t>(universe.sides.size()));
    universe.features.push_back(column.feature);
    std::vector<Cell> side(static_cast<std::size_t>(forest.axis(column.feature).n_cells));
    std::iota(side.begin(), side.end(), Cell{0});
    universe.sides.push_back(std::move(side));
  }
  universe.mask_lists.push_back(std::move(unresolved));
  universe.boxes.push_back(std::move(box));
  return universe;
}

}  // namespace

template <class Value>
Sampler<Value>::Sampler(const Forest<Value>& forest, const MaskSpace& masks, Value threshold,
                        const MaskQuestion& question)
    : n_features_(forest.axes.size()),
      scope_(forest, masks, question),
      profiles_(forest, masks, scope_),
      decider_(forest, masks, scope_, question, threshold) {
  const std::size_t fitting = kRowBytes / (sizeof(Value) * profiles_.n_masks());
  block_ = std::clamp<std::size_t>(fitting, 1, kBatch / 2);
  std::vector<std::uint32_t> unresolved;
  unresolved.reserve(question.unresolved.size());
  for (const MaskIndex mask : question.unresolved) {
    if (mask < 0 || mask >= masks.size()) throw std::invalid_argument("sampling: no such mask");
    // With all pairs the scope holds all masks: each is its own index.
    unresolved.push_back(question.all_pairs ? static_cast<std::uint32_t>(mask)
                                            : scope_.index(masks, mask));
  }
  set_universe(everything(forest, profiles_.columns(), std::move(unresolved)));
}

template <class Value>
void Sampler<Value>::set_universe(Universe universe) {
  double total = 0;
  std::size_t most = 1;
  for (const Universe::Box& box : universe.boxes) {
    total += box.weight;
    most = std::max(most, universe.mask_lists[box.masks].size());
  }
  levels_ = static_cast<std::uint32_t>(std::min<std::size_t>(most, kMaxLevels));
  cumulative_.clear();
  double before = 0;
  for (const Universe::Box& box : universe.boxes) {
    before += box.weight;
    cumulative_.push_back(static_cast<std::uint64_t>(std::ldexp(std::min(1.0, before / total), 53))
                          << 9);
  }
  if (!cumulative_.empty()) cumulative_.back() = kWeightUnit;
  columns_of_.assign(universe.features.size(), {});
  for (std::uint32_t c = 0; c < profiles_.columns().size(); ++c) {
    const Feature feature = profiles_.columns()[c].feature;
    const auto found = std::find(universe.features.begin(), universe.features.end(), feature);
    if (found == universe.features.end()) {
      throw std::invalid_argument("sampling: a universe must draw every contributing feature");
    }
    columns_of_[static_cast<std::size_t>(found - universe.features.begin())].push_back(c);
  }
  universe_ = std::move(universe);
}

template <class Value>
typename Sampler<Value>::Thread Sampler<Value>::make_thread() const {
  return {profiles_.workspace(block_),
          decider_.workspace(),
          std::vector<Code>(std::max<std::size_t>(1, profiles_.columns().size() * block_)),
          std::vector<Value>(block_ * profiles_.n_masks()),
          std::vector<std::uint8_t>(profiles_.n_masks()),
          std::vector<std::uint32_t>(block_)};
}

template <class Value>
Outcomes Sampler<Value>::draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
                              std::uint64_t n, unsigned n_threads, Stop& stop) const {
  if (universe_.boxes.empty()) throw std::invalid_argument("sampling: nothing to draw from");
  n_threads = std::max(1U, static_cast<unsigned>(std::min<std::uint64_t>(n_threads, n)));
  Outcomes outcomes{std::vector<std::uint64_t>(levels_ + 1), std::vector<std::uint8_t>(n * kBatch)};
  std::vector<std::vector<std::uint64_t>> histograms(n_threads,
                                                     std::vector<std::uint64_t>(levels_ + 1));
  std::atomic<std::uint64_t> next{0};
  const auto work = [&](std::size_t index) {
    Thread thread = make_thread();
    for (std::uint64_t batch = next++; batch < n && !stop.is_over(); batch = next++) {
      Random random(seed, stream, first + batch);
      draw_batch(random, thread, stop, histograms[index],
                 std::span(outcomes.hits).subspan(batch * kBatch, kBatch));
    }
  };
  parallel(n_threads, n_threads, work, &stop);
  if (stop.was_over()) return {};
  for (const auto& histogram : histograms) {
    for (std::size_t i = 0; i <= levels_; ++i) outcomes.histogram[i] += histogram[i];
  }
  return outcomes;
}

template <class Value>
void Sampler<Value>::draw_batch(Random& random, Thread& thread, Stop& stop,
                                std::span<std::uint64_t> histogram,
                                std::span<std::uint8_t> hits) const {
  const std::size_t n_masks = profiles_.n_masks();
  for (std::size_t done = 0; done < kBatch; done += block_) {
    if (stop.is_over()) return;
    const std::size_t count = std::min(block_, kBatch - done);
    draw_codes(random, count, thread);
    std::fill(thread.rows.begin(), thread.rows.end(), Value{});
    profiles_.evaluate(thread.codes, block_, count, thread.walks, thread.rows,
                       decider_.wants_jumps());
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<const Value> row(thread.rows.data() + i * n_masks, n_masks);
      std::uint32_t found = 0;
      const Universe::Box& box = universe_.boxes[thread.box_of[i]];
      if (decider_.decide(row, thread.windows, thread.sensitive)) {
        found = count_sensitive(box, thread);
      }
      const auto n = static_cast<std::uint32_t>(universe_.mask_lists[box.masks].size());
      const std::uint64_t scaled = std::uint64_t{found} * levels_;
      const bool up = scaled % n != 0 && random.below(n) < scaled % n;
      ++histogram[scaled / n + (up ? 1 : 0)];
      hits[done + i] = found == n || (found != 0 && random.below(n) < found) ? 1 : 0;
    }
  }
}

template <class Value>
std::uint32_t Sampler<Value>::count_sensitive(const Universe::Box& box,
                                              const Thread& thread) const {
  const auto& masks = universe_.mask_lists[box.masks];
  std::uint32_t found = 0;
  if (masks.size() == thread.sensitive.size()) {
    for (const std::uint8_t s : thread.sensitive) found += s;
  } else {
    for (const std::uint32_t mask : masks) found += thread.sensitive[mask];
  }
  return found;
}

template <class Value>
void Sampler<Value>::draw_codes(Random& random, std::size_t count, Thread& thread) const {
  if (universe_.boxes.size() == 1) {
    draw_codes_of_one_box(random, count, thread);
  } else {
    draw_codes_of_boxes(random, count, thread);
  }
}

template <class Value>
void Sampler<Value>::draw_codes_of_one_box(Random& random, std::size_t count,
                                           Thread& thread) const {
  std::fill(thread.box_of.begin(), thread.box_of.end(), 0U);
  for (std::size_t f = 0; f < universe_.features.size(); ++f) {
    const std::vector<Cell>& side = universe_.sides[universe_.boxes[0].sides[f]];
    const auto size = static_cast<std::uint32_t>(side.size());
    for (std::size_t i = 0; i < count; ++i) set_codes(f, i, side[random.below(size)], thread);
  }
}

template <class Value>
void Sampler<Value>::draw_codes_of_boxes(Random& random, std::size_t count, Thread& thread) const {
  for (std::size_t i = 0; i < count; ++i) {
    thread.box_of[i] = draw_box(random);
    const Universe::Box& box = universe_.boxes[thread.box_of[i]];
    for (std::size_t f = 0; f < universe_.features.size(); ++f) {
      const std::vector<Cell>& side = universe_.sides[box.sides[f]];
      const auto size = static_cast<std::uint32_t>(side.size());
      set_codes(f, i, size == 1 ? side[0] : side[random.below(size)], thread);
    }
  }
}

template <class Value>
void Sampler<Value>::set_codes(std::size_t feature, std::size_t sample, Cell cell,
                               Thread& thread) const {
  for (const std::uint32_t c : columns_of_[feature]) {
    thread.codes[c * block_ + sample] =
        profiles_.columns()[c].code_of_cell[static_cast<std::size_t>(cell)];
  }
}

template <class Value>
bool Sampler<Value>::exists(std::size_t feature, Cell cell) const {
  const std::vector<std::uint32_t>& columns = columns_of_[feature];
  if (columns.empty()) return true;  // nobody looks at it
  return cell >= 0 &&
         static_cast<std::size_t>(cell) < profiles_.columns()[columns[0]].code_of_cell.size();
}

template <class Value>
std::uint32_t Sampler<Value>::draw_box(Random& random) const {
  const std::uint64_t target = random.next() >> 2;
  const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), target);
  return static_cast<std::uint32_t>(found - cumulative_.begin());
}

template <class Value>
std::vector<std::uint8_t> Sampler<Value>::decide(std::span<const Cell> regions) const {
  const std::size_t n_masks = profiles_.n_masks();
  if (n_features_ == 0 || regions.size() % n_features_ != 0) {
    throw std::invalid_argument("sampling: a region has one cell per feature");
  }
  const std::size_t n = regions.size() / n_features_;
  std::vector<std::uint8_t> flags(n * n_masks);
  Thread thread = make_thread();
  for (std::size_t done = 0; done < n; done += block_) {
    const std::size_t count = std::min(block_, n - done);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t f = 0; f < universe_.features.size(); ++f) {
        const auto feature = static_cast<std::size_t>(universe_.features[f]);
        const Cell cell = regions[(done + i) * n_features_ + feature];
        if (!exists(f, cell)) throw std::invalid_argument("sampling: a cell is out of range");
        set_codes(f, i, cell, thread);
      }
    }
    std::fill(thread.rows.begin(), thread.rows.end(), Value{});
    profiles_.evaluate(thread.codes, block_, count, thread.walks, thread.rows,
                       decider_.wants_jumps());
    for (std::size_t i = 0; i < count; ++i) {
      decider_.decide(std::span<const Value>(thread.rows.data() + i * n_masks, n_masks),
                      thread.windows, std::span(flags).subspan((done + i) * n_masks, n_masks));
    }
  }
  return flags;
}

template class Sampler<std::int64_t>;
template class Sampler<Int128>;
template class Sampler<Int2304>;

}  // namespace xcount

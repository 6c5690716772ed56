#include "xcount/sampling/sampler.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "xcount/support/parallel.hpp"

namespace xcount {

namespace {

constexpr std::size_t kRowBytes = 64 * 1024;  // rows of one block: they should stay in cache

}  // namespace

template <class Value>
Sampler<Value>::Sampler(const Forest<Value>& forest, const MaskSpace& masks, Value threshold,
                        const MaskQuestion& question, Direction direction)
    : n_features_(forest.axes.size()),
      scope_(forest, masks, question),
      profiles_(forest, masks, scope_),
      decider_(forest, masks, scope_, question, Gap<Value>(threshold, direction)) {
  const std::size_t fitting = kRowBytes / (sizeof(Value) * profiles_.n_masks());
  block_ = std::clamp<std::size_t>(fitting, 1, kBatch / 2);
  unresolved_.reserve(question.unresolved.size());
  for (const MaskIndex mask : question.unresolved) {
    if (mask < 0 || mask >= masks.size()) throw std::invalid_argument("sampling: no such mask");
    // With all pairs the scope holds all masks: each is its own index.
    unresolved_.push_back(question.all_pairs ? static_cast<std::uint32_t>(mask)
                                             : scope_.index(masks, mask));
  }
  const std::size_t most = std::max<std::size_t>(1, unresolved_.size());
  levels_ = static_cast<std::uint32_t>(std::min<std::size_t>(most, kMaxLevels));
  for (std::uint32_t c = 0; c < profiles_.columns().size(); ++c) {
    const Feature feature = profiles_.columns()[c].feature;
    // The columns of a feature follow each other.
    if (drawn_.empty() || drawn_.back().feature != feature) {
      drawn_.push_back({feature, forest.axis(feature).n_cells, {}});
    }
    drawn_.back().columns.push_back(c);
  }
}

template <class Value>
typename Sampler<Value>::Thread Sampler<Value>::make_thread() const {
  return {profiles_.workspace(block_), decider_.workspace(),
          std::vector<Code>(std::max<std::size_t>(1, profiles_.columns().size() * block_)),
          std::vector<Value>(block_ * profiles_.n_masks()),
          std::vector<std::uint8_t>(profiles_.n_masks())};
}

template <class Value>
Outcomes Sampler<Value>::draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
                              std::uint64_t n, unsigned n_threads, Stop& stop) const {
  if (unresolved_.empty()) throw std::invalid_argument("sampling: nothing to draw from");
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
      if (decider_.decide(row, thread.windows, thread.sensitive)) found = count_sensitive(thread);
      const auto n = static_cast<std::uint32_t>(unresolved_.size());
      const std::uint64_t scaled = std::uint64_t{found} * levels_;
      const bool up = scaled % n != 0 && random.below(n) < scaled % n;
      ++histogram[scaled / n + (up ? 1 : 0)];
      hits[done + i] = found == n || (found != 0 && random.below(n) < found) ? 1 : 0;
    }
  }
}

template <class Value>
std::uint32_t Sampler<Value>::count_sensitive(const Thread& thread) const {
  std::uint32_t found = 0;
  if (unresolved_.size() == thread.sensitive.size()) {
    for (const std::uint8_t s : thread.sensitive) found += s;
  } else {
    for (const std::uint32_t mask : unresolved_) found += thread.sensitive[mask];
  }
  return found;
}

template <class Value>
void Sampler<Value>::draw_codes(Random& random, std::size_t count, Thread& thread) const {
  for (const Drawn& drawn : drawn_) {
    const auto n_cells = static_cast<std::uint32_t>(drawn.n_cells);
    for (std::size_t i = 0; i < count; ++i) {
      set_codes(drawn, i, static_cast<Cell>(random.below(n_cells)), thread);
    }
  }
}

template <class Value>
void Sampler<Value>::set_codes(const Drawn& drawn, std::size_t sample, Cell cell,
                               Thread& thread) const {
  for (const std::uint32_t c : drawn.columns) {
    thread.codes[c * block_ + sample] =
        profiles_.columns()[c].code_of_cell[static_cast<std::size_t>(cell)];
  }
}

template <class Value>
template <class Visit>
void Sampler<Value>::visit_rows(std::span<const Cell> regions, bool as_jumps, Visit visit) const {
  const std::size_t n_masks = profiles_.n_masks();
  if (n_features_ == 0 || regions.size() % n_features_ != 0) {
    throw std::invalid_argument("sampling: a region has one cell per feature");
  }
  const std::size_t n = regions.size() / n_features_;
  Thread thread = make_thread();
  for (std::size_t done = 0; done < n; done += block_) {
    const std::size_t count = std::min(block_, n - done);
    for (std::size_t i = 0; i < count; ++i) {
      for (const Drawn& drawn : drawn_) {
        const auto feature = static_cast<std::size_t>(drawn.feature);
        const Cell cell = regions[(done + i) * n_features_ + feature];
        if (cell < 0 || cell >= drawn.n_cells) {
          throw std::invalid_argument("sampling: a cell is out of range");
        }
        set_codes(drawn, i, cell, thread);
      }
    }
    std::fill(thread.rows.begin(), thread.rows.end(), Value{});
    profiles_.evaluate(thread.codes, block_, count, thread.walks, thread.rows, as_jumps);
    for (std::size_t i = 0; i < count; ++i) {
      visit(done + i, std::span<const Value>(thread.rows.data() + i * n_masks, n_masks), thread);
    }
  }
}

template <class Value>
std::vector<std::uint8_t> Sampler<Value>::decide(std::span<const Cell> regions) const {
  const std::size_t n_masks = profiles_.n_masks();
  std::vector<std::uint8_t> flags(n_features_ == 0 ? 0 : regions.size() / n_features_ * n_masks);
  visit_rows(regions, decider_.wants_jumps(),
             [&](std::size_t i, std::span<const Value> row, Thread& thread) {
               decider_.decide(row, thread.windows, std::span(flags).subspan(i * n_masks, n_masks));
             });
  return flags;
}

template <class Value>
std::vector<Value> Sampler<Value>::differences(std::span<const Cell> regions) const {
  std::vector<Value> found;
  if (n_features_ > 0) found.reserve(regions.size() / n_features_ * decider_.pairs().size());
  visit_rows(regions, false, [&](std::size_t, std::span<const Value> row, Thread&) {
    for (const auto& [a, b] : decider_.pairs()) found.push_back(row[b] - row[a]);
  });
  return found;
}

template class Sampler<std::int64_t>;
template class Sampler<Int128>;
template class Sampler<Int2304>;

}  // namespace xcount

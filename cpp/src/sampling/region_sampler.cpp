#include "xcount/sampling/region_sampler.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "xcount/support/parallel.hpp"

namespace xcount {

namespace {

constexpr std::size_t kBlock = 16;  // samples that take a tree's turn together

std::int64_t diameter(std::span<const Axis> axes) {
  std::int64_t total = 0;
  for (const Axis& axis : axes) total += axis.furthest();
  return total;
}

}  // namespace

template <class Value>
RegionSampler<Value>::RegionSampler(const Forest<Value>& forest, std::vector<Feature> sensitive,
                                    std::optional<std::int64_t> distance, const Value& threshold,
                                    std::uint64_t budget, Direction direction)
    : sensitive_(std::move(sensitive)),
      all_axes_(forest.axes),
      radius_(distance.value_or(Ball::kEverywhere)),
      gap_(threshold, direction),
      budget_(budget),
      trees_(forest, sensitive_) {
  if (radius_ < 1) throw std::invalid_argument("regions: the distance must be at least 1");
  for (const Feature feature : sensitive_) axes_.push_back(forest.axis(feature));
  if (radius_ >= diameter(axes_)) radius_ = Ball::kEverywhere;
  n_masks_ = radius_ == Ball::kEverywhere ? kSharing : 1;
  for (const DrawnColumn& column : trees_.columns()) {
    const auto found = std::find(features_.begin(), features_.end(), column.feature);
    place_.push_back(static_cast<std::size_t>(found - features_.begin()));
    if (found == features_.end()) features_.push_back(column.feature);
  }
}

template <class Value>
typename RegionSampler<Value>::Thread RegionSampler<Value>::make_thread() const {
  Thread thread{RegionSearch<Value>(trees_, gap_), std::vector<Sample>(kBlock),
                std::vector<Cell>(features_.size()), std::vector<Value>(n_masks_)};
  for (Sample& sample : thread.block) {
    sample.cells.resize(trees_.columns().size());
    sample.masks.resize(n_masks_ * axes_.size());
    sample.answers.resize(n_masks_);
  }
  return thread;
}

template <class Value>
RegionOutcomes RegionSampler<Value>::draw(std::uint64_t seed, std::uint64_t stream,
                                          std::uint64_t first, std::uint64_t n, unsigned n_threads,
                                          Stop& stop) const {
  n_threads = std::max(1U, static_cast<unsigned>(std::min<std::uint64_t>(n_threads, n)));
  const Outcomes empty{std::vector<std::uint64_t>(n_masks_ + 1),
                       std::vector<std::uint8_t>(n * kBatch)};
  RegionOutcomes total{empty, empty, 0};
  std::atomic<std::uint64_t> next{0};
  std::mutex adding;
  const auto work = [&](std::size_t) {
    Thread thread = make_thread();
    for (std::uint64_t batch = next++; batch < n && !stop.is_over(); batch = next++) {
      Random random(seed, stream, first + batch);
      RegionOutcomes found{{std::vector<std::uint64_t>(n_masks_ + 1), {}},
                           {std::vector<std::uint64_t>(n_masks_ + 1), {}},
                           0};
      draw_batch(random, thread, stop, found);
      if (stop.was_over()) return;
      const std::scoped_lock lock(adding);
      merge(found, batch, total);
    }
  };
  parallel(n_threads, n_threads, work, &stop);
  return stop.was_over() ? RegionOutcomes{} : total;
}

template <class Value>
void RegionSampler<Value>::merge(const RegionOutcomes& batch, std::uint64_t place,
                                 RegionOutcomes& total) {
  const auto at = static_cast<std::ptrdiff_t>(place * kBatch);
  const auto add = [&](const Outcomes& from, Outcomes& to) {
    for (std::size_t i = 0; i < to.histogram.size(); ++i) to.histogram[i] += from.histogram[i];
    std::copy(from.hits.begin(), from.hits.end(), to.hits.begin() + at);
  };
  add(batch.outcomes, total.outcomes);
  add(batch.upper, total.upper);
  total.n_open += batch.n_open;
}

template <class Value>
void RegionSampler<Value>::draw_batch(Random& random, Thread& thread, Stop& stop,
                                      RegionOutcomes& out) const {
  for (std::size_t done = 0; done < kBatch; done += kBlock) {
    const std::span<Sample> block(thread.block.data(), std::min(kBlock, kBatch - done));
    for (Sample& sample : block) draw_sample(random, thread, sample);
    answer(block, thread, stop);
    if (stop.was_over()) return;
    for (const Sample& sample : block) {
      const auto count = [&](Answer answer) {
        return static_cast<std::size_t>(
            std::count(sample.answers.begin(), sample.answers.end(), answer));
      };
      const std::size_t n_sensitive = count(Answer::kSensitive);
      const std::size_t n_open = count(Answer::kOpen);
      ++out.outcomes.histogram[n_sensitive];
      ++out.upper.histogram[n_sensitive + n_open];
      // The masks are drawn independently: the first is one drawn at random.
      out.outcomes.hits.push_back(sample.answers[0] == Answer::kSensitive ? 1 : 0);
      out.upper.hits.push_back(sample.answers[0] == Answer::kNot ? 0 : 1);
      out.n_open += n_open;
    }
  }
}

template <class Value>
void RegionSampler<Value>::draw_sample(Random& random, Thread& thread, Sample& sample) const {
  const auto draw_cell = [&](const Axis& axis) {
    return static_cast<Cell>(random.below(static_cast<std::uint32_t>(axis.n_cells)));
  };
  for (std::size_t i = 0; i < features_.size(); ++i) {
    thread.drawn[i] = draw_cell(all_axes_[static_cast<std::size_t>(features_[i])]);
  }
  set_cells(thread.drawn, sample);
  for (std::size_t i = 0; i < sample.masks.size(); ++i) {
    sample.masks[i] = draw_cell(axes_[i % axes_.size()]);
  }
}

template <class Value>
void RegionSampler<Value>::set_cells(std::span<const Cell> drawn, Sample& sample) const {
  for (std::size_t c = 0; c < place_.size(); ++c) {
    const DrawnColumn& column = trees_.columns()[c];
    const Cell missing = all_axes_[static_cast<std::size_t>(column.feature)].missing_cell;
    const Cell cell = drawn[place_[c]];
    sample.cells[c] = column.missing_low && cell == missing ? -1 : cell;
  }
}

template <class Value>
Ball RegionSampler<Value>::ball_of(const Sample& sample) const {
  return {axes_, std::span(sample.masks).first(axes_.size()), radius_};
}

template <class Value>
void RegionSampler<Value>::answer(std::span<Sample> samples, Thread& thread, Stop& stop) const {
  for (Sample& sample : samples) {
    std::fill(sample.answers.begin(), sample.answers.end(), Answer::kOpen);
    sample.boxes = ball_of(sample).boxes();
    if (sample.residues.size() < sample.boxes.size()) sample.residues.resize(sample.boxes.size());
    for (Residue<Value>& residue : sample.residues) residue.clear();
  }
  for (std::size_t tree = 0; tree < trees_.n_trees(); ++tree) {
    for (Sample& sample : samples) {
      if ((tree & 15) == 0 && stop.is_over()) return;
      for (std::size_t b = 0; b < sample.boxes.size(); ++b) {
        trees_.restrict(tree, sample.cells, sample.boxes[b], sample.residues[b]);
      }
    }
  }
  for (Sample& sample : samples) {
    if (stop.is_over()) return;
    search(sample, thread);
  }
}

template <class Value>
void RegionSampler<Value>::search(Sample& sample, Thread& thread) const {
  const Ball ball = ball_of(sample);
  const std::size_t n_axes = axes_.size();
  // The first box holds the centre; with the whole space, it holds every mask.
  for (std::size_t k = 0; k < n_masks_; ++k) {
    thread.values[k] =
        trees_.value_at(sample.residues[0], std::span(sample.masks).subspan(k * n_axes, n_axes));
  }
  std::uint64_t budget = budget_;
  bool is_done = true;
  for (std::size_t b = 0; b < sample.boxes.size(); ++b) {
    is_done = thread.search.run(sample.residues[b], sample.boxes[b], ball, thread.values,
                                sample.answers, budget) &&
              is_done;
  }
  if (is_done)
    std::replace(sample.answers.begin(), sample.answers.end(), Answer::kOpen, Answer::kNot);
}

template <class Value>
std::vector<std::uint8_t> RegionSampler<Value>::decide(std::span<const Cell> regions) const {
  const std::size_t n_features = all_axes_.size();
  if (n_features == 0 || regions.size() % n_features != 0) {
    throw std::invalid_argument("regions: a region has one cell per feature");
  }
  for (std::size_t i = 0; i < regions.size(); ++i) {
    if (regions[i] < 0 || regions[i] >= all_axes_[i % n_features].n_cells) {
      throw std::invalid_argument("regions: a cell is out of range");
    }
  }
  std::vector<std::uint8_t> answers;
  Thread thread = make_thread();
  Sample& sample = thread.block[0];
  Stop never;
  for (std::size_t start = 0; start + n_features <= regions.size(); start += n_features) {
    const auto cell_of = [&](Feature f) { return regions[start + static_cast<std::size_t>(f)]; };
    for (std::size_t i = 0; i < features_.size(); ++i) thread.drawn[i] = cell_of(features_[i]);
    set_cells(thread.drawn, sample);
    for (std::size_t i = 0; i < sample.masks.size(); ++i) {
      sample.masks[i] = cell_of(sensitive_[i % axes_.size()]);
    }
    answer(std::span(&sample, 1), thread, never);
    answers.push_back(static_cast<std::uint8_t>(sample.answers[0]));
  }
  return answers;
}

template class RegionSampler<std::int64_t>;
template class RegionSampler<Int128>;
template class RegionSampler<Int2304>;

}  // namespace xcount

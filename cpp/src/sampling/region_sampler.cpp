#include "xcount/sampling/region_sampler.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "xcount/support/parallel.hpp"

namespace xcount {

namespace {

constexpr std::size_t kAtATime = 16;  // samples that take a tree's turn together
constexpr std::chrono::milliseconds kSlow{20};

std::int64_t diameter(std::span<const Axis> axes) {
  std::int64_t total = 0;
  for (const Axis& axis : axes) total += axis.furthest();
  return total;
}

}  // namespace

template <class Value>
RegionSampler<Value>::RegionSampler(const RegionQuestion<Value>& question, std::uint64_t budget)
    : rule_(question.change, question.link),
      sensitive_(question.sensitive),
      all_axes_(question.forests.at(0)->axes),
      bases_(question.bases),
      radius_(question.distance.value_or(Ball::kEverywhere)),
      budget_(budget),
      trees_(question.forests, sensitive_, rule_.needs_whole_sums()) {
  if (radius_ < 1) throw std::invalid_argument("regions: the distance must be at least 1");
  if (bases_.size() != question.forests.size() || (bases_.size() > 1) != rule_.compares_sums()) {
    throw std::invalid_argument("regions: the change is about another number of sums");
  }
  if (rule_.is_of_chance() && question.link.output >= bases_.size()) {
    throw std::invalid_argument("regions: the link is about another sum");
  }
  for (const Feature feature : sensitive_) {
    axes_.push_back(all_axes_[static_cast<std::size_t>(feature)]);
  }
  if (radius_ >= diameter(axes_)) radius_ = Ball::kEverywhere;
  n_masks_ = radius_ == Ball::kEverywhere && !rule_.compares_sums() ? kSharing : 1;
  for (const DrawnColumn& column : trees_.columns()) {
    const auto found = std::find(features_.begin(), features_.end(), column.feature);
    place_.push_back(static_cast<std::size_t>(found - features_.begin()));
    if (found == features_.end()) features_.push_back(column.feature);
  }
}

template <class Value>
typename RegionSampler<Value>::Thread RegionSampler<Value>::make_thread(
    std::uint64_t budget) const {
  Thread thread{RegionSearch<Value>(trees_, rule_.is_of_chance() ? &rule_ : nullptr),
                std::vector<Sample>(kAtATime),
                std::vector<Cell>(features_.size()),
                std::vector<Value>(n_masks_ * n_sums()),
                std::vector<Tolerance<Value>>(),
                std::vector<Residue<Value>>(),
                budget};
  for (Sample& sample : thread.block) {
    sample.cells.resize(trees_.columns().size());
    sample.masks.resize(n_masks_ * axes_.size());
    sample.answers.resize(n_masks_);
    sample.radius = radius_;
  }
  return thread;
}

template <class Value>
RegionOutcomes RegionSampler<Value>::draw(std::uint64_t seed, std::uint64_t stream,
                                          std::uint64_t first, std::uint64_t n, unsigned n_threads,
                                          Stop& stop) const {
  std::vector<Found> found(n * kBatch);
  Source source{seed, stream, first, n * kBatch};
  answer_all(source, budget_, n_threads, found, stop);
  return outcomes_of(found);
}

template <class Value>
typename RegionSampler<Value>::Trial RegionSampler<Value>::try_budget(
    std::uint64_t budget, std::uint64_t seed, std::uint64_t stream, std::uint64_t n,
    unsigned n_threads, Stop& stop) const {
  std::vector<Found> found(n);
  Source source{seed, stream, 0, n};
  Trial trial;
  trial.n_nodes = answer_all(source, budget, n_threads, found, stop);
  for (const Found& each : found) {
    trial.n_samples += each.is_done ? 1 : 0;
    trial.n_open += each.is_done ? each.n_open : 0;
  }
  return trial;
}

// The random numbers of a batch are used up in the order of its samples.
template <class Value>
std::pair<std::uint64_t, std::size_t> RegionSampler<Value>::take(Source& source, std::size_t most,
                                                                 Thread& thread) const {
  const std::scoped_lock lock(source.taking);
  const std::uint64_t start = source.next;
  const std::uint64_t done = start % kBatch;
  if (start == source.n_samples) return {start, 0};
  if (done == 0) {
    source.random = Random(source.seed, source.stream, source.first + start / kBatch);
  }
  const auto n = static_cast<std::size_t>(
      std::min<std::uint64_t>({most, kBatch - done, source.n_samples - start}));
  for (std::size_t i = 0; i < n; ++i) draw_sample(source.random, thread, thread.block[i]);
  source.next += n;
  return {start, n};
}

template <class Value>
std::uint64_t RegionSampler<Value>::answer_all(Source& source, std::uint64_t budget,
                                               unsigned n_threads, std::span<Found> found,
                                               Stop& stop) const {
  std::atomic<std::uint64_t> n_nodes{0};
  const auto work = [&](std::size_t) {
    Thread thread = make_thread(budget);
    std::size_t most = kAtATime;
    while (!stop.is_over()) {
      const auto began = Stop::Clock::now();
      const auto [start, n] = take(source, most, thread);
      if (n == 0) break;
      const std::size_t n_done = answer(std::span(thread.block).first(n), thread, stop);
      for (std::size_t i = 0; i < n_done; ++i) found[start + i] = found_in(thread.block[i]);
      // Slow samples one by one: what is done when the time is up has no gaps.
      most = Stop::Clock::now() - began > kSlow ? 1 : kAtATime;
    }
    n_nodes += thread.n_nodes;
  };
  n_threads = std::max(1U, n_threads);
  parallel(n_threads, n_threads, work, &stop);
  return n_nodes;
}

template <class Value>
typename RegionSampler<Value>::Found RegionSampler<Value>::found_in(const Sample& sample) {
  const auto count = [&](Answer answer) {
    return static_cast<std::uint32_t>(
        std::count(sample.answers.begin(), sample.answers.end(), answer));
  };
  // The masks are drawn independently: the first is one drawn at random.
  return {count(Answer::kSensitive), count(Answer::kOpen), sample.answers[0], true};
}

// Which samples are done must not depend on what they are: they are those before the first that is
// not, and intervals hold after any number of samples.
template <class Value>
RegionOutcomes RegionSampler<Value>::outcomes_of(std::span<const Found> found) const {
  const auto end =
      std::find_if(found.begin(), found.end(), [](auto& each) { return !each.is_done; });
  RegionOutcomes out;
  if (end == found.begin() && !found.empty()) return out;
  out.outcomes.histogram.resize(n_masks_ + 1);
  out.upper.histogram.resize(n_masks_ + 1);
  for (auto each = found.begin(); each != end; ++each) {
    ++out.outcomes.histogram[each->n_sensitive];
    ++out.upper.histogram[each->n_sensitive + each->n_open];
    out.outcomes.hits.push_back(each->first == Answer::kSensitive ? 1 : 0);
    out.upper.hits.push_back(each->first == Answer::kNot ? 0 : 1);
    out.n_open += each->n_open;
  }
  return out;
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
void RegionSampler<Value>::restrict(std::span<Sample> samples, Stop& stop) const {
  for (Sample& sample : samples) {
    sample.boxes = ball_of(sample).boxes();
    const std::size_t needed = sample.boxes.size() * n_sums();
    if (sample.residues.size() < needed) sample.residues.resize(needed);
    for (std::size_t i = 0; i < needed; ++i) sample.residues[i].clear(bases_[i % n_sums()]);
  }
  for (std::size_t tree = 0; tree < trees_.n_trees(); ++tree) {
    const std::size_t sum = trees_.sum_of(tree);
    for (Sample& sample : samples) {
      if ((tree & 15) == 0 && stop.is_over()) return;
      for (std::size_t b = 0; b < sample.boxes.size(); ++b) {
        trees_.restrict(tree, sample.cells, sample.boxes[b], sample.residues[b * n_sums() + sum]);
      }
    }
  }
}

// The first box holds the centre; with the whole space, it holds every mask.
template <class Value>
void RegionSampler<Value>::find_values(const Sample& sample, Thread& thread) const {
  const std::size_t n_axes = axes_.size();
  for (std::size_t k = 0; k < n_masks_; ++k) {
    const auto mask = std::span(sample.masks).subspan(k * n_axes, n_axes);
    for (std::size_t sum = 0; sum < n_sums(); ++sum) {
      thread.values[k * n_sums() + sum] = trees_.value_at(sample.residues[sum], mask);
    }
  }
}

template <class Value>
void RegionSampler<Value>::find_tolerances(Thread& thread) const {
  thread.tolerances.clear();
  if (!rule_.compares_sums()) {
    for (const Value& value : thread.values) thread.tolerances.push_back(rule_.around(value));
    return;
  }
  const auto values = std::span<const Value>(thread.values).first(n_sums());
  if (rule_.is_of_chance()) {
    thread.tolerances.push_back(rule_.around_chance(values));
    return;
  }
  const std::size_t largest = rule_.largest(values);
  for (std::size_t sum = 0; sum < n_sums(); ++sum) {
    if (sum != largest) thread.tolerances.push_back(rule_.lead(sum, largest));
  }
}

// Where every mask is a neighbour, so are those that are drawn together.
template <class Value>
void RegionSampler<Value>::compare_with_each_other(Sample& sample, const Thread& thread) const {
  const auto [least, most] = std::minmax_element(thread.values.begin(), thread.values.end());
  for (std::size_t i = 0; i < n_masks_; ++i) {
    const Tolerance<Value>& own = thread.tolerances[i];
    if (own.must_differ(*least, *least) || own.must_differ(*most, *most)) {
      sample.answers[i] = Answer::kSensitive;
    }
  }
}

template <class Value>
std::size_t RegionSampler<Value>::answer(std::span<Sample> samples, Thread& thread,
                                         Stop& stop) const {
  restrict(samples, stop);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (stop.is_over()) return i;
    find_values(samples[i], thread);
    find_tolerances(thread);
    search(samples[i], thread, stop);
    if (stop.was_over()) return i;
  }
  return samples.size();
}

// The residues that are searched on a box: of the sum itself, or of every other sum's lead over the
// one that is asked about, or that is largest at the start.
template <class Value>
std::span<Residue<Value>> RegionSampler<Value>::searched(Sample& sample, std::size_t box,
                                                         Thread& thread) const {
  const auto own = std::span(sample.residues).subspan(box * n_sums(), n_sums());
  if (!rule_.compares_sums()) return own;
  const std::size_t reference = rule_.reference(thread.values);
  thread.leads.resize(n_sums() - 1);
  for (std::size_t sum = 0, at = 0; sum < n_sums(); ++sum) {
    if (sum != reference) thread.leads[at++].set_difference(own[sum], own[reference]);
  }
  return thread.leads;
}

template <class Value>
void RegionSampler<Value>::search(Sample& sample, Thread& thread, Stop& stop) const {
  const Ball ball = ball_of(sample);
  std::fill(sample.answers.begin(), sample.answers.end(), Answer::kOpen);
  const StartingPoint start =
      rule_.compares_sums() ? rule_.start_of(std::span<const Value>(thread.values).first(n_sums()))
                            : StartingPoint::kCounts;
  if (start == StartingPoint::kNever) {
    std::fill(sample.answers.begin(), sample.answers.end(), Answer::kNot);
    return;
  }
  if (n_masks_ > 1) compare_with_each_other(sample, thread);
  std::uint64_t budget = thread.budget;
  bool is_done = true;
  for (std::size_t b = 0; b < sample.boxes.size(); ++b) {
    is_done = thread.search.run(searched(sample, b, thread), sample.boxes[b], ball,
                                {thread.tolerances, sample.answers}, budget, stop) &&
              is_done;
  }
  thread.n_nodes += thread.budget - budget;
  if (is_done)
    std::replace(sample.answers.begin(), sample.answers.end(), Answer::kOpen, Answer::kNot);
  // A neighbour differs, but whether that counts is for others to tell.
  if (start == StartingPoint::kInDoubt)
    std::replace(sample.answers.begin(), sample.answers.end(), Answer::kSensitive, Answer::kOpen);
}

template <class Value>
void RegionSampler<Value>::check(std::span<const Cell> regions) const {
  const std::size_t n_features = all_axes_.size();
  if (n_features == 0 || regions.size() % n_features != 0) {
    throw std::invalid_argument("regions: a region has one cell per feature");
  }
  for (std::size_t i = 0; i < regions.size(); ++i) {
    if (regions[i] < 0 || regions[i] >= all_axes_[i % n_features].n_cells) {
      throw std::invalid_argument("regions: a cell is out of range");
    }
  }
}

template <class Value>
void RegionSampler<Value>::set_region(std::span<const Cell> region, Thread& thread,
                                      Sample& sample) const {
  const auto cell_of = [&](Feature f) { return region[static_cast<std::size_t>(f)]; };
  for (std::size_t i = 0; i < features_.size(); ++i) thread.drawn[i] = cell_of(features_[i]);
  set_cells(thread.drawn, sample);
  for (std::size_t i = 0; i < sample.masks.size(); ++i) {
    sample.masks[i] = cell_of(sensitive_[i % axes_.size()]);
  }
}

template <class Value>
std::vector<std::uint8_t> RegionSampler<Value>::decide(
    std::span<const Cell> regions, Stop& stop, std::span<const Tolerance<Value>> within) const {
  check(regions);
  const std::size_t n_features = all_axes_.size();
  const std::size_t n = regions.size() / n_features;
  if (!within.empty() && (within.size() != n || rule_.compares_sums())) {
    throw std::invalid_argument("regions: a region of one sum has one tolerance");
  }
  std::vector<std::uint8_t> answers;
  Thread thread = make_thread(budget_);
  Sample& sample = thread.block[0];
  for (std::size_t i = 0; i < n; ++i) {
    set_region(regions.subspan(i * n_features, n_features), thread, sample);
    decide_one(radius_, within.empty() ? within : within.subspan(i, 1), thread, sample, stop);
    if (stop.is_over()) break;
    answers.push_back(static_cast<std::uint8_t>(sample.answers[0]));
  }
  return answers;
}

template <class Value>
void RegionSampler<Value>::decide_one(std::int64_t radius, std::span<const Tolerance<Value>> within,
                                      Thread& thread, Sample& sample, Stop& stop) const {
  sample.radius = radius;
  restrict(std::span(&sample, 1), stop);
  if (stop.was_over()) return;
  find_values(sample, thread);
  find_tolerances(thread);
  if (!within.empty()) std::fill(thread.tolerances.begin(), thread.tolerances.end(), within[0]);
  search(sample, thread, stop);
}

// Every find is the nearest of its box; the next search looks among nearer masks alone.
template <class Value>
std::vector<Cell> RegionSampler<Value>::partner(std::span<const Cell> region, Stop& stop,
                                                std::span<const Tolerance<Value>> within) const {
  check(region);
  Thread thread = make_thread(budget_);
  Sample& sample = thread.block[0];
  set_region(region.first(all_axes_.size()), thread, sample);
  std::vector<Cell> best;
  for (std::int64_t radius = radius_; radius > 0;) {
    decide_one(radius, within, thread, sample, stop);
    if (stop.is_over()) break;
    if (sample.answers[0] != Answer::kSensitive) break;
    best = ball_of(sample).nearest(thread.search.found());
    radius = ball_of(sample).distance(best) - 1;
  }
  return best;
}

template <class Value>
std::vector<Value> RegionSampler<Value>::sums(std::span<const Cell> regions) const {
  check(regions);
  const std::size_t n_features = all_axes_.size();
  std::vector<Value> found;
  Thread thread = make_thread(budget_);
  Sample& sample = thread.block[0];
  Stop never;
  for (std::size_t start = 0; start < regions.size(); start += n_features) {
    set_region(regions.subspan(start, n_features), thread, sample);
    restrict(std::span(&sample, 1), never);
    find_values(sample, thread);
    const auto own = std::span(thread.values).first(n_sums());
    found.insert(found.end(), own.begin(), own.end());
  }
  return found;
}

template class RegionSampler<std::int64_t>;
template class RegionSampler<Int128>;
template class RegionSampler<Int2304>;

}  // namespace xcount

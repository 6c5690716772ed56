#include "xcount/exact/counter.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <system_error>

#include "xcount/support/parallel.hpp"

namespace xcount {

namespace {

constexpr std::size_t kKeptBytes = std::size_t{32} << 20;  // tables larger than this are not reused
constexpr std::size_t kLookedAtBytes = std::size_t{64} << 20;  // of a pair that `live` looks at

std::vector<std::uint64_t> read_count(const CountValues& values, SolutionId solution) {
  const auto count = values.value(solution);
  return {count.begin(), count.end()};
}

std::vector<std::uint64_t> read_count(const WeightValues& /*values*/, SolutionId solution) {
  return {solution == kAllSolve ? 1U : 0U};  // weights have shares only
}

TaskStatus status_of(GiveUp reason) {
  switch (reason) {
    case GiveUp::kSteps:
      return TaskStatus::kSteps;
    case GiveUp::kMemory:
      return TaskStatus::kMemory;
    case GiveUp::kCancelled:
      return TaskStatus::kCancelled;
  }
  return TaskStatus::kCancelled;
}

}  // namespace

template <class Value, class Values>
SolutionId SubproblemSolver<Value, Values>::solve(const ExactTask& task,
                                                  const EliminationLimits& limits,
                                                  DiagramRecorder* recorder) {
  if (builder_.is_too_deep()) throw GiveUp::kMemory;
  store_.clear();
  eliminator_.clear();
  const auto check = [&] {
    if (limits.cancel != nullptr && limits.cancel->load(std::memory_order_relaxed)) {
      throw GiveUp::kCancelled;
    }
    if (store_.bytes() > limits.max_bytes) throw GiveUp::kMemory;
  };
  std::vector<ResidualSum<Value>> constraints(task.pairs.size());
  for (std::size_t i = 0; i < task.pairs.size(); ++i) {
    check();
    builder_.build(task.pairs[i].first, task.pairs[i].second, store_, constraints[i].residuals,
                   constraints[i].offset, check);
  }
  values_.reset(store_.forest(), store_.features());
  return eliminator_.solve(constraints, task.combine, limits, task.part, recorder);
}

template <class Value, class Values>
bool SubproblemSolver<Value, Values>::may_exceed(const MaskPair& pair, const Value& threshold,
                                                 Stop& stop) {
  if (builder_.is_too_deep()) return true;
  store_.clear();
  const auto check = [&] {
    if (stop.is_over()) throw GiveUp::kCancelled;
    if (store_.bytes() > kLookedAtBytes) throw GiveUp::kMemory;
  };
  try {
    return builder_.may_exceed(pair.first, pair.second, threshold, store_, check);
  } catch (const GiveUp&) {
    return true;  // what is not known has hope
  }
}

template <class Value, class Values>
std::vector<std::uint8_t> ExactCounter<Value, Values>::live(const std::vector<MaskPair>& pairs,
                                                            unsigned n_threads, Stop& stop) const {
  constexpr std::size_t kBatch = 16;
  std::vector<std::uint8_t> result(pairs.size(), 1);  // what is not checked has hope
  std::atomic<std::size_t> next{0};
  const auto check = [&] {
    Solver solver(forest_, masks_, threshold_, values_);
    for (std::size_t begin; (begin = next.fetch_add(kBatch)) < pairs.size();) {
      for (std::size_t i = begin; i < std::min(begin + kBatch, pairs.size()); ++i) {
        if (stop.is_over()) return;
        result[i] = solver.may_exceed(pairs[i], threshold_, stop) ? 1 : 0;
      }
    }
  };
  const auto check_safely = [&](std::size_t) noexcept {
    try {
      check();
    } catch (...) {  // no room: what is not checked has hope
      return;
    }
  };
  n_threads = std::max(1U, std::min(n_threads, static_cast<unsigned>(pairs.size() / kBatch)));
  parallel(n_threads, n_threads, check_safely, &stop);
  return result;
}

template <class Value, class Values>
void ExactCounter<Value, Values>::start(std::vector<ExactTask> tasks, const ExactLimits& limits) {
  cancel();
  tasks_ = std::move(tasks);
  results_.assign(tasks_.size(), {});
  limits_ = limits;
  cancelled_ = false;
  next_ = 0;
  n_done_ = 0;
  const unsigned n_threads =
      std::max(1U, std::min(limits.n_threads, static_cast<unsigned>(tasks_.size())));
  n_working_ = n_threads;
  try {
    while (threads_.size() < n_threads) {
      threads_.emplace_back([this, n_threads] { work(limits_.max_bytes / n_threads); });
    }
  } catch (const std::system_error&) {  // no more threads to be had: fewer do
    if (threads_.empty()) throw;
    const std::scoped_lock lock(mutex_);
    n_working_ -= n_threads - static_cast<unsigned>(threads_.size());
  }
}

template <class Value, class Values>
bool ExactCounter<Value, Values>::wait(double seconds) {
  std::unique_lock lock(mutex_);
  const bool done = finished_.wait_for(lock, std::chrono::duration<double>(seconds),
                                       [this] { return n_working_ == 0; });
  if (!done) return false;
  lock.unlock();
  threads_.clear();
  return true;
}

template <class Value, class Values>
void ExactCounter<Value, Values>::cancel() {
  cancelled_ = true;
  threads_.clear();  // joins
}

template <class Value, class Values>
void ExactCounter<Value, Values>::work(std::size_t max_bytes) {
  try {
    work_on_tasks(max_bytes);
  } catch (...) {  // no room for a solver; what is left stays undone
    cancelled_ = true;
  }
  const std::scoped_lock lock(mutex_);
  --n_working_;
  finished_.notify_all();
}

template <class Value, class Values>
void ExactCounter<Value, Values>::work_on_tasks(std::size_t max_bytes) {
  auto solver = std::make_unique<Solver>(forest_, masks_, threshold_, values_);
  for (std::size_t task; (task = next_.fetch_add(1)) < tasks_.size() && !cancelled_;) {
    run(*solver, task, max_bytes);
    n_done_.fetch_add(1, std::memory_order_relaxed);
    // Where memory ran out, in the middle of anything, nothing is worth keeping.
    if (results_[task].status == TaskStatus::kMemory || solver->bytes() > kKeptBytes) {
      solver.reset();
      solver = std::make_unique<Solver>(forest_, masks_, threshold_, values_);
    }
  }
}

template <class Value, class Values>
void ExactCounter<Value, Values>::run(Solver& solver, std::size_t task, std::size_t max_bytes) {
  TaskResult& result = results_[task];
  try {
    const SolutionId solution = solver.solve(
        tasks_[task],
        {limits_.max_steps, max_bytes, &cancelled_, limits_.max_paths, limits_.memo_bytes});
    result.count = read_count(solver.values(), solution);
    result.total = read_count(solver.values(), kAllSolve);
    result.share = solver.values().share(solution);
    result.size = read_count(solver.values(), solver.whole_part());
    result.status = TaskStatus::kSolved;
  } catch (const GiveUp& reason) {
    result.status = status_of(reason);
  } catch (const std::exception&) {  // std::bad_alloc, or a list longer than lists can be
    result.status = TaskStatus::kMemory;
  }
  result.n_steps = solver.n_steps();
}

template class SubproblemSolver<std::int64_t, CountValues>;
template class SubproblemSolver<Int128, CountValues>;
template class SubproblemSolver<Int2304, CountValues>;
template class SubproblemSolver<std::int64_t, WeightValues>;
template class SubproblemSolver<Int128, WeightValues>;
template class SubproblemSolver<Int2304, WeightValues>;
template class ExactCounter<std::int64_t, CountValues>;
template class ExactCounter<Int128, CountValues>;
template class ExactCounter<Int2304, CountValues>;
template class ExactCounter<std::int64_t, WeightValues>;
template class ExactCounter<Int128, WeightValues>;
template class ExactCounter<Int2304, WeightValues>;

}  // namespace xcount

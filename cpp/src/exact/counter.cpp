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
std::vector<std::uint8_t> ExactCounter<Value, Values>::live(const std::vector<MaskPair>& pairs,
                                                            unsigned n_threads, Stop& stop) const {
  constexpr std::size_t kBatch = 16;
  std::vector<std::uint8_t> result(pairs.size(), 1);  // not checked yet: treat as live
  std::atomic<std::size_t> next{0};
  const auto check = [&] {
    Solver solver(forest_, masks_, threshold_, values_);
    for (std::size_t begin; (begin = next.fetch_add(kBatch)) < pairs.size();) {
      for (std::size_t i = begin; i < std::min(begin + kBatch, pairs.size()); ++i) {
        if (stop.is_over()) return;
        result[i] = solver.may_exceed(pairs[i], stop) ? 1 : 0;
      }
    }
  };
  const auto check_safely = [&](std::size_t) noexcept {
    try {
      check();
    } catch (...) {  // no room: what is not checked counts as live
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
  Result& result = results_[task];
  try {
    const SolutionId solution = solver.solve(
        tasks_[task],
        {limits_.max_steps, max_bytes, &cancelled_, limits_.max_paths, limits_.memo_bytes});
    result.count = solver.values().number(solution);
    result.total = solver.values().number(kAllSolve);
    // Measured by the same numbers as the count, which this may forget: so it comes last.
    result.size = solver.values().number(solver.whole_part());
    result.status = TaskStatus::kSolved;
  } catch (const GiveUp& reason) {
    result.status = status_of(reason);
  } catch (const std::exception&) {  // std::bad_alloc, or a list longer than lists can be
    result.status = TaskStatus::kMemory;
  }
  result.n_steps = solver.n_steps();
}

template class ExactCounter<std::int64_t, CountValues>;
template class ExactCounter<Int128, CountValues>;
template class ExactCounter<Int2304, CountValues>;
template class ExactCounter<std::int64_t, WeightValues>;
template class ExactCounter<Int128, WeightValues>;
template class ExactCounter<Int2304, WeightValues>;

}  // namespace xcount

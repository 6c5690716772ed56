// The exact counter: a batch of subproblems solved on a pool of threads.
//
// Holds the tasks, a result for each, and the threads that work on them. Each task is solved by one
// thread alone, so
//   results()[i] depends on tasks[i] and the limits only, not on n_threads,
// unless it is cancelled or its share of the memory runs out; and the results of the 2^n_bits parts
// of a task add up to that of the whole: docs/exact.md, "Why this is right", "Threads", "Parts".
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "xcount/exact/subproblem.hpp"

namespace xcount {

enum class TaskStatus : std::uint8_t { kPending, kSolved, kSteps, kMemory, kCancelled };

// 0 <= count <= size <= total. With counts, `count` of `total` combinations of the cells of the
// features that the task's trees test are solutions (the other features multiply both alike); with
// weights, `count` is the weight of the solutions, and total is 1.
template <class Values>
struct TaskResult {
  TaskStatus status = TaskStatus::kPending;
  typename Values::Number count{}, total{};
  typename Values::Number size{};  // of the part: what of `total` lies in it, solved or not
  std::uint64_t n_steps = 0;
};

struct ExactLimits {
  std::uint64_t max_steps = 0;  // of one task
  std::size_t max_bytes = 0;    // of all threads together
  unsigned n_threads = 1;
  std::uint64_t max_paths = kMaxPaths;  // of states that are enumerated
  std::size_t memo_bytes = kFirstMemoBytes;
};

// Solves tasks in the background. The owner polls `wait` and may `cancel` at any time.
template <class Value, class Values>
class ExactCounter {
 public:
  using Result = TaskResult<Values>;

  ExactCounter(const Forest<Value>& forest, const MaskSpace& masks, const Value& threshold,
               Values values)
      : forest_(forest), masks_(masks), threshold_(threshold), values_(std::move(values)) {}
  ~ExactCounter() { cancel(); }
  ExactCounter(const ExactCounter&) = delete;
  ExactCounter& operator=(const ExactCounter&) = delete;

  // For each pair, whether the sum of the trees' ranges may exceed the threshold. What was not
  // checked before the stop counts as live.
  [[nodiscard]] std::vector<std::uint8_t> live(const std::vector<MaskPair>& pairs,
                                               unsigned n_threads, Stop& stop) const;

  void start(std::vector<ExactTask> tasks, const ExactLimits& limits);
  // Waits until all tasks are done or the time has passed; true when done.
  bool wait(double seconds);
  void cancel();  // returns when all threads have stopped
  [[nodiscard]] std::size_t n_done() const { return n_done_.load(std::memory_order_relaxed); }
  // Only after `wait` returned true or `cancel` returned.
  [[nodiscard]] const std::vector<Result>& results() const { return results_; }

 private:
  using Solver = SubproblemSolver<Value, Values>;
  void work(std::size_t max_bytes);
  void run(Solver& solver, std::size_t task, std::size_t max_bytes);
  void work_on_tasks(std::size_t max_bytes);

  const Forest<Value>& forest_;
  const MaskSpace& masks_;
  Value threshold_;
  Values values_;  // what each solver starts from
  std::vector<ExactTask> tasks_;
  std::vector<Result> results_;
  ExactLimits limits_;
  std::atomic<bool> cancelled_{false};
  std::atomic<std::size_t> next_{0}, n_done_{0};
  std::mutex mutex_;
  std::condition_variable finished_;
  unsigned n_working_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace xcount

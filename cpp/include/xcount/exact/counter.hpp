// The exact counter: a batch of subproblems solved on a pool of threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "xcount/exact/elimination.hpp"
#include "xcount/support/stopping.hpp"
#include "xcount/trees/differences.hpp"

namespace xcount {

using MaskPair = std::pair<MaskIndex, MaskIndex>;

// Count the x for which any (or all) of the pairs differ by more than the threshold; or those of
// them in one part of the space.
struct ExactTask {
  std::vector<MaskPair> pairs;
  Combine combine = Combine::kAny;
  Part part = {};
};

enum class TaskStatus : std::uint8_t { kPending, kSolved, kSteps, kMemory, kCancelled };

// `count` of `total` combinations of the cells of the features that the task's trees test; the
// other features multiply both alike.
struct TaskResult {
  TaskStatus status = TaskStatus::kPending;
  std::vector<std::uint64_t> count, total;
  std::vector<std::uint64_t> size;  // of the part: what of `total` lies in it, solved or not
  double share = 0.0;               // count / total, or the share under a product measure
  std::uint64_t n_steps = 0;
};

struct ExactLimits {
  std::uint64_t max_steps = 0;  // of one task
  std::size_t max_bytes = 0;    // of all threads together
  unsigned n_threads = 1;
  std::uint64_t max_paths = kMaxPaths;  // of states that are enumerated
  std::size_t memo_bytes = kFirstMemoBytes;
};

// One thread's tables, used for one task after another.
template <class Value, class Values>
class SubproblemSolver {
 public:
  SubproblemSolver(const Forest<Value>& forest, const MaskSpace& masks, Value threshold,
                   Values values)
      : builder_(forest, masks),
        store_(forest),
        values_(std::move(values)),
        eliminator_(store_, values_, threshold) {}

  // Throws GiveUp. What was solved stays readable until the next call.
  SolutionId solve(const ExactTask& task, const EliminationLimits& limits,
                   DiagramRecorder* recorder = nullptr);
  SolutionId whole_part() { return eliminator_.whole_part(); }  // of the task last solved
  // Whether the pair's difference may exceed the threshold; yes where that is too much to look at.
  [[nodiscard]] bool may_exceed(const MaskPair& pair, const Value& threshold, Stop& stop);

  [[nodiscard]] const Values& values() const { return values_; }
  [[nodiscard]] const ResidualStore<Value>& store() const { return store_; }
  [[nodiscard]] std::uint64_t n_steps() const { return eliminator_.n_steps(); }
  [[nodiscard]] std::uint64_t n_forgotten() const { return eliminator_.n_forgotten(); }
  [[nodiscard]] std::size_t bytes() const {
    return store_.bytes() + values_.bytes() + eliminator_.bytes();
  }

 private:
  DifferenceBuilder<Value> builder_;
  ResidualStore<Value> store_;
  Values values_;
  Eliminator<Value, Values> eliminator_;
};

// Solves tasks in the background. The owner polls `wait` and may `cancel` at any time.
template <class Value, class Values>
class ExactCounter {
 public:
  ExactCounter(const Forest<Value>& forest, const MaskSpace& masks, Value threshold, Values values)
      : forest_(forest), masks_(masks), threshold_(threshold), values_(std::move(values)) {}
  ~ExactCounter() { cancel(); }
  ExactCounter(const ExactCounter&) = delete;
  ExactCounter& operator=(const ExactCounter&) = delete;

  // For each pair, whether the sum of the trees' ranges leaves any hope of exceeding the threshold;
  // there is hope for what was not looked at before the stop.
  [[nodiscard]] std::vector<std::uint8_t> live(const std::vector<MaskPair>& pairs,
                                               unsigned n_threads, Stop& stop) const;

  void start(std::vector<ExactTask> tasks, const ExactLimits& limits);
  // Waits until all tasks are done or the time has passed; true when done.
  bool wait(double seconds);
  void cancel();  // returns when all threads have stopped
  [[nodiscard]] std::size_t n_done() const { return n_done_.load(std::memory_order_relaxed); }
  // Only after `wait` returned true or `cancel` returned.
  [[nodiscard]] const std::vector<TaskResult>& results() const { return results_; }

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
  std::vector<TaskResult> results_;
  ExactLimits limits_;
  std::atomic<bool> cancelled_{false};
  std::atomic<std::size_t> next_{0}, n_done_{0};
  std::mutex mutex_;
  std::condition_variable finished_;
  unsigned n_working_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace xcount

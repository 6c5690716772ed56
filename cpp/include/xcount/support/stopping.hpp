// Stopping native work early: at a deadline, or because the caller asks for it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <limits>
#include <thread>
#include <utility>

namespace xcount {

// Thrown by work that was stopped before it had a result.
class Stopped : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "stopped before it was done"; }
};

// Shared by the threads of one piece of work. Only the thread that made it asks whether to stop,
// a few times a second: that is the one which may talk to the caller.
class Stop {
 public:
  using Clock = std::chrono::steady_clock;
  using Asked = std::function<bool()>;

  explicit Stop(double seconds = std::numeric_limits<double>::infinity(), Asked asked = nullptr)
      : deadline_(after(seconds)), asked_(std::move(asked)), next_(Clock::now() + kPause) {}

  // Whether the work has to end now; once true, it stays so, for all threads.
  [[nodiscard]] bool is_over() {
    if (over_.load(std::memory_order_relaxed)) return true;
    const Clock::time_point now = Clock::now();
    if (now < deadline_ && !(std::this_thread::get_id() == owner_ && is_asked(now))) return false;
    over_.store(true, std::memory_order_relaxed);
    return true;
  }
  // Throws Stopped if the work has to end now.
  void check() {
    if (is_over()) throw Stopped();
  }
  // The moment so many seconds from now, infinity included.
  static Clock::time_point after(double seconds) {
    constexpr double kLongest = 1e8;  // what a time point can hold
    const std::chrono::duration<double> wait(std::min(seconds, kLongest));
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
  }
  // Whether any thread was told to end.
  [[nodiscard]] bool was_over() const { return over_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::chrono::milliseconds kPause{100};

  bool is_asked(Clock::time_point now) {
    if (!asked_ || now < next_) return false;
    next_ = now + kPause;
    return asked_();
  }

  std::thread::id owner_ = std::this_thread::get_id();
  Clock::time_point deadline_;
  Asked asked_;
  Clock::time_point next_;  // used by the owner only
  std::atomic<bool> over_{false};
};

}  // namespace xcount

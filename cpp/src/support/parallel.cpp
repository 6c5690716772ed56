#include "xcount/support/parallel.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "xcount/support/assert.hpp"

namespace xcount {

void parallel(std::size_t n, unsigned n_threads, const std::function<void(std::size_t)>& work,
              Stop* stop) {
  XCOUNT_ASSERT(work != nullptr);
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::condition_variable ended;
  std::exception_ptr error;
  std::size_t n_ended = 0;
  const auto loop = [&]() noexcept {
    try {
      for (std::size_t i = next++; i < n; i = next++) work(i);
    } catch (...) {
      next = n;
      const std::scoped_lock lock(mutex);
      error = std::current_exception();
    }
    const std::scoped_lock lock(mutex);
    ++n_ended;
    ended.notify_all();
  };
  std::vector<std::jthread> threads;
  try {
    for (unsigned i = 1; i < n_threads && i < n; ++i) threads.emplace_back(loop);
  } catch (const std::system_error&) {  // the work goes on with those that have started
  }
  loop();
  for (std::unique_lock lock(mutex); n_ended <= threads.size();) {
    ended.wait_for(lock, std::chrono::milliseconds(100));
    lock.unlock();
    if (stop != nullptr) static_cast<void>(stop->is_over());
    lock.lock();
  }
  threads.clear();
  if (error) std::rethrow_exception(error);
}

}  // namespace xcount

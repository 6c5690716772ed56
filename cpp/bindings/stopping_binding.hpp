// Long native work that Python's signals and callbacks can end.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <future>

#include "xcount/support/stopping.hpp"

namespace nb = nanobind;

namespace xcount::python {

// Runs work(stop) without Python's lock. A few times a second the calling thread takes the lock
// back, lets Python handle signals and calls on_pause (unless it is None): an exception of either
// ends the work and is raised here.
template <class Work>
auto stoppable(double seconds, const nb::object& on_pause, Work work) {
  const auto raises = [&on_pause] {
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) return true;
    if (on_pause.is_none()) return false;
    try {
      on_pause();
      return false;
    } catch (nb::python_error& error) {
      error.restore();
      return true;
    }
  };
  Stop stop(seconds, raises);
  auto outcome = [&] {
    const nb::gil_scoped_release release;
    return work(stop);
  }();
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return outcome;
}

// Runs work(cancel) on a thread of its own, without Python's lock, while this one lets Python
// handle signals: an exception of a handler sets `cancel`, and is raised here once the work has
// ended.
template <class Work>
auto cancellable(Work work) {
  std::atomic<bool> cancel{false};
  auto outcome = std::async(std::launch::async, [&] { return work(cancel); });
  {
    const nb::gil_scoped_release release;
    while (outcome.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) {
      const nb::gil_scoped_acquire lock;
      if (!cancel && PyErr_CheckSignals() != 0) cancel = true;
    }
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return outcome.get();
}

}  // namespace xcount::python

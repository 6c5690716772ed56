// Work on several threads, with errors and interrupts that reach the caller.
#pragma once

#include <cstddef>
#include <functional>

#include "xcount/support/stopping.hpp"

namespace xcount {

// Runs work(0), ..., work(n - 1) on the calling thread and up to n_threads - 1 others. If one of
// them throws, the exception is thrown here once all have finished. If the system has no more
// threads, fewer do the work. While the caller waits for the others it checks `stop`, if there is
// one, for them.
void parallel(std::size_t n, unsigned n_threads, const std::function<void(std::size_t)>& work,
              Stop* stop = nullptr);

}  // namespace xcount

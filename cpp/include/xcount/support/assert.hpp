// XCOUNT_ASSERT(condition): an invariant, stated where it could break.
//
// Checked in debug and sanitizer builds (CMake defines XCOUNT_ASSERTIONS there); in a release it is
// compiled but never evaluated, so it costs nothing. Not for mistakes of a caller: those are
// always checked, and reported by an exception.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace xcount {

[[noreturn, gnu::cold, gnu::noinline]] inline void assertion_failed(const char* condition,
                                                                    const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  std::abort();
}

}  // namespace xcount

#ifdef XCOUNT_ASSERTIONS
#define XCOUNT_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : xcount::assertion_failed(#condition, __FILE__, __LINE__))
#else
#define XCOUNT_ASSERT(condition) static_cast<void>(sizeof((condition) ? true : false))
#endif

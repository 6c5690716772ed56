// A tiny test harness: CHECK says what failed and where; main returns the number of failures.
#pragma once

#include <cstdio>
#include <exception>

namespace xcount::test {

inline constexpr int kMaxFailures = 100;  // an exit status of 256 would read as 0
inline int failures = 0;

inline void check(bool condition, const char* text, const char* file, int line) {
  if (condition) return;
  if (failures == kMaxFailures) return;
  ++failures;
  std::fprintf(stderr, "%s:%d: failed: %s\n", file, line, text);
}

// How many of n random worlds to try: the sanitizers make each many times as slow, and want to see
// every line at work rather than every world.
inline constexpr int worlds(int n) {
#ifdef XCOUNT_ASSERTIONS
  return (n + 2) / 3;
#else
  return n;
#endif
}

// Whether calling the function throws an exception of the given type.
template <class Exception, class Function>
bool throws(Function&& function) {
  try {
    function();
  } catch (const Exception&) {
    return true;
  }
  return false;
}

}  // namespace xcount::test

#define CHECK(condition) xcount::test::check((condition), #condition, __FILE__, __LINE__)

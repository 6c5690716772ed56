// Which vector unit the machine has: known at run time only, because wheels run elsewhere. (Clones
// that the loader chooses from do not exist with every C library.)
#pragma once

#include <cstdint>

namespace xcount {

// Instructions that kernels are compiled for, each including those before.
enum class VectorUnit : std::uint8_t { kPlain, kAvx2, kAvx512 };

// The best unit that this machine has, up to the given one.
[[nodiscard]] inline VectorUnit vector_unit([[maybe_unused]] VectorUnit most) {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (most >= VectorUnit::kAvx512 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return VectorUnit::kAvx512;
  }
  if (most >= VectorUnit::kAvx2 && __builtin_cpu_supports("avx2")) return VectorUnit::kAvx2;
#endif
  return VectorUnit::kPlain;
}

}  // namespace xcount

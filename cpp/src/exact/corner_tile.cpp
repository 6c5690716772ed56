#define XCOUNT_VECTOR_BYTES 16
#include "corner_tile_kernels.hpp"

namespace xcount {

namespace {

template <class T>
TileKernels<T> machine_kernels(bool weighted, [[maybe_unused]] VectorUnit most) {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (most >= VectorUnit::kAvx512 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return avx512_kernels<T>(weighted);
  }
  if (most >= VectorUnit::kAvx2 && __builtin_cpu_supports("avx2")) return avx2_kernels<T>(weighted);
#endif
  return kernels<T>(weighted);
}

}  // namespace

// Which vector unit there is is known at run time only: wheels run elsewhere. (Clones that the
// loader chooses from do not exist with every C library.)
template <class T>
TileKernels<T> choose_kernels(bool weighted, [[maybe_unused]] VectorUnit most) {
  if constexpr (kIsVector<T>) {
    return machine_kernels<T>(weighted, most);
  } else {
    return kernels<T>(weighted);
  }
}

template TileKernels<std::int32_t> choose_kernels<std::int32_t>(bool, VectorUnit);
template TileKernels<std::int64_t> choose_kernels<std::int64_t>(bool, VectorUnit);
template TileKernels<Int128> choose_kernels<Int128>(bool, VectorUnit);
template TileKernels<Int2304> choose_kernels<Int2304>(bool, VectorUnit);

}  // namespace xcount

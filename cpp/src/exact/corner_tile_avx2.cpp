// The loops over a tile for machines with AVX2.
#if defined(__x86_64__) && defined(__GNUC__)

#include "xcount/exact/corner_tile.hpp"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#define XCOUNT_VECTOR_BYTES 32
#include "corner_tile_kernels.hpp"

namespace xcount {

template <class T>
TileKernels<T> avx2_kernels(bool weighted) {
  return kernels<T>(weighted);
}

template TileKernels<std::int32_t> avx2_kernels<std::int32_t>(bool);
template TileKernels<std::int64_t> avx2_kernels<std::int64_t>(bool);

}  // namespace xcount

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif

// The loops over a tile for machines with AVX-512.
#if defined(__x86_64__) && defined(__GNUC__)

#include "xcount/exact/corner_tile.hpp"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif

#define XCOUNT_VECTOR_BYTES 64
#include "corner_tile_kernels.hpp"

namespace xcount {

template <class T>
TileKernels<T> avx512_kernels(bool weighted) {
  return kernels<T>(weighted);
}

template TileKernels<std::int32_t> avx512_kernels<std::int32_t>(bool);
template TileKernels<std::int64_t> avx512_kernels<std::int64_t>(bool);

}  // namespace xcount

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif

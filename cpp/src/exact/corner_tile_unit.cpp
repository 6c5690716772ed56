// The kernels of one vector unit. CMake compiles this file once for each (XCOUNT_VECTOR_BYTES is
// the width of its registers); which one is used is decided at run time (corner_tile.cpp).
#ifndef XCOUNT_VECTOR_BYTES
#define XCOUNT_VECTOR_BYTES 16
#endif

#include "xcount/exact/corner_tile.hpp"
#include "xcount/exact/narrow_tile.hpp"
#include "xcount/exact/tile_probability.hpp"

// What was included so far is shared with other sources and compiled for every machine; what
// follows is compiled for this unit.
// clang-format off: the order matters
#include "xcount/support/begin_vector_unit.hpp"
#include "corner_tile_kernels.hpp"
// clang-format on

namespace xcount {

template <class T, std::size_t kVectorBytes>
TileKernels<T> unit_kernels(bool weighted) {
  return {weighted ? count_tile<T, true> : count_tile<T, false>, add_lanes<T>, find_extremes<T>};
}

template TileKernels<std::int32_t> unit_kernels<std::int32_t, XCOUNT_VECTOR_BYTES>(bool);
template TileKernels<std::int64_t> unit_kernels<std::int64_t, XCOUNT_VECTOR_BYTES>(bool);

}  // namespace xcount

#include "xcount/support/end_vector_unit.hpp"

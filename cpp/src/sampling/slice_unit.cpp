// The loops over bit slices of one vector unit. CMake compiles this file once for each
// (XCOUNT_VECTOR_BYTES is the width of its registers); which one is used is decided at run time
// (slices.cpp).
#ifndef XCOUNT_VECTOR_BYTES
#define XCOUNT_VECTOR_BYTES 16
#endif

#include <algorithm>
#include <type_traits>

#include "xcount/sampling/slice_indices.hpp"
#include "xcount/sampling/slices.hpp"
#include "xcount/support/value.hpp"

// What was included so far is shared with other sources and compiled for every machine; what
// follows is compiled for this unit.
// clang-format off: the order matters
#include "xcount/support/begin_vector_unit.hpp"
#include "slice_kernels.hpp"
// clang-format on

namespace xcount {

template <std::size_t kVectorBytes>
SliceKernels unit_slice_kernels() {
  using Sum = std::int32_t;
  return {cut_codes,
          run_muxes,
          sum_program,
          integrate_rows<Sum>,
          decide_everyone<Sum>,
          decide_jumps<Sum>,
          decide_windows<Sum>,
          decide_pairs<Sum>,
          decide_any_pair<Sum>,
          decide_all_pairs<Sum>};
}

template SliceKernels unit_slice_kernels<XCOUNT_VECTOR_BYTES>();

}  // namespace xcount

#include "xcount/support/end_vector_unit.hpp"

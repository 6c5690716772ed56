#include "xcount/sampling/slices.hpp"

#include "xcount/support/vector_unit.hpp"

namespace xcount {

const SliceKernels& slice_kernels() {
  static const SliceKernels chosen = [] {
#if defined(__x86_64__)
    switch (vector_unit(VectorUnit::kAvx512)) {
      case VectorUnit::kAvx512:
        return unit_slice_kernels<64>();
      case VectorUnit::kAvx2:
        return unit_slice_kernels<32>();
      case VectorUnit::kPlain:
        break;
    }
#endif
    return unit_slice_kernels<16>();
  }();
  return chosen;
}

}  // namespace xcount

// Compiles what follows for the vector unit whose registers have XCOUNT_VECTOR_BYTES bytes, up to
// end_vector_unit.hpp. Include headers that other sources share before this one.
#if XCOUNT_VECTOR_BYTES == 64 && defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), \
                             apply_to = function)
#elif XCOUNT_VECTOR_BYTES == 64
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#elif XCOUNT_VECTOR_BYTES == 32 && defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#elif XCOUNT_VECTOR_BYTES == 32
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

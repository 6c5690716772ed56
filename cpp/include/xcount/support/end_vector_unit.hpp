// Ends what begin_vector_unit.hpp began: what follows is compiled for every machine again.
#if XCOUNT_VECTOR_BYTES > 16 && defined(__clang__)
#pragma clang attribute pop
#elif XCOUNT_VECTOR_BYTES > 16
#pragma GCC pop_options
#endif

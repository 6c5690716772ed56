/* The bytecode linker asks for the primitives of primitives.js; these are never called. */
#include <caml/mlvalues.h>
#define STUB(name) value name(value a) { return a; }
STUB(xcount_of_int) STUB(xcount_add) STUB(xcount_sub) STUB(xcount_mul) STUB(xcount_neg)
STUB(xcount_lt) STUB(xcount_leq) STUB(xcount_equal) STUB(xcount_floor_divide)
STUB(xcount_shift_left) STUB(xcount_shift_right) STUB(xcount_of_string) STUB(xcount_to_string)
STUB(xcount_to_float) STUB(xcount_hash) STUB(xcount_is_command) STUB(xcount_argument_count)
STUB(xcount_argument) STUB(xcount_read_file) STUB(xcount_seconds) STUB(xcount_megabytes)
STUB(xcount_export)

/* number.h: numbers as text: read whole and strictly, written so that they read back exactly.
 *
 * What is read: an optional '-', decimal digits with an optional point, then an optional exponent
 * (1e4) or an optional k or M (1,000 or 1,000,000), and nothing else: no blank, hexadecimal, nan or
 * inf. */
#ifndef LLMC_NUMBER_H
#define LLMC_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    NUMBER_OK,
    NUMBER_MALFORMED, // not a number as above
    NUMBER_FRACTION,  // a number, but not a whole one
    NUMBER_RANGE,     // does not fit the type
} NumberResult;

/* *value is written only on NUMBER_OK. Integers are computed exactly, never through floating point:
 * 0.5M is 500000, 1.5 is NUMBER_FRACTION. Reals are the nearest double; one that overflows, or that
 * is not 0 but would become it, is NUMBER_RANGE. */
NumberResult number_read_i64(const char *text, int64_t *value);
NumberResult number_read_u64(const char *text, uint64_t *value);
NumberResult number_read_real(const char *text, double *value);

/* Writes the fewest of 15, 16 or 17 significant digits that round-trip, and returns out. NaN and infinities become
 * nan, inf and -inf. */
enum { NUMBER_CHARS = 32 };
const char *number_write_real(char out[NUMBER_CHARS], double value);

#endif

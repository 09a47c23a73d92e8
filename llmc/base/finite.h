/* finite.h: NaN and infinity, found quickly. */
#ifndef LLMC_FINITE_H
#define LLMC_FINITE_H

#include <stddef.h>

/* The index of the first of `count` floats that is NaN or infinite, or `count` when all are finite. */
size_t first_nonfinite(const float *values, size_t count);

#endif

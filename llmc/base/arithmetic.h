/* arithmetic.h: the smaller of two numbers, and division that rounds up. Products and sums that may overflow
 * are in memory.h. */
#ifndef LLMC_ARITHMETIC_H
#define LLMC_ARITHMETIC_H

#include <stddef.h>
#include <stdint.h>

static inline int int_min(int a, int b) { return a < b ? a : b; }
static inline size_t size_min(size_t a, size_t b) { return a < b ? a : b; }

/* a / b rounded up, for a >= 0 and b > 0: sequences to micro-batches, micro-batches to micro-steps. */
static inline int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/* The smallest multiple of `multiple` that is n or more, for n >= 0. */
static inline int round_up(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }

#endif

/* exchange.h: gradients summed over the ranks of one machine, through the memory they share (world.h).
 * Not here: sums over micro-batches, and over ranks on several machines (reduction.c). */
#ifndef LLMC_CPU_EXCHANGE_H
#define LLMC_CPU_EXCHANGE_H

#include "cpu.h"

/* grads (count) becomes the sum over all ranks, added in the order of ranks; every rank calls it.
 * exact: as integers of fixed_point.h, rounded once at the end. Each rank then gives its contribution in
 * sums (count), or with sums NULL in grads, rounded to fixed point already. */
void exchange_sum(Grad *grads, const int64_t *sums, size_t count, bool exact);

#endif

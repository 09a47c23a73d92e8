/* reduction.c: gradients are SUMMED over micro-batches and ranks, so that the sum's bits do not depend on
 * how the micro-batches were split.
 *
 * Floating-point addition rounds, and so its result depends on the order: (a + b) + c is not a + (b + c).
 * Integer addition does not. Therefore, with --exact, each element of each micro-batch's gradient is
 *     1. quantized: rounded to the nearest multiple of 2^-48, as a 64-bit integer;
 *     2. added to this rank's integer sum, micro-step by micro-step;
 *     3. added over ranks: an all-reduce of integers;
 *     4. read back: the integer sum, rounded once to a real.
 * Without --exact, backward has already added the micro-batches in grads, and the ranks' grads are
 * all-reduced as they are.
 *
 * An integer sum that leaves 64 bits would be wrong without a sign of it. So the magnitudes are summed
 * too: an element whose magnitudes add up to 2^15 or more, or are not finite, is reported, and the update
 * is refused. Gradients are already divided by the number of targets: 2^15 is far away.
 * Next: adamw.c. */
#include "plain.h"

#include "../base/memory.h"
#include "../ranks/world.h"

#include <math.h>

static const double ONE = 0x1p48;   // the integer that stands for 1
static const double LIMIT = 0x1p15; // 2^15 * 2^48 = 2^63: the first that does not fit

static real *grads;        // (size) of this rank, and in the end of all
static int64_t *sums;      // (size) with --exact, else NULL
static double *magnitudes; // (size) with --exact, else NULL: the sum of |g|
static size_t size;
static int64_t offending; // the first element here that is refused, or -1

size_t reduction_bytes(size_t count, bool exact, int micro_batches, int ranks) {
    (void)micro_batches, (void)ranks;
    return exact ? size_mul(count, sizeof *sums + sizeof *magnitudes, "exact sums") : 0;
}

void reduction_open(real *grads_, size_t count, bool exact, int micro_batches) {
    (void)micro_batches;
    grads = grads_;
    size = count;
    offending = -1;
    if (!exact) return;
    sums = memory_map(count * sizeof *sums, "exact gradient sums (--no-exact needs none)");
    magnitudes = memory_map(count * sizeof *magnitudes, "the magnitudes of exact sums");
}

void reduction_close(void) {
    memory_unmap(sums, sums ? size * sizeof *sums : 0);
    memory_unmap(magnitudes, magnitudes ? size * sizeof *magnitudes : 0);
    sums = NULL;
    magnitudes = NULL;
}

/* Notes the first element of this rank that does not fit. Each rank looks at its own gradient: after the
 * all-reduce the element could no longer be traced to a rank. */
static void note_offending(size_t first, size_t count, double limit) {
    for (size_t i = first; i < first + count && offending < 0; i++)
        if (!(fabs((double)grads[i]) < limit)) offending = (int64_t)i;
}

/* Steps 1 and 2 for element i. */
static void add_exactly(size_t i) {
    double g = grads[i];
    if (!(fabs(g) < LIMIT)) return; // note_offending reports it
    sums[i] = (int64_t)((uint64_t)sums[i] + (uint64_t)llrint(g * ONE));
    magnitudes[i] += fabs(g);
}

static void ready_exact(size_t first, size_t count, bool first_micro_batch, bool last_micro_batch,
                        bool has_micro_batch) {
    if (has_micro_batch) note_offending(first, count, LIMIT);
    PARALLEL_FOR
    for (size_t i = first; i < first + count; i++) {
        if (first_micro_batch) sums[i] = 0, magnitudes[i] = 0;
        if (has_micro_batch) add_exactly(i);
    }
    if (!last_micro_batch) return;
    world_all_reduce_begin(sums + first, count, WORLD_INT64); // step 3
    world_all_reduce_begin(magnitudes + first, count, WORLD_DOUBLE);
}

static void ready_floats(size_t first, size_t count, bool last_micro_batch, bool has_micro_batch) {
    if (!last_micro_batch) return; // backward adds the next micro-batch in grads
    if (has_micro_batch)
        note_offending(first, count, INFINITY);
    else
        gradient_zero(grads + first, count); // this rank contributes zeros
    world_all_reduce_begin(grads + first, count, sizeof(real) == 4 ? WORLD_FLOAT : WORLD_DOUBLE);
}

/* An all-reduce that has begun runs while backward computes the gradients of the layers before. */
void reduction_ready(size_t first, size_t count, bool first_micro_batch, bool last_micro_batch,
                     bool has_micro_batch) {
    if (sums)
        ready_exact(first, count, first_micro_batch, last_micro_batch, has_micro_batch);
    else
        ready_floats(first, count, last_micro_batch, has_micro_batch);
}

int64_t reduction_finish(void) {
    world_all_reduce_wait();
    if (sums) {
        PARALLEL_FOR
        for (size_t i = 0; i < size; i++) grads[i] = (real)sums[i] * (real)(1 / ONE); // step 4
        for (size_t i = 0; i < size && offending < 0; i++)
            if (!(magnitudes[i] < LIMIT)) offending = (int64_t)i;
    }
    int64_t found = offending;
    offending = -1;
    return found;
}

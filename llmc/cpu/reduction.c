/* reduction.c: gradients summed over micro-batches and ranks, bucket by bucket. plain/reduction.c explains why the
 * sums are exact, and ops.h has the contract; this file does the same fast.
 *
 * Over micro-batches. Without --exact backward has added them up in grads. With --exact each micro-batch's
 * gradient is rounded to fixed point (fixed_point.h) and added as integers. A rank with a single micro-batch
 * rounds in place: the same bits, without memory for integers.
 *
 * Over ranks. On one machine: through shared memory, after the last micro-batch (exchange.h). On several: by
 * MPI messages, which start with each bucket of the last micro-batch (world_all_reduce_begin).
 *
 * Overflow. Integer sums wrap silently, so they are bounded: for each bucket the largest magnitudes of all
 * micro-batches must add up to less than FIXED_LIMIT, or the update is refused. That bound does not depend on
 * which rank computed which micro-batch, so every split refuses the same updates. Next: exchange.h. */
#include "exchange.h"
#include "fixed_point.h"
#include "vec.h"

#include "../base/arithmetic.h"
#include "../base/memory.h"
#include "../ranks/world.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096, AHEAD = 1024 }; // elements; so far ahead memory is asked for, as in adamw.c

/* One bucket in this update. */
typedef struct {
    size_t first;
    double bound;   // sum over micro-batches of the largest magnitude
    double largest; // this rank's largest magnitude, and
    int64_t where;  // the element that has it
} Bucket;

static struct {
    Grad *grads;   // (count)
    int64_t *sums; // (count) or NULL where rounding in place is enough
    size_t count;
    bool exact;
    double limit;    // magnitudes must be smaller
    double *largest; // magnitude in each block of a bucket: scratch
    Bucket *buckets; // grows when an unknown one comes
    int bucket_count;
    int64_t offending; // this rank's first element beyond the limit, in the order of calls, or -1
} state;

/* Whether ranks exchange gradients by MPI messages (not through shared memory). */
static bool by_messages(void) { return world_size() > 1 && world_shared_bytes() == 0; }

/* Integers are kept where more than one contribution is added on this rank, or messages carry them. Otherwise the one
 * contribution stays a real until it is exchanged. */
static size_t sums_bytes(size_t count, bool exact, int micro_batches) {
    return exact && (micro_batches > 1 || by_messages())
               ? size_mul(count, sizeof(int64_t), "exact sums")
               : 0;
}

/* One magnitude a block of the largest bucket. */
static size_t largest_bytes(size_t count) { return (count / BLOCK + 1) * sizeof(double); }

size_t reduction_bytes(size_t count, bool exact, int micro_batches, int ranks) {
    (void)ranks; // their number needs no memory here
    return sums_bytes(count, exact, micro_batches) + largest_bytes(count);
}

void reduction_open(Grad *grads, size_t count, bool exact, int micro_batches) {
    memset(&state, 0, sizeof state);
    state.grads = grads;
    state.count = count;
    state.exact = exact;
    state.limit = exact ? FIXED_LIMIT : INFINITY;
    state.offending = -1;
    state.largest = memory_map(largest_bytes(count), "the gradient's block maxima");
    size_t bytes = sums_bytes(count, exact, micro_batches);
    if (bytes) state.sums = memory_map(bytes, "exact gradient sums (--no-exact needs none)");
}

void reduction_close(void) {
    memory_unmap(state.sums, state.sums ? state.count * sizeof *state.sums : 0);
    memory_unmap(state.largest, largest_bytes(state.count));
    free(state.buckets);
    memset(&state, 0, sizeof state);
}

// ---------------------------------------------------------------------------------------------
// Blocks: what one task does

/* The largest magnitude among n elements; infinity when one of them is not finite. */
static double largest_magnitude(const real *g, size_t n) {
    Lanes nan = {{{0}}}; // x - x is 0, or NaN where x is not finite, and stays so
    vec most[LANE_VECS] = {{0}};
    for (size_t i = 0; i < n; i += LANES) {
        for (size_t line = 0; line < LANES; line += 64 / sizeof(real)) __builtin_prefetch(g + i + AHEAD + line, 0, 2);
        UNROLL for (size_t p = 0; p < LANE_VECS; p++) {
            size_t at = i + p * VEC;
            vec x = vec_load_n(g + at, vec_left(n, at));
            most[p] = vec_larger(vec_larger(x, -x), most[p]);
            nan.part[p] += x - x;
        }
    }
    double largest = 0;
    for (size_t p = 0; p < LANE_VECS; p++)
        if ((double)vec_max(most[p]) > largest) largest = (double)vec_max(most[p]);
    return lanes_sum(nan) == 0 ? largest : INFINITY;
}

// ---------------------------------------------------------------------------------------------
// Buckets: blocks in parallel, then the largest magnitude of the bucket

static size_t block_count(size_t elements) { return (elements + BLOCK - 1) / BLOCK; }

static size_t block_size(size_t elements, size_t block) {
    size_t left = elements - block * BLOCK;
    return size_min(left, BLOCK);
}

/* This update's entry for the bucket that starts at `first`; a fresh one for its first micro-batch. */
static Bucket *bucket_at(size_t first, bool first_micro_batch) {
    int i = 0;
    while (i < state.bucket_count && state.buckets[i].first != first) i++;
    if (i == state.bucket_count) {
        state.bucket_count++;
        state.buckets = memory_grow(state.buckets, (size_t)state.bucket_count, sizeof(Bucket),
                                    "the gradient's buckets");
        first_micro_batch = true;
    }
    if (first_micro_batch) state.buckets[i] = (Bucket){.first = first, .where = -1};
    return &state.buckets[i];
}

/* The first of n elements from `at` whose magnitude is not below `limit`. There is one. */
static int64_t first_beyond(size_t at, size_t n, double limit) {
    size_t i = at;
    while (i < at + n - 1 && fabs((double)state.grads[i]) < limit) i++;
    return (int64_t)i;
}

/* Enters one micro-batch's block magnitudes into the bucket and notes an element beyond the limit. */
static void record_largest(Bucket *bucket, size_t count) {
    size_t worst = 0;
    for (size_t b = 1; b < block_count(count) && state.largest[worst] < state.limit; b++)
        if (state.largest[b] > state.largest[worst]) worst = b;
    double largest = state.largest[worst];
    bucket->bound += largest;
    if (largest < state.limit && largest <= bucket->largest) return;
    int64_t where = first_beyond(bucket->first + worst * BLOCK, block_size(count, worst),
                                 largest < state.limit ? largest : state.limit);
    if (!(largest < state.limit) && state.offending < 0) state.offending = where;
    bucket->largest = largest;
    bucket->where = where;
}

/* Without --exact: a value that is not finite must be found before the exchange; after it every rank has it. */
static void check(size_t first, size_t count) {
    size_t blocks = block_count(count);
    PARALLEL_FOR
    for (size_t b = 0; b < blocks; b++)
        state.largest[b] = largest_magnitude(state.grads + first + b * BLOCK, block_size(count, b));
    record_largest(bucket_at(first, true), count);
}

/* With --exact: quantizes one micro-batch's bucket and accumulates it. On a single rank the last micro-batch
 * turns the integer sums into the gradient at once. A block beyond the range is left out: record_largest has
 * seen it, and the update will be refused. */
static void add_fixed_point(size_t first, size_t count, bool first_micro_batch,
                            bool last_micro_batch) {
    bool close = last_micro_batch && world_size() == 1;
    bool in_place = !state.sums || (close && first_micro_batch);
    size_t blocks = block_count(count);
    PARALLEL_FOR
    for (size_t b = 0; b < blocks; b++) {
        size_t at = first + b * BLOCK, n = block_size(count, b);
        Grad *g = state.grads + at;
        state.largest[b] = largest_magnitude(g, n);
        if (!(state.largest[b] < state.limit)) continue;
        if (in_place)
            fixed_round_vector(g, n);
        else if (close)
            fixed_close_vector(g, state.sums + at, n);
        else
            fixed_add_vector(state.sums + at, g, n, first_micro_batch);
    }
    record_largest(bucket_at(first, first_micro_batch), count);
}

/* A rank without a micro-batch contributes zeros. */
static void contribute_zeros(size_t first, size_t count) {
    if (state.sums)
        memset(state.sums + first, 0, count * sizeof *state.sums);
    else
        gradient_zero(state.grads + first, count);
    bucket_at(first, true);
}

void reduction_ready(size_t first, size_t count, bool first_micro_batch, bool last_micro_batch,
                     bool has_micro_batch) {
    if (count == 0) return;
    if (!has_micro_batch)
        contribute_zeros(first, count);
    else if (state.exact)
        add_fixed_point(first, count, first_micro_batch, last_micro_batch);
    else if (last_micro_batch && world_size() > 1)
        check(first, count);
    if (!last_micro_batch || !by_messages()) return;
    if (state.sums)
        world_all_reduce_begin(state.sums + first, count, WORLD_INT64);
    else
        world_all_reduce_begin(state.grads + first, count,
                               sizeof(Grad) == 4 ? WORLD_FLOAT : WORLD_DOUBLE);
}

// ---------------------------------------------------------------------------------------------
// The end of the update

/* The bound on every bucket's sum, over all ranks. A rank that has found an element beyond the
 * limit reports that one, and leaves the others' bounds alone. */
static void check_bounds(void) {
    double *bounds =
        memory_new((size_t)state.bucket_count, sizeof *bounds, "the gradient's bounds");
    for (int i = 0; i < state.bucket_count; i++)
        bounds[i] = state.offending < 0 ? state.buckets[i].bound : 0;
    world_all_reduce_doubles(bounds, (size_t)state.bucket_count);
    for (int i = 0; i < state.bucket_count; i++)
        if (!(bounds[i] < state.limit) && state.offending < 0)
            state.offending = state.buckets[i].where;
    free(bounds);
}

/* With --exact: the integer sums, rounded once to reals. */
static void read_sums(void) {
    size_t blocks = block_count(state.count);
    PARALLEL_FOR
    for (size_t b = 0; b < blocks; b++)
        fixed_to_vector(state.grads + b * BLOCK, state.sums + b * BLOCK,
                        block_size(state.count, b));
}

int64_t reduction_finish(void) {
    world_all_reduce_wait();
    if (state.exact) check_bounds();
    if (world_shared_bytes() > 0)
        exchange_sum(state.grads, state.sums, state.count, state.exact);
    else if (by_messages() && state.sums)
        read_sums();
    int64_t offending = state.offending;
    state.offending = -1;
    return offending;
}

/* exchange.c: the all-reduce of ranks on one machine, through shared memory. (Readers of chapter 27 may skip
 * this file: the law is in plain/reduction.c.) The gradient goes in pieces that fit the caches. For each piece:
 *
 *     1. every rank copies its contribution into its part of the shared memory
 *     2. barrier
 *     3. each rank sums its share of the blocks over all ranks
 *     4. barrier
 *     5. every rank copies the sums out
 *
 * No rank overwrites what another still reads: contributions are read only between the two barriers, and sums
 * lie in another place than contributions. */
#include "exchange.h"

#include "../base/arithmetic.h"
#include "../ranks/world.h"
#include "fixed_point.h"

#include <string.h>

enum { BLOCK = 1024 };
enum { STAGED = sizeof(int64_t) }; // bytes that hold an integer or a real

/* The piece that is being exchanged. */
typedef struct {
    Grad *grads;         // (count)
    const int64_t *sums; // (count) or NULL
    size_t count;
    size_t room; // elements that a part has room for
    int ranks;
    bool exact;
} Piece;

/* Blocks of a piece; the last one may be short. */
static size_t block_count(const Piece *p) { return (p->count + BLOCK - 1) / BLOCK; }

/* Elements of a block: BLOCK, or in the last one what is left. */
static size_t block_size(const Piece *p, size_t block) {
    size_t left = p->count - block * BLOCK;
    return size_min(left, BLOCK);
}

/* A rank's part: `room` contributions, then `room` sums. */
static void *staged(const Piece *p, int rank, size_t block) {
    return (char *)world_shared(rank) + block * BLOCK * (p->sums ? sizeof(int64_t) : sizeof(real));
}

/* Where the sums of a block lie: in the part of the rank that adds it. */
static real *summed(const Piece *p, size_t block) {
    int rank = (int)(block % (size_t)p->ranks); // blocks are dealt out in turn
    return (real *)((char *)world_shared(rank) + p->room * STAGED) + block * BLOCK;
}

/* Step 1: copies a block of this rank, integers where it has more than one micro-batch to add, to its shared part. */
static void stage(const Piece *p, int rank, size_t block) {
    size_t n = block_size(p, block);
    if (p->sums)
        memcpy(staged(p, rank, block), p->sums + block * BLOCK, n * sizeof(int64_t));
    else
        memcpy(staged(p, rank, block), p->grads + block * BLOCK, n * sizeof(real));
}

/* Step 3 without exact sums. Ranks are added in their order, so the result depends on how many there are. */
static void add_reals(const Piece *p, size_t block) {
    size_t n = block_size(p, block);
    real *restrict sum = summed(p, block);
    memcpy(sum, staged(p, 0, block), n * sizeof(real));
    for (int rank = 1; rank < p->ranks; rank++) {
        const real *restrict x = staged(p, rank, block);
        SIMD_FOR
        for (size_t i = 0; i < n; i++) sum[i] += x[i];
    }
}

/* Step 3 with exact sums: integers, whose sum does not depend on the order of the ranks. A rank with one micro-batch
 * staged its gradient as reals, which become integers here. */
static void add_integers(const Piece *p, size_t block) {
    size_t n = block_size(p, block);
    int64_t sum[BLOCK] = {0};
    for (int rank = 0; rank < p->ranks; rank++) {
        if (p->sums) {
            const int64_t *restrict x = staged(p, rank, block);
            SIMD_FOR
            for (size_t i = 0; i < n; i++) sum[i] = (int64_t)((uint64_t)sum[i] + (uint64_t)x[i]);
        } else {
            fixed_add_vector(sum, staged(p, rank, block), n, false);
        }
    }
    fixed_to_vector(summed(p, block), sum, n);
}

/* The five steps for one piece. The barriers are between processes: all ranks of the machine are in the same step. */
static void exchange_piece(const Piece *p, int rank) {
    size_t blocks = block_count(p);
    PARALLEL_FOR
    for (size_t b = 0; b < blocks; b++) stage(p, rank, b);
    world_spin_barrier();
    PARALLEL_FOR
    for (size_t b = (size_t)rank; b < blocks; b += (size_t)p->ranks) {
        if (p->exact)
            add_integers(p, b);
        else
            add_reals(p, b);
    }
    world_spin_barrier();
    PARALLEL_FOR
    for (size_t b = 0; b < blocks; b++)
        memcpy(p->grads + b * BLOCK, summed(p, b), block_size(p, b) * sizeof(real));
}

void exchange_sum(Grad *grads, const int64_t *sums, size_t count, bool exact) {
    // Room for contributions, as wide as integers, and sums; whole blocks, so that none is cut by a piece's end.
    size_t room = world_shared_bytes() / (STAGED + sizeof(real)) / BLOCK * BLOCK;
    for (size_t first = 0; first < count; first += room) {
        Piece piece = {.grads = grads + first,
                       .sums = sums ? sums + first : NULL,
                       .count = count - first < room ? count - first : room,
                       .room = room,
                       .ranks = world_size(),
                       .exact = exact};
        exchange_piece(&piece, world_rank());
    }
}

// clang-format off
/* batch.h: who computes which sequences of an update (chapter 27.3 and 27.5).
 *
 * An update is S consecutive sequences of the order in sequences.h. They are cut into micro-batches of B
 * sequences; the last may have fewer. Micro-batch u goes to rank u mod R, which computes it as its micro-step
 * k = u div R. R and B need not divide anything: some ranks then have one micro-step less than others.
 *
 * Example: a stream of 20 tokens has 19 targets. With T = 4 these are 5 sequences, the last one short. One
 * update has S = 5 of them; B = 2 and R = 2:
 *
 *     stream         t0 t1 t2 t3 | t4 t5 t6 t7 | t8 t9 .. t11 | t12 .. t15 | t16 t17 t18 (t19)
 *     sequence             0            1             2              3             4
 *     targets              4            4             4              4             3        N = 19
 *     micro-batch       u = 0 (8 targets)          u = 1 (8 targets)         u = 2 (3 targets)
 *     computed by       rank 0, k = 0              rank 1, k = 0             rank 0, k = 1
 *
 * Each target's loss is scaled by 1/19, on both ranks. In the words of 27.3 the three micro-batches weigh
 * n_k/N = 8/19, 8/19 and 3/19. Rank 0 makes two micro-steps, rank 1 makes one, and the gradients of both are
 * summed. With equal weights of 1/3 the last three targets would count nearly three times too much.
 *
 * Validation is cut in the same way. Not here: what is done with a micro-batch (train_gpt2.c, evaluate.c). */
// clang-format on
#ifndef LLMC_BATCH_H
#define LLMC_BATCH_H

#include "../base/arithmetic.h"
#include "../ops.h"
#include "../ranks/world.h"
#include "sequences.h"

typedef struct {
    World world;
    int B, T;
    int64_t max_sequences; // in one update

    // This rank's current micro-batch, on the device.
    Id *ids, *targets; // (B, T)
    RowStat *losses;   // (B, T): where its token losses go

    int32_t *host_ids, *host_targets; // (B, T) staging
    RowStat *all_losses;              // (micro-steps, B, T)
    double *host_losses;              // the same, read back once per update
    double *sequence_losses;          // (max_sequences), of all ranks
} Batch;

Batch *batch_new(World world, int B, int T, int64_t max_sequences);
void batch_free(Batch *batch);

/* K of this rank: how many of the micro-batches of `count` sequences it computes. */
int64_t batch_micro_steps(const Batch *batch, int64_t count);

/* Loads this rank's micro-step `micro` of the update whose sequences have the numbers first .. first+count in
 * the order of sequences.h. Adds the sequences' hashes to *data. Returns how many sequences the micro-batch
 * has: B, or fewer in the last one. */
int batch_load(Batch *batch, const Sequences *sequences, uint64_t first, int64_t count,
               int64_t micro, uint64_t *data);

/* After all micro-steps: the sum of the token losses of all ranks. It is added in the order of the sequences,
 * so its bits do not depend on the split. A collective, and it waits for the device. */
double batch_all_reduce_losses(Batch *batch, int64_t count);

#endif

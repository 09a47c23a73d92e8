/* batch.h: who computes which sequences. An update is `count` consecutive sequences of the order in sequences.h, cut
 * into micro-batches of B sequences (the last may be shorter). Micro-batch u goes to rank u mod R, as its micro-step
 * u div R. R and B need not divide anything; some ranks then have one micro-batch less. Validation is cut the
 * same way. Not here: what is done with a micro-batch (train_gpt2.c, evaluate.c). */
#ifndef LLMC_BATCH_H
#define LLMC_BATCH_H

#include "sequences.h"
#include "../ops.h"
#include "../ranks/world.h"

/* a / b rounded up, for a >= 0 and b > 0: sequences to micro-batches, micro-batches to micro-steps. */
static inline int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

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

/* Micro-batches of this rank among the micro-batches of `count` sequences. */
int64_t batch_micro_steps(const Batch *batch, int64_t count);

/* Loads this rank's micro-step `micro` of the update made of sequences at positions first .. first+count.
 * Adds the sequences' hashes to *data. Returns how many sequences it has (B, or fewer in the last micro-batch). */
int batch_load(Batch *batch, const Sequences *sequences, uint64_t first, int64_t count,
               int64_t micro, uint64_t *data);

/* After all micro-batches: the sum of all token losses of all ranks, added in sequence order, so that its bits do
 * not depend on the split. Waits for the device; every rank calls it. */
double batch_all_reduce_losses(Batch *batch, int64_t count);

#endif

/* batch.h: who computes which rows. An update is `count` consecutive rows of the order in sequences.h, cut
 * into units of B rows (the last may be shorter). Unit u goes to rank u mod R, as its micro-step
 * u div R. R and B need not divide anything; some ranks then have one unit less. Validation is cut the
 * same way. Not here: what is done with a unit (train_gpt2.c, evaluate.c). */
#ifndef LLMC_BATCH_H
#define LLMC_BATCH_H

#include "sequences.h"
#include "../ops.h"
#include "../ranks/world.h"

/* a / b rounded up, for a >= 0 and b > 0: rows to units, units to micro-steps. */
static inline int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

typedef struct {
    World world;
    int B, T;
    int64_t max_rows; // in one update

    // This rank's current unit, on the device.
    Id *ids, *targets; // (B, T)
    Stat *losses;      // (B, T): where its token losses go

    int32_t *host_ids, *host_targets; // (B, T) staging
    Stat *all_losses;                 // (micro-steps, B, T)
    double *host_losses;              // the same, read back once per update
    double *row_losses;               // (max_rows), of all ranks
} Batch;

Batch *batch_new(World world, int B, int T, int64_t max_rows);
void batch_free(Batch *batch);

/* Units of this rank among the units of `count` rows. */
int64_t batch_units(const Batch *batch, int64_t count);

/* Loads this rank's micro-step `micro` of the update made of rows at positions first .. first+count.
 * Adds the rows' hashes to *data. Returns how many rows it has (B, or fewer in the last unit). */
int batch_load(Batch *batch, const Rows *rows, uint64_t first, int64_t count, int64_t micro,
               uint64_t *data);

/* After all units: the sum of all token losses of all ranks, added in row order, so that its bits do
 * not depend on the split. Waits for the device; every rank calls it. */
double batch_loss_sum(Batch *batch, int64_t count);

#endif

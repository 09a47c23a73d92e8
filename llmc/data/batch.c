/* batch.c: who computes which sequences. The split is arithmetic on the number of a micro-batch, so no rank needs to
 * ask another. Token losses stay on the device until the update ends; then each rank reads its own, adds them up by
 * sequence, and the sequences' sums are all-reduced. Adding the zeros of other ranks is exact, and the final sum
 * runs in sequence order: the logged loss has the same bits for every split. */
#include "batch.h"

#include "../base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Tokens of a micro-batch at its fullest. */
static size_t micro_batch_tokens(const Batch *batch) { return (size_t)batch->B * batch->T; }

/* Micro-batches of the rank that has the most. */
static size_t max_micro_steps(const Batch *batch) {
    // ceil(ceil(S / B) / R). Example: S = 5, B = 2 and R = 2 make 3 micro-batches; rank 0 computes 2 of them.
    return (size_t)divide_up(divide_up(batch->max_sequences, batch->B), batch->world.size);
}

/* Room for the token losses of all micro-steps of an update. */
static size_t loss_count(const Batch *batch) {
    return size_mul(max_micro_steps(batch), micro_batch_tokens(batch), "token losses of an update");
}

Batch *batch_new(World world, int B, int T, int64_t max_sequences) {
    Batch *batch = memory_new(1, sizeof *batch, "a batch");
    *batch = (Batch){.world = world, .B = B, .T = T, .max_sequences = max_sequences};
    size_t tokens = micro_batch_tokens(batch), losses = loss_count(batch);
    // Every buffer is sized for the largest update, so nothing is allocated while the model trains.
    batch->host_ids = memory_new(tokens, sizeof(int32_t), "a batch");
    batch->host_targets = memory_new(tokens, sizeof(int32_t), "a batch");
    batch->host_losses = memory_new(losses, sizeof(double), "token losses of an update");
    batch->sequence_losses =
        memory_new((size_t)max_sequences, sizeof(double), "sequence losses of an update");
    batch->ids = device_alloc(tokens * element_size(OF_ID), "a batch");
    batch->targets = device_alloc(tokens * element_size(OF_ID), "a batch");
    batch->all_losses =
        device_alloc(losses * element_size(OF_ROW_STAT), "token losses of an update");
    return batch;
}

void batch_free(Batch *batch) {
    size_t tokens = micro_batch_tokens(batch);
    device_free(batch->ids, tokens * element_size(OF_ID));
    device_free(batch->targets, tokens * element_size(OF_ID));
    device_free(batch->all_losses, loss_count(batch) * element_size(OF_ROW_STAT));
    free(batch->host_ids);
    free(batch->host_targets);
    free(batch->host_losses);
    free(batch->sequence_losses);
    free(batch);
}

int64_t batch_micro_steps(const Batch *batch, int64_t count) {
    // Rank r has the micro-batches r, r + R, r + 2R, ... With 3 micro-batches and R = 2, rank 0 has ceil(3 / 2) = 2
    // and rank 1 has ceil(2 / 2) = 1. A rank beyond the last micro-batch has none.
    int64_t micro_batches = divide_up(count, batch->B);
    int64_t after = micro_batches - batch->world.rank; // micro-batches from this rank's first on
    return after > 0 ? divide_up(after, batch->world.size) : 0;
}

int batch_load(Batch *batch, const Sequences *sequences, uint64_t first, int64_t count,
               int64_t micro, uint64_t *data) {
    // Micro-step k of rank r is micro-batch u = k R + r of the update. It begins at the update's sequence u B.
    int64_t begin = (micro * batch->world.size + batch->world.rank) * batch->B;
    // The update's last micro-batch has what is left, B sequences or fewer.
    int size = (int)(count - begin < batch->B ? count - begin : batch->B);
    for (int b = 0; b < size; b++) {
        size_t at = (size_t)b * batch->T;
        // its number in the order of this epoch, shuffled or not
        uint64_t sequence = sequences_at(sequences, first + (uint64_t)(begin + b));
        *data +=
            sequences_read(sequences, sequence, batch->host_ids + at, batch->host_targets + at);
    }
    // (size, T): of a short micro-batch only its own rows go to the device.
    size_t tokens = (size_t)size * batch->T;
    write_ids(batch->ids, batch->host_ids, tokens);
    write_ids(batch->targets, batch->host_targets, tokens);
    // Each micro-step has a part of its own, (B, T), in all_losses: none has to be read back before the update ends.
    batch->losses =
        device_at(batch->all_losses, OF_ROW_STAT, (size_t)micro * micro_batch_tokens(batch));
    return size;
}

double batch_all_reduce_losses(Batch *batch, int64_t count) {
    int B = batch->B, T = batch->T, R = batch->world.size;
    size_t tokens = size_mul((size_t)batch_micro_steps(batch, count), micro_batch_tokens(batch),
                             "token losses");
    // One copy for the whole update. After each micro-step it would make the host wait for the device.
    read_stats(batch->host_losses, batch->all_losses, tokens);
    // Sequences of other ranks must be 0 here: in the all-reduce 0 + x is x, without a rounding.
    memset(batch->sequence_losses, 0, (size_t)count * sizeof(double));
    for (int64_t sequence = 0; sequence < count; sequence++) {
        int64_t micro_batch = sequence / B;
        // only micro-batches that this rank has computed; other ranks fill in theirs
        if (micro_batch % R != batch->world.rank) continue;
        const double *losses =
            batch->host_losses + ((micro_batch / R) * B + sequence % B) * T; // (T)
        for (int t = 0; t < T; t++) batch->sequence_losses[sequence] += losses[t];
    }
    world_all_reduce_doubles(batch->sequence_losses,
                             (size_t)count); // every other rank added 0: exact
    // Every rank adds the same numbers in the same order, whatever R and B are.
    double sum = 0;
    for (int64_t sequence = 0; sequence < count; sequence++)
        sum += batch->sequence_losses[sequence];
    return sum;
}

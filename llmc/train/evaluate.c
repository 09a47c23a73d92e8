/* evaluate.c: the mean loss over held-out data. It is weighted as the training loss is (chapter 27.6): the sum of all
 * token losses of all ranks, divided once by their number. A mean of the ranks' or batches' means would be another
 * number wherever they have different numbers of targets. */
#include "evaluate.h"

Evaluation evaluate(GPT2 *model, Batch *batch, const Sequences *sequences, uint64_t limit) {
    double sum = 0;
    // The fingerprint that batch_load adds up. Only training logs one.
    uint64_t ignored = 0;
    // In portions: the buffers of a batch hold the token losses of max_sequences sequences, no more.
    for (uint64_t first = 0; first < limit; first += (uint64_t)batch->max_sequences) {
        uint64_t left = limit - first;
        int64_t count =
            left < (uint64_t)batch->max_sequences ? (int64_t)left : batch->max_sequences;
        for (int64_t micro = 0; micro < batch_micro_steps(batch, count); micro++) {
            // Forward only. No gradients are needed, so nothing of the micro-batch before is kept.
            int size = batch_load(batch, sequences, first, count, micro, &ignored);
            gpt2_forward(model, batch->ids, size, batch->T);
            gpt2_loss(model, batch->losses, batch->targets, size, batch->T);
        }
        sum += batch_all_reduce_losses(batch, count);
    }
    // ignored targets have a loss of 0 and are not counted
    uint64_t tokens = sequences_valid_total(sequences, 0, limit);
    return (Evaluation){.loss = sum / (double)tokens, .tokens = tokens};
}

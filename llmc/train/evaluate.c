/* evaluate.c: see evaluate.h. */
#include "evaluate.h"

Evaluation evaluate(GPT2 *model, Batch *batch, const Rows *rows, uint64_t limit) {
    double sum = 0;
    uint64_t ignored = 0;
    for (uint64_t first = 0; first < limit; first += (uint64_t)batch->max_rows) {
        uint64_t left = limit - first;
        int64_t count = left < (uint64_t)batch->max_rows ? (int64_t)left : batch->max_rows;
        for (int64_t micro = 0; micro < batch_units(batch, count); micro++) {
            int size = batch_load(batch, rows, first, count, micro, &ignored);
            gpt2_forward(model, batch->ids, size, batch->T);
            gpt2_loss(model, batch->losses, batch->targets, size, batch->T);
        }
        sum += batch_loss_sum(batch, count);
    }
    uint64_t tokens = rows_valid_total(rows, 0, limit);
    return (Evaluation){.loss = sum / (double)tokens, .tokens = tokens};
}

/* tiny.c: see tiny.h. */
#include "tiny.h"

static void write_weights(GPT2 *model) {
    for (int i = 0; i < model->table.count; i++) {
        const Tensor *t = &model->table.tensors[i];
        float *host = calloc(t->count, sizeof *host);
        formula_weights(host, t->name, t->count);
        gpt2_write_weights(model, t, 0, host, t->count);
        free(host);
    }
}

GPT2 *tiny_new(bool recompute) {
    Config config = {
        .layers = 2, .heads = 3, .channels = TINY_CHANNELS, .seq_len = 23, .vocab = TINY_VOCAB};
    GPT2 *model = gpt2_new(&config, TINY_ROWS, recompute, true);
    // Backward must write every gradient, whatever was there before.
    for (size_t i = 0; i < model->table.elements; i++) model->grads[i] = (real)NAN;
    write_weights(model);
    return model;
}

TinyBatch tiny_batch(const char *name, int sequences) {
    TinyBatch batch;
    for (int b = 0; b < sequences; b++)
        for (int t = 0; t < TINY_T; t++) {
            size_t at = (size_t)b * (TINY_T + 1) + t;
            batch.ids[b * TINY_T + t] = formula_token(name, TINY_VOCAB, at);
            batch.targets[b * TINY_T + t] = formula_token(name, TINY_VOCAB, at + 1);
        }
    return batch;
}

void tiny_micro_batch(GPT2 *model, real *losses, const TinyBatch *batch, int first, int sequences,
                      double scale, bool accumulate) {
    const Id *ids = batch->ids + first * TINY_T, *targets = batch->targets + first * TINY_T;
    gpt2_forward(model, ids, sequences, TINY_T);
    gpt2_backward(model, losses + first * TINY_T, ids, targets, sequences, TINY_T, scale,
                  accumulate, NULL, NULL);
}

void tiny_expect(Expectations *e, const GPT2 *model, const real *packed, Operation operation) {
    for (int i = 0; i < model->table.count; i++) {
        const Tensor *t = &model->table.tensors[i];
        expect_tensor(e, t->name, packed + t->offset, t->count, operation, 1);
    }
    const Tensor *wte = &model->table.tensors[0];
    size_t padded = (size_t)config_padded_vocab(&model->config) * TINY_CHANNELS;
    for (size_t i = wte->count; i < padded; i++)
        CHECK(packed[wte->offset + i] == 0, "wte's padding [%zu] is %g", i,
              (double)packed[wte->offset + i]);
}

double tiny_difference(const GPT2 *model, const real *a, const real *b) {
    double largest = 0;
    for (int i = 0; i < model->table.count; i++) {
        const Tensor *t = &model->table.tensors[i];
        for (size_t j = t->offset; j < t->offset + t->count; j++) {
            double d = fabs((double)a[j] - (double)b[j]);
            if (d > largest || isnan(d)) largest = d;
        }
    }
    return largest;
}

double tiny_norm(const GPT2 *model) {
    double *sums = calloc(model->table.count, sizeof *sums), sum = 0;
    gradient_square_sums(sums, model->grads, model->table.spans, model->table.count);
    for (int i = 0; i < model->table.count; i++) sum += sums[i];
    free(sums);
    return sqrt(sum);
}

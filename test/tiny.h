/* tiny.h: the tiny GPT whose values are recorded, built from the program's own model (llmc/model/gpt2.h).
 * Two layers, three heads; nothing in it is a round number. Next: gpt2_model.c. */
#ifndef TINY_H
#define TINY_H

#include "expect.h"

#include "../llmc/model/gpt2.h"

enum { TINY_ROWS = 5, TINY_T = 19, TINY_VOCAB = 131, TINY_CHANNELS = 24 };

/* The model with the recorded weights, for micro-batches of up to TINY_ROWS sequences. */
GPT2 *tiny_new(bool recompute);

/* `sequences` windows of TINY_T + 1 tokens: inputs and targets. */
typedef struct {
    Id ids[TINY_ROWS * TINY_T], targets[TINY_ROWS * TINY_T];
} TinyBatch;
TinyBatch tiny_batch(const char *name, int sequences);

/* Sequences first .. first+sequences of a batch, forward and backward: grads (+)= the gradient of scale times
 * the sum of their losses, which go to losses[first * TINY_T ..]. */
void tiny_micro_batch(GPT2 *model, real *losses, const TinyBatch *batch, int first, int sequences,
                      double scale, bool accumulate);

/* Compares every gradient tensor (or another packed buffer) with the file's, padding with zero. */
void tiny_expect(Expectations *e, const GPT2 *model, const real *packed, Operation operation);

/* The largest difference between two packed buffers of models like this one; NaN where one is NaN. */
double tiny_difference(const GPT2 *model, const real *a, const real *b);

/* Global norm of the model's gradients, as an update takes it. */
double tiny_norm(const GPT2 *model);

#endif

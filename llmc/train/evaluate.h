/* evaluate.h: the loss of a model on data it does not train on. */
#ifndef LLMC_EVAL_H
#define LLMC_EVAL_H

#include "../model/gpt2.h"
#include "../data/batch.h"

typedef struct {
    double loss;     // nats a token: the sum over targets divided by their number
    uint64_t tokens; // targets
} Evaluation;

/* Evaluates rows 0 .. limit of `rows` in stream order, in portions of batch->max_rows. Every rank calls
 * it. limit <= rows->rows; rows->shuffle is false. */
Evaluation evaluate(GPT2 *model, Batch *batch, const Rows *rows, uint64_t limit);

#endif

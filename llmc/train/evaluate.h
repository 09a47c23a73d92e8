/* evaluate.h: the loss of a model on data it does not train on. Next: generate.h. */
#ifndef LLMC_EVALUATE_H
#define LLMC_EVALUATE_H

#include "../model/gpt2.h"
#include "../data/batch.h"

typedef struct {
    double loss;     // nats a token: the sum over targets divided by their number
    uint64_t tokens; // targets
} Evaluation;

/* Evaluates sequences 0 .. limit of `sequences` in stream order, in portions of batch->max_sequences. Every rank calls
 * it. limit <= sequences->per_epoch; sequences->shuffle is false. */
Evaluation evaluate(GPT2 *model, Batch *batch, const Sequences *sequences, uint64_t limit);

#endif

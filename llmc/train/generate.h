/* generate.h: text from a model, token by token. */
#ifndef LLMC_GENERATE_H
#define LLMC_GENERATE_H

#include "../model/gpt2.h"

typedef struct {
    double temperature; // divides the logits; 0 takes the likeliest token
    int top_k;          // only the k likeliest tokens; 0: all
    double top_p;       // of them, the likeliest that together have this probability; 0 or 1: all
    bool stop;          // when the context is full, instead of continuing from its later half
    uint64_t seed;
} Sampling;

/* Draws a token from softmax(logits / temperature) over the top_k and top_p of V logits (Holtzman et al.
 * 2020, sections 2 and 3.1), with u uniform in [0, 1). Equal logits rank by id. The logits are overwritten. */
int sample_token(float *logits, int V, const Sampling *sampling, double u);

/* Called with each new token. */
typedef void (*TokenReady)(void *context, int token);

/* Continues `prompt` (n >= 1 ids, the last seq_len of which count) by `count` tokens. When the context is
 * full, generation stops or continues from its later half, as `sampling` asks. */
void generate(GPT2 *model, const int32_t *prompt, int n, int64_t count, const Sampling *sampling,
              TokenReady ready, void *context);

#endif

/* generate.c: text from a model. Two halves: choosing a token from logits (sample_token), and the loop that asks
 * the model for logits, token by token, with a cache of keys and values (generate).
 *
 * A token is drawn by inverting the distribution: u is uniform in [0, 1), and the token is the first whose
 * cumulative probability exceeds u. */
#include "generate.h"

#include "../base/elementary.h"
#include "../base/memory.h"
#include "../base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE_STREAM = 0x73616d70 }; // keeps these random numbers apart from those of other uses
// '>' and not '>=': of equal logits the first stays.

/* The first of the largest logits. */
static int argmax(const float *logits, int V) {
    int best = 0;
    for (int i = 1; i < V; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
// The difference of two floats may overflow; two comparisons give -1, 0 or 1 for all values.
}

static int descending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* A descending copy of the logits; free() releases it. */
static float *sorted_copy(const float *logits, int V) {
    float *sorted = memory_new((size_t)V, sizeof(float), "sampling");
    memcpy(sorted, logits, (size_t)V * sizeof(float));
    qsort(sorted, (size_t)V, sizeof(float), descending);
    return sorted;
}

/* Sets all but the k largest logits to -inf; of equal ones at the border the first stay. sorted: the
 * logits, descending. */
static void keep_top(float *logits, const float *sorted, int V, int k) {
    // Example: logits 5 3 3 3 1 with k = 2: the border is 3, one logit is above it, so of the equal ones only the
    // first stays.
    float border = sorted[k - 1];
    int above = 0;
    for (int i = 0; i < V; i++) above += logits[i] > border;
    for (int i = 0, equal = k - above; i < V; i++) {
        bool kept = logits[i] > border || (logits[i] == border && equal-- > 0);
        if (!kept) logits[i] = -INFINITY;
    }
}

/* How many of the k largest logits it takes to have the share p of their probability. */
static int nucleus(const float *sorted, int k, double p, double temperature) {
    // exp(x - max) is at most 1, so it cannot overflow; the common factor cancels in the comparison with p * total.
    double total = 0, sum = 0;
    for (int i = 0; i < k; i++) total += elementary_exp((sorted[i] - sorted[0]) / temperature);
    for (int i = 0; i < k; i++) {
        sum += elementary_exp((sorted[i] - sorted[0]) / temperature);
        if (sum >= p * total) return i + 1;
    }
    return k; // rounding, or the logits are NaN
}

/* Leaves only the tokens that top_k and top_p allow. */
static void restrict_choice(float *logits, int V, const Sampling *sampling) {
    // 0 and 1 turn top-p off. Without a restriction no copy is sorted.
    bool some = sampling->top_p > 0 && sampling->top_p < 1;
    int k = sampling->top_k > 0 && sampling->top_k < V ? sampling->top_k : V;
    if (k == V && !some) return;
    float *sorted = sorted_copy(logits, V);
    // top-p is taken among the k that top-k leaves: its share refers to their probability alone.
    if (some) k = nucleus(sorted, k, sampling->top_p, sampling->temperature);
    if (k < V) keep_top(logits, sorted, V, k);
    free(sorted);
}

int sample_token(float *logits, int V, const Sampling *sampling, double u) {
    if (sampling->temperature == 0) return argmax(logits, V);
    // Excluded tokens have the logit -inf, and exp(-inf) is 0: the sums below need no list of what is allowed.
    restrict_choice(logits, V, sampling);
    int likeliest = argmax(logits, V);
    double top = logits[likeliest], total = 0;
    for (int i = 0; i < V; i++) total += elementary_exp((logits[i] - top) / sampling->temperature);
    // walk along the cumulative sum until u of the total is used up
    double left = u * total;
    for (int i = 0; i < V; i++) {
        left -= elementary_exp((logits[i] - top) / sampling->temperature);
        if (left < 0) return i;
    }
    return likeliest; // rounding used the sum up, or the logits are NaN
}

/* The text so far, as much of it as the model can see. */
typedef struct {
    GPT2 *model;
    int32_t *ids; // (seq_len)
    Id *device_ids;
    int length; // ids in the context
    int cached; // of them, how many the model has seen
    float *logits; // (V)
} Context;

/* Logits for what follows the context. */
static void context_logits(Context *c) {
    // Only ids that the model has not seen are computed, from position `cached` on: the whole prompt first, then one
    // token at a time. The keys and values of the others are in the cache.
    int fresh = c->length - c->cached;
    write_ids(c->device_ids, c->ids + c->cached, (size_t)fresh);
    gpt2_extend(c->model, c->device_ids, fresh, c->cached);
    gpt2_logits(c->model, c->logits, fresh);
    c->cached = c->length;
}

/* Appends a token. A full context first drops its earlier half; the rest gets new positions, so the cache is
 * computed again. */
static void context_append(Context *c, int token) {
    int T = c->model->config.seq_len;
    if (c->length == T) {
        // Half of the context is kept, not all but one token: else each further token would need the whole context
        // again.
        int keep = T / 2;
        memmove(c->ids, c->ids + T - keep, (size_t)keep * sizeof(int32_t));
        c->length = keep;
        c->cached = 0;
    }
    c->ids[c->length++] = token;
}

void generate(GPT2 *model, const int32_t *prompt, int n, int64_t count, const Sampling *sampling,
              TokenReady ready, void *context) {
    int T = model->config.seq_len, V = model->config.vocab;
    Context c = {.model = model};
    c.ids = memory_new((size_t)T, sizeof(int32_t), "sampling");
    c.logits = memory_new((size_t)V, sizeof(float), "sampling");
    c.device_ids = device_alloc((size_t)T * element_size(OF_ID), "sampling");
    // Only the last T tokens of a long prompt fit the context.
    c.length = n < T ? n : T;
    memcpy(c.ids, prompt + n - c.length, (size_t)c.length * sizeof(int32_t));
    for (int64_t i = 0; i < count; i++) {
        context_logits(&c);
        // u depends on the seed and the token's number alone: the same seed gives the same text, whatever was drawn
        // before.
        double u = rng_uniform(sampling->seed, (uint64_t)i, SAMPLE_STREAM);
        int token = sample_token(c.logits, V, sampling, u);
        ready(context, token);
        // The context is full, so the token just drawn is the last one.
        if (sampling->stop && c.length == T) break;
        context_append(&c, token);
    }
    device_free(c.device_ids, (size_t)T * element_size(OF_ID));
    free(c.ids);
    free(c.logits);
}

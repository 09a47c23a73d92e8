/* score.c: see score.h. The completions of an example become sequences of one length, side by side: context,
 * completion, padding; only the completion's tokens are targets. */
#include "score.h"

#include "../base/activity.h"
#include "../base/arithmetic.h"
#include "../base/error.h"
#include "../base/memory.h"

#include <math.h>
#include <stdlib.h>

enum { LENGTH_STEP = 16 }; // sequences are padded to multiples: a device prepares for few shapes

/* One sequence (T): input t predicts token t + 1; before and after the completion, nothing is a target. */
static void fill_sequence(int32_t *ids, int32_t *targets, int T, const int32_t *context,
                          int context_tokens, const int32_t *completion, int tokens) {
    for (int t = 0; t < T; t++) {
        int next = t + 1 - context_tokens; // of the completion
        ids[t] = t < context_tokens ? context[t] : next <= tokens ? completion[next - 1] : 0;
        targets[t] = next >= 0 && next < tokens ? completion[next] : -1;
    }
}

/* The longest sequence of inputs, padded. */
static int padded_length(const Example *e, int seq_len) {
    int longest = 0;
    for (int i = 0; i < e->completions; i++)
        if (e->tokens[i] > longest) longest = e->tokens[i];
    // The last token is a target, not an input: 10 tokens of context and 5 of completion are 14 inputs, padded to 16.
    int length = (e->context + longest - 1 + LENGTH_STEP - 1) / LENGTH_STEP * LENGTH_STEP;
    return int_min(length, seq_len);
}

/* How many of its completions are computed side by side: all, or one where the model's memory is too small. */
static int completions_together(const GPT2 *model, const Example *e, int T) {
    int64_t most = (int64_t)model->max_sequences * model->config.seq_len;
    return (int64_t)e->completions * T <= most ? e->completions : 1;
}

/* Completions of an example on the host and on the device, (B, T) each. */
struct Scorer {
    GPT2 *model;
    const Examples *examples;
    int32_t *host_ids, *host_targets;
    double *host_losses;
    Id *ids, *targets;
    RowStat *losses;
    size_t tokens; // the most that B * T is
};

Scorer *scorer_new(GPT2 *model, const Examples *examples) {
    const char *what = "scoring";
    Scorer *s = memory_new(1, sizeof *s, what);
    *s = (Scorer){.model = model, .examples = examples};
    // The buffers have room for the largest example, so that the loop over examples allocates nothing.
    for (size_t i = 0; i < examples->count; i++) {
        int T = padded_length(&examples->items[i], model->config.seq_len);
        size_t tokens = (size_t)completions_together(model, &examples->items[i], T) * T;
        if (tokens > s->tokens) s->tokens = tokens;
    }
    s->host_ids = memory_new(s->tokens, sizeof(int32_t), what);
    s->host_targets = memory_new(s->tokens, sizeof(int32_t), what);
    s->host_losses = memory_new(s->tokens, sizeof(double), what);
    s->ids = device_alloc(s->tokens * element_size(OF_ID), what);
    s->targets = device_alloc(s->tokens * element_size(OF_ID), what);
    s->losses = device_alloc(s->tokens * element_size(OF_ROW_STAT), what);
    return s;
}

void scorer_free(Scorer *s) {
    device_free(s->ids, s->tokens * element_size(OF_ID));
    device_free(s->targets, s->tokens * element_size(OF_ID));
    device_free(s->losses, s->tokens * element_size(OF_ROW_STAT));
    free(s->host_ids);
    free(s->host_targets);
    free(s->host_losses);
    free(s);
}

/* Losses of completions first .. first+B, whose tokens begin at `ids`. */
static void losses_of(Scorer *s, const Example *e, int first, int B, int T, const int32_t *ids,
                      double *losses) {
    const int32_t *context = s->examples->tokens.ids + e->first;
    size_t count = (size_t)B * T;
    for (int b = 0; b < B; b++) {
        size_t at = (size_t)b * T;
        fill_sequence(s->host_ids + at, s->host_targets + at, T, context, e->context, ids,
                      e->tokens[first + b]);
        ids += e->tokens[first + b];
    }
    // Padding needs no mask: attention is causal, so what follows a completion cannot change its losses.
    write_ids(s->ids, s->host_ids, count);
    write_ids(s->targets, s->host_targets, count);
    gpt2_forward(s->model, s->ids, B, T);
    gpt2_loss(s->model, s->losses, s->targets, B, T);
    read_stats(s->host_losses, s->losses, count);
    for (int b = 0; b < B; b++) {
        losses[first + b] = 0;
        for (int t = 0; t < T; t++) losses[first + b] += s->host_losses[(size_t)b * T + t];
        if (!isfinite(losses[first + b])) // the smallest of them would mean nothing
            fatal(EXIT_NONFINITE,
                  "the loss of a completion is %g: the weights, though finite, are too large to "
                  "compute with",
                  losses[first + b]);
    }
}

void score_losses(Scorer *s, const Example *e, double *losses) {
    int T = padded_length(e, s->model->config.seq_len),
        together = completions_together(s->model, e, T);
    const int32_t *ids = s->examples->tokens.ids + e->first + e->context;
    for (int i = 0; i < e->completions; i += together) {
        losses_of(s, e, i, together, T, ids, losses);
        ids += e->tokens[i]; // for one at a time
    }
}

/* The index of the smallest of n values, the first of equal ones. */
static int smallest(const double *values, int n) {
    int least = 0;
    for (int i = 1; i < n; i++)
        if (values[i] < values[least]) least = i;
    return least;
}

Score score_examples(GPT2 *model, const Examples *examples, const World *world) {
    Scorer *scorer = scorer_new(model, examples);
    uint64_t counts[3] = {0}; // examples, and those that are right by sum and by mean
    // Example i belongs to rank i mod R. A rank may have none; it still takes part in the sum below.
    for (size_t i = (size_t)world->rank; i < examples->count; i += (size_t)world->size) {
        const Example *e = &examples->items[i];
        double losses[COMPLETIONS_MOST];
        score_losses(scorer, e, losses);
        activity_tick();
        counts[0]++;
        // acc: the smallest sum of losses wins
        counts[1] += smallest(losses, e->completions) == e->label;
        // acc_norm: the smallest mean of a token wins, so that long endings are not at a disadvantage
        for (int k = 0; k < e->completions; k++) losses[k] /= e->tokens[k];
        counts[2] += smallest(losses, e->completions) == e->label;
    }
    scorer_free(scorer);
    // counts are added, shares are not: ranks may have different numbers of examples (chapter 27.6)
    world_all_reduce_u64(counts, 3);
    return (Score){.examples = counts[0], .acc = counts[1], .acc_norm = counts[2]};
}

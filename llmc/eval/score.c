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

/* Some completions of an example on the host and on the device. */
typedef struct {
    int32_t *host_ids, *host_targets; // (B, T)
    double *host_losses;              // (B, T)
    Id *ids, *targets;                // (B, T)
    RowStat *losses;                  // (B, T)
    size_t tokens;                    // B * T
} Table;

/* Room for sequences of one micro-batch, on the host and on the device. */
static Table table_new(size_t tokens) {
    const char *what = "scoring";
    return (Table){.host_ids = memory_new(tokens, sizeof(int32_t), what),
                   .host_targets = memory_new(tokens, sizeof(int32_t), what),
                   .host_losses = memory_new(tokens, sizeof(double), what),
                   .ids = device_alloc(tokens * element_size(OF_ID), what),
                   .targets = device_alloc(tokens * element_size(OF_ID), what),
                   .losses = device_alloc(tokens * element_size(OF_ROW_STAT), what),
                   .tokens = tokens};
}

/* Releases it. */
static void table_free(Table *table) {
    device_free(table->ids, table->tokens * element_size(OF_ID));
    device_free(table->targets, table->tokens * element_size(OF_ID));
    device_free(table->losses, table->tokens * element_size(OF_ROW_STAT));
    free(table->host_ids);
    free(table->host_targets);
    free(table->host_losses);
}

/* One sequence (T): input t predicts token t + 1; before the completion, and behind it, nothing is a target. */
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
    int length = (e->context + longest - 1 + LENGTH_STEP - 1) / LENGTH_STEP * LENGTH_STEP;
    return int_min(length, seq_len);
}

/* Losses of completions first .. first+B, whose tokens begin at `ids`. */
static void losses_of(GPT2 *model, Table *table, const Example *e, int first, int B, int T,
                      const int32_t *context, const int32_t *ids, double *losses) {
    size_t count = (size_t)B * T;
    for (int b = 0; b < B; b++) {
        size_t at = (size_t)b * T;
        fill_sequence(table->host_ids + at, table->host_targets + at, T, context, e->context, ids,
                      e->tokens[first + b]);
        ids += e->tokens[first + b];
    }
    write_ids(table->ids, table->host_ids, count);
    write_ids(table->targets, table->host_targets, count);
    gpt2_forward(model, table->ids, B, T);
    gpt2_loss(model, table->losses, table->targets, B, T);
    read_stats(table->host_losses, table->losses, count);
    for (int b = 0; b < B; b++) {
        losses[first + b] = 0;
        for (int t = 0; t < T; t++) losses[first + b] += table->host_losses[(size_t)b * T + t];
        if (!isfinite(losses[first + b])) // no smallest of them says anything
            fatal(EXIT_NONFINITE,
                  "the loss of a completion is %g: the weights, though finite, are too large to compute with",
                  losses[first + b]);
    }
}

void score_losses(GPT2 *model, const Examples *examples, const Example *e, double *losses) {
    int T = padded_length(e, model->config.seq_len), together = e->completions;
    if ((int64_t)together * T > (int64_t)model->max_sequences * model->config.seq_len) together = 1;
    const int32_t *context = examples->tokens.ids + e->first, *ids = context + e->context;
    Table table = table_new((size_t)together * T);
    for (int i = 0; i < e->completions; i += together) {
        losses_of(model, &table, e, i, together, T, context, ids, losses);
        ids += e->tokens[i]; // for one at a time
    }
    table_free(&table);
}

/* The index of the smallest of n values, the first of equal ones. */
static int smallest(const double *values, int n) {
    int least = 0;
    for (int i = 1; i < n; i++)
        if (values[i] < values[least]) least = i;
    return least;
}

Score score_examples(GPT2 *model, const Examples *examples, const World *world) {
    uint64_t counts[3] = {0}; // examples, and those that are right by sum and by mean
    for (size_t i = (size_t)world->rank; i < examples->count; i += (size_t)world->size) {
        const Example *e = &examples->items[i];
        double losses[COMPLETIONS_MOST];
        score_losses(model, examples, e, losses);
        activity_tick();
        counts[0]++;
        // acc: the smallest sum of losses wins
        counts[1] += smallest(losses, e->completions) == e->label;
        // acc_norm: the smallest mean of a token wins, so that long endings are not at a disadvantage
        for (int k = 0; k < e->completions; k++) losses[k] /= e->tokens[k];
        counts[2] += smallest(losses, e->completions) == e->label;
    }
    // counts are added, shares are not: ranks may have different numbers of examples (chapter 27.6)
    world_all_reduce_u64(counts, 3);
    return (Score){.examples = counts[0], .acc = counts[1], .acc_norm = counts[2]};
}

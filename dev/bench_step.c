/* bench_step.c: whole updates, as a share of the peak measured between them, with where the time goes and the
 * memory it takes. Data, logs and MPI are not in it.
 * Usage: bench_step [B=4] [T=64] [LAYERS=12] [HEADS=12] [CHANNELS=768] [UPDATES=7] [GROWTH=1]
 * GPT-2 124M is the default. GROWTH=1 then doubles B, T, channels (with heads) and layers one at a time, and prints
 * how the time grows: exponent 1 where it doubles, 2 where it becomes four times as long. */
#include "bench.h"

#include "../llmc/base/error.h"
#include "../llmc/base/memory.h"
#include "../llmc/base/number.h"
#include "../llmc/model/gpt2.h"
#include "../llmc/optimizer/adamw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_UPDATES = 99, VOCAB = 50257 };
enum { FORWARD, BACKWARD, OPTIMIZER, WHOLE, PARTS };
static const char *const part_names[PARTS] = {"forward", "backward", "norm and AdamW", "update"};

/* What is measured, in the order of `limits`. */
enum { B_, T_, LAYERS, HEADS, CHANNELS, UPDATES, GROWTH, NUMBERS };
static const struct {
    const char *name;
    int preset, most;
} limits[NUMBERS] = {{"B", 4, 1 << 16},       {"T", 64, 1 << 16},         {"LAYERS", 12, 1 << 10},
                     {"HEADS", 12, 1 << 10},  {"CHANNELS", 768, 1 << 16}, {"UPDATES", 7, MOST_UPDATES},
                     {"GROWTH", 0, 1}};

typedef struct {
    int B;
    GPT2 *model;
    Id *ids, *targets; // (B,T)
    RowStat *losses;   // (B,T)
    double *square_sums;
} Bench;

typedef struct {
    double seconds[PARTS], best, share, peak; // medians; the fastest update; the highest peak
} Result;

/* One update; the seconds of each part go to column `i`. */
static void update(Bench *b, double seconds[PARTS][MOST_UPDATES], int i) {
    GPT2 *m = b->model;
    const int B = b->B, T = m->config.seq_len;
    const TensorTable *table = &m->table;
    double start = clock_seconds();
    gpt2_forward(m, b->ids, B, T);
    double forward = clock_seconds();
    gpt2_backward(m, b->losses, b->ids, b->targets, B, T, 1.0 / (B * T), false, NULL, NULL);
    double backward = clock_seconds();
    gradient_square_sums(b->square_sums, m->grads, table->spans, table->count);
    AdamW optimizer = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .clip = 1};
    AdamWScalars step = adamw_scalars(&optimizer, i + 1, 1e-5, clip_scale(1.0, optimizer.clip));
    adamw_update(m->params, m->master, m->m, m->v, m->grads, table->spans, table->count, &step);
    double end = clock_seconds();
    seconds[FORWARD][i] = forward - start;
    seconds[BACKWARD][i] = backward - forward;
    seconds[OPTIMIZER][i] = end - backward;
    seconds[WHOLE][i] = end - start;
}

/* Medians of updates of one shape. */
static Result measure(const int number[NUMBERS]) {
    static double seconds[PARTS][MOST_UPDATES], share[MOST_UPDATES];
    const int B = number[B_], T = number[T_], updates = number[UPDATES], tokens = B * T;
    Config config = {.layers = number[LAYERS],
                     .heads = number[HEADS],
                     .channels = number[CHANNELS],
                     .seq_len = T,
                     .vocab = VOCAB};
    Bench b = {.B = B, .model = gpt2_new(&config, B, false, true)};
    gpt2_init(b.model, 42);
    b.ids = memory_new((size_t)tokens, sizeof(Id), "ids");
    b.targets = memory_new((size_t)tokens, sizeof(Id), "targets");
    b.losses = memory_new((size_t)tokens, sizeof(RowStat), "losses");
    b.square_sums = memory_new((size_t)b.model->table.count, sizeof(double), "square sums");
    for (int i = 0; i < tokens; i++) b.ids[i] = i * 97 % VOCAB, b.targets[i] = i * 89 % VOCAB;

    Result result = {0};
    double flops = gpt2_flops_per_token(&config) * tokens;
    update(&b, seconds, 0); // touches the memory
    for (int i = 0; i < updates; i++) {
        double before = peak_flops();
        update(&b, seconds, i);
        double peak_now = (before + peak_flops()) / 2;
        share[i] = flops / seconds[WHOLE][i] / peak_now;
        result.peak = peak_now > result.peak ? peak_now : result.peak;
    }
    for (int part = 0; part < PARTS; part++) result.seconds[part] = median(seconds[part], updates);
    result.best = seconds[WHOLE][0]; // median() has sorted them
    result.share = median(share, updates);
    gpt2_free(b.model);
    free(b.ids), free(b.targets), free(b.losses), free(b.square_sums);
    return result;
}

static void print_update(const int number[NUMBERS], const Result *r) {
    int tokens = number[B_] * number[T_];
    printf("%d layers, %d channels, %d sequences of %d tokens, %s; peak %.0f GFLOP/s, medians of %d\n", number[LAYERS],
           number[CHANNELS], number[B_], number[T_], backend_name(), r->peak / 1e9, number[UPDATES]);
    for (int part = 0; part < PARTS; part++) printf("  %-16s %8.1f ms\n", part_names[part], 1e3 * r->seconds[part]);
    printf("  %.1f tokens/s, %.1f %% of the peak, best %.1f tokens/s\n", tokens / r->seconds[WHOLE], 100 * r->share,
           tokens / r->best);
    printf("  peak memory %.2f GB\n", (double)memory_peak() / 1e9);
}

/* One number doubled at a time. Heads keep their size. */
static void print_growth(const int number[NUMBERS], const Result *base) {
    static const int doubled[] = {B_, T_, LAYERS, CHANNELS};
    printf("  doubled      ms an update   exponent   share of the peak\n");
    for (size_t i = 0; i < sizeof doubled / sizeof *doubled; i++) {
        int larger[NUMBERS];
        memcpy(larger, number, sizeof larger);
        larger[doubled[i]] *= 2;
        if (doubled[i] == CHANNELS) larger[HEADS] *= 2;
        Result r = measure(larger);
        printf("  %-12s %12.1f %10.2f %15.1f %%\n", limits[doubled[i]].name, 1e3 * r.seconds[WHOLE],
               log2(r.seconds[WHOLE] / base->seconds[WHOLE]), 100 * r.share);
    }
}

/* Takes NAME=VALUE. */
static void read_number(int number[NUMBERS], const char *word) {
    size_t length = strcspn(word, "=");
    int i = 0;
    while (i < NUMBERS && (strlen(limits[i].name) != length || strncmp(limits[i].name, word, length) != 0)) i++;
    if (i == NUMBERS || !word[length])
        fatal(EXIT_USAGE, "'%s' is not one of B=, T=, LAYERS=, HEADS=, CHANNELS=, UPDATES=, GROWTH=", word);
    int64_t value = 0;
    int least = i == GROWTH ? 0 : 1;
    if (number_read_i64(word + length + 1, &value) != NUMBER_OK || value < least || value > limits[i].most)
        fatal(EXIT_USAGE, "%s: expected a whole number from %d to %d", word, least, limits[i].most);
    number[i] = (int)value;
}

int main(int argc, char **argv) {
    int number[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) number[i] = limits[i].preset;
    for (int i = 1; i < argc; i++) read_number(number, argv[i]);
    if (number[CHANNELS] % number[HEADS])
        fatal(EXIT_USAGE, "CHANNELS=%d is not a multiple of HEADS=%d", number[CHANNELS], number[HEADS]);
    backend_open(0, 1, 0);
    Result result = measure(number);
    print_update(number, &result);
    if (number[GROWTH]) print_growth(number, &result);
    return 0;
}

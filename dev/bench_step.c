/* bench_step.c: whole updates of GPT-2 124M, B=4 sequences of T=64 tokens, as a share of the peak measured
 * between them, with where the time goes and the memory it takes. Data, logs and MPI are not in it.
 * Usage: bench_step [updates] */
#include "bench.h"

#include "../llmc/base/memory.h"
#include "../llmc/model/gpt2.h"
#include "../llmc/optimizer/adamw.h"

#include <stdio.h>

enum { B = 4, T = 64, MOST_UPDATES = 99 };
enum { FORWARD, BACKWARD, OPTIMIZER, WHOLE, PARTS };
static const char *const part_names[PARTS] = {"forward", "backward", "norm and AdamW", "update"};

typedef struct {
    GPT2 *model;
    Id ids[B * T], targets[B * T];
    RowStat losses[B * T];
    double *square_sums;
} Bench;

/* One update; the seconds of each part go to column `i`. */
static void update(Bench *b, double seconds[PARTS][MOST_UPDATES], int i) {
    GPT2 *m = b->model;
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

int main(int argc, char **argv) {
    static Bench b;
    static double seconds[PARTS][MOST_UPDATES], share[MOST_UPDATES];
    int updates = argc > 1 ? atoi(argv[1]) : 7;
    if (updates < 1 || updates > MOST_UPDATES) updates = 7;
    Config config = {.layers = 12, .heads = 12, .channels = 768, .seq_len = T, .vocab = 50257};
    backend_open(0, 1, 0);
    b.model = gpt2_new(&config, B, false, true);
    gpt2_init(b.model, 42);
    b.square_sums = memory_new((size_t)b.model->table.count, sizeof(double), "square sums");
    for (int i = 0; i < B * T; i++) b.ids[i] = i * 97 % config.vocab, b.targets[i] = i * 89 % config.vocab;

    double flops = gpt2_flops_per_token(&config) * B * T, peak = 0;
    update(&b, seconds, 0); // touches the memory
    for (int i = 0; i < updates; i++) {
        double before = peak_flops();
        update(&b, seconds, i);
        double peak_now = (before + peak_flops()) / 2;
        share[i] = flops / seconds[WHOLE][i] / peak_now;
        peak = peak_now > peak ? peak_now : peak;
    }
    printf("GPT-2 124M, %d sequences of %d tokens, %s; peak %.0f GFLOP/s, medians of %d\n", B, T,
           backend_name(), peak / 1e9, updates);
    double whole = median(seconds[WHOLE], updates);
    for (int part = 0; part < PARTS; part++)
        printf("  %-16s %8.1f ms\n", part_names[part], 1e3 * median(seconds[part], updates));
    printf("  %.1f tokens/s, %.1f %% of the peak, best %.1f tokens/s\n", B * T / whole,
           100 * median(share, updates), B * T / seconds[WHOLE][0]);
    printf("  peak memory %.2f GB\n", (double)memory_peak() / 1e9);
    return 0;
}

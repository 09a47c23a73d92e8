/* bench_ranks.c: the cost of exact sums and of several ranks. Updates of GPT-2 124M made of two micro-batches of
 * B=4 sequences, on this rank's share of them; dev/bench_ranks.sh runs it on one rank and on two.
 * One rank alternates exact updates and plain ones; several do exact ones, and show how much of the
 * time goes into the sum over ranks, waiting for the slowest included.
 * Usage: bench_ranks THREADS [TOKENS_A_ROW [UPDATES]] */
#include "bench.h"

#include "../llmc/base/memory.h"
#include "../llmc/model/gpt2.h"
#include "../llmc/optimizer/adamw.h"
#include "../llmc/ranks/world.h"

#include <stdio.h>

enum { B = 4, MICRO_BATCHES = 2, MOST_TOKENS = 1024, MOST_UPDATES = 99 };

typedef struct {
    World world;
    GPT2 *model;
    int T;
    Id ids[B * MOST_TOKENS], targets[B * MOST_TOKENS];
    RowStat losses[B * MOST_TOKENS];
    double *square_sums;
} Bench;

typedef struct {
    bool first, last;
} MicroStep;

static void bucket_ready(void *context, size_t first, size_t count) {
    const MicroStep *at = context;
    reduction_ready(first, count, at->first, at->last, true);
}

/* One update; returns its seconds, and in *sum those of the sum over ranks. */
static double update(Bench *b, bool exact, double *sum) {
    GPT2 *m = b->model;
    world_barrier();
    double start = clock_seconds();
    for (int micro_batch = b->world.rank; micro_batch < MICRO_BATCHES;
         micro_batch += b->world.size) {
        MicroStep at = {micro_batch == b->world.rank, micro_batch + b->world.size >= MICRO_BATCHES};
        gpt2_forward(m, b->ids, B, b->T);
        gpt2_backward(m, b->losses, b->ids, b->targets, B, b->T, 1.0 / (MICRO_BATCHES * B * b->T),
                      !exact && !at.first, exact ? bucket_ready : NULL, &at);
    }
    double computed = clock_seconds();
    if (exact) reduction_finish();
    *sum = clock_seconds() - computed;
    gradient_square_sums(b->square_sums, m->grads, m->table.spans, m->table.count);
    AdamW optimizer = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .clip = 1};
    AdamWScalars step = adamw_scalars(&optimizer, 1, 1e-5, clip_scale(1.0, optimizer.clip));
    adamw_update(m->params, m->master, m->m, m->v, m->grads, m->table.spans, m->table.count, &step);
    return clock_seconds() - start;
}

int main(int argc, char **argv) {
    static Bench b;
    static double exact[MOST_UPDATES], plain[MOST_UPDATES], sum[MOST_UPDATES];
    b.world = world_open(&argc, &argv);
    int threads = argc > 1 ? atoi(argv[1]) : 0, updates = argc > 3 ? atoi(argv[3]) : 5;
    b.T = argc > 2 ? atoi(argv[2]) : 64;
    if (b.T < 1 || b.T > MOST_TOKENS || updates < 1 || updates > MOST_UPDATES ||
        b.world.size > MICRO_BATCHES) {
        fprintf(stderr, "usage: bench_ranks THREADS [TOKENS_A_ROW [UPDATES]], on one rank or two\n");
        return 2;
    }
    Config config = {.layers = 12, .heads = 12, .channels = 768, .seq_len = b.T, .vocab = 50257};
    backend_open(b.world.local_rank, b.world.local_size, threads);
    b.model = gpt2_new(&config, B, false, true);
    gpt2_init(b.model, 42);
    b.square_sums = memory_new((size_t)b.model->table.count, sizeof(double), "square sums");
    for (int i = 0; i < B * b.T; i++) b.ids[i] = i * 97 % config.vocab, b.targets[i] = i * 89 % config.vocab;
    reduction_open(b.model->grads, b.model->table.elements, true, MICRO_BATCHES / b.world.size);

    double ignored;
    update(&b, true, &ignored); // touches the memory
    for (int i = 0; i < updates; i++) {
        exact[i] = update(&b, true, &sum[i]);
        if (b.world.size == 1) plain[i] = update(&b, false, &ignored);
    }
    if (b.world.rank == 0) {
        double whole = median(exact, updates);
        printf("%d %.1f %.1f %.1f\n", b.world.size, 1e3 * whole, 1e3 * median(plain, updates),
               100 * median(sum, updates) / whole);
    }
    world_close();
    return 0;
}

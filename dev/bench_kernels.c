/* bench_kernels.c: how near the matrix products come to what the machine can do. GPT-2 124M's four
 * matrices in three orientations, the classifier and attention, each as a share of the peak of fused
 * multiply-adds measured in the same run, because machines differ and are shared: compare shares.
 *
 * Each repetition measures the peak, then each case once, on the next of several layers, so that
 * weights and gradients come from memory as they do in training. Medians are shown.
 * Usage: bench_kernels [repetitions] */
#include "bench.h"

#include "../llmc/base/memory.h"

#include <stdio.h>

enum { LAYERS = 4, C = 768, WIDEST = 4 * C, ROWS = 1024, V = 50257, VP = 50304, MOST_REPEATS = 99 };
enum { B = 4, LONGEST = 1024, HEADS = 12 }; // of attention

static const struct {
    const char *name;
    int K, O;
} shapes[] = {{"qkv", C, 3 * C}, {"attproj", C, C}, {"fc", C, 4 * C}, {"fcproj", 4 * C, C}};
enum { SHAPES = sizeof shapes / sizeof *shapes, WEIGHTS = 12 * C * C };

static real *w, *dw, *x, *dout, *out, *wte, *dwte, *logits, *losses;
static real *qkv, *dqkv, *att, *datt, *lse;
static Id *targets;

static real *filled(size_t count) {
    real *block = memory_map(count * sizeof(real), "benchmark");
    for (size_t i = 0; i < count; i++)
        block[i] = (real)((int)(i * 2654435761u >> 20 & 255) - 128) / 1024;
    return block;
}

// ---------------------------------------------------------------------------------------------
// Cases

enum { CLASSIFIER = -1, ATTENTION = -2 };

typedef struct {
    const char *name, *what;
    int N, shape; // an index in shapes, or:
    double flops;
    double share[MOST_REPEATS], tile_share[MOST_REPEATS], seconds[MOST_REPEATS];
} Case;

static void run_case(const Case *c, int repeat) {
    if (c->shape == ATTENTION) {
        if (c->what[0] == 'f')
            attention_forward(att, lse, qkv, B, c->N, C, HEADS);
        else
            attention_backward(dqkv, datt, att, lse, qkv, B, c->N, C, HEADS);
        return;
    }
    if (c->shape == CLASSIFIER) {
        classifier(losses, c->what[0] == 'b' ? out : NULL, dwte, logits, x, wte, targets,
                   1.0 / c->N, c->N, C, V, VP, false);
        return;
    }
    size_t at = (size_t)(repeat % LAYERS) * WEIGHTS;
    for (int i = 0; i < c->shape; i++) at += (size_t)shapes[i].K * (size_t)shapes[i].O;
    int K = shapes[c->shape].K, O = shapes[c->shape].O;
    switch (c->what[0]) {
    case 'f':
        linear_forward(out, x, w + at, w, NULL, c->N, K, O);
        break;
    case 'd':
        linear_backward_input(out, dout, w + at, NULL, c->N, K, O);
        break;
    default:
        linear_backward_weight(dw + at, NULL, dout, x, c->N, K, O, true);
    }
}

/* Median share of the peak (of the same repetition), best time against best peak, which an undisturbed
 * machine would show, and median share of the micro-kernel's own speed, which shows the cost of blocking and
 * packing. */
static void bench(const char *title, Case *cases, int count, int repeats) {
    double peak = 0, flops = 0, median_time = 0, best_time = 0, tile_time = 0;
    for (int i = 0; i < count; i++) run_case(&cases[i], 0); // touches the memory
    for (int r = 0; r < repeats; r++) {
        for (int i = 0; i < count; i++) {
            double peak_now = peak_flops(), tile_now = tile_flops(), start = clock_seconds();
            run_case(&cases[i], r);
            cases[i].seconds[r] = clock_seconds() - start;
            cases[i].share[r] = cases[i].flops / cases[i].seconds[r] / peak_now;
            cases[i].tile_share[r] = cases[i].flops / cases[i].seconds[r] / tile_now;
            peak = peak_now > peak ? peak_now : peak;
        }
    }
    printf("%s: peak %.0f GFLOP/s\n  %-17s %12s %10s %10s %10s\n", title, peak / 1e9, "", "ms", "median",
           "best", "of kernel");
    for (int i = 0; i < count; i++) {
        Case *c = &cases[i];
        double share = median(c->share, repeats), seconds = median(c->seconds, repeats);
        double best = c->flops / c->seconds[0] / peak, tile = median(c->tile_share, repeats);
        printf("  %-8s %-8s %12.3f %8.1f %% %8.1f %% %8.1f %%\n", c->name, c->what, seconds * 1e3,
               100 * share, 100 * best, 100 * tile);
        flops += c->flops, median_time += c->flops / share, best_time += c->flops / best;
        tile_time += c->flops / tile;
    }
    printf("  together %31.1f %% %8.1f %% %8.1f %%\n", 100 * flops / median_time, 100 * flops / best_time,
           100 * flops / tile_time);
}

static void bench_linear(int N, int repeats) {
    static Case cases[SHAPES * 3];
    static const char *const whats[] = {"forward", "dx", "weight"};
    char title[64];
    for (int i = 0; i < SHAPES * 3; i++)
        cases[i] = (Case){.name = shapes[i / 3].name,
                          .what = whats[i % 3],
                          .N = N,
                          .shape = i / 3,
                          .flops = 2.0 * N * shapes[i / 3].K * shapes[i / 3].O};
    snprintf(title, sizeof title, "linear, %d rows", N);
    bench(title, cases, SHAPES * 3, repeats);
}

static void bench_classifier(int N, int repeats) {
    static Case cases[2];
    char title[64];
    cases[0] = (Case){
        .name = "head", .what = "losses", .N = N, .shape = CLASSIFIER, .flops = 2.0 * N * C * V};
    cases[1] = (Case){
        .name = "head", .what = "both", .N = N, .shape = CLASSIFIER, .flops = 6.0 * N * C * V};
    snprintf(title, sizeof title, "classifier, %d rows", N);
    bench(title, cases, 2, repeats);
}

/* Half of the products of all pairs count: the causal half. */
static void bench_attention(int T, int repeats) {
    static Case cases[2];
    double forward = 2.0 * B * T * T * C;
    char title[64];
    cases[0] =
        (Case){.name = "heads", .what = "forward", .N = T, .shape = ATTENTION, .flops = forward};
    cases[1] = (Case){
        .name = "heads", .what = "backward", .N = T, .shape = ATTENTION, .flops = 2.5 * forward};
    snprintf(title, sizeof title, "attention, %d rows of %d tokens", B, T);
    bench(title, cases, 2, repeats);
}

int main(int argc, char **argv) {
    int repeats = argc > 1 ? atoi(argv[1]) : 15;
    if (repeats < 1 || repeats > MOST_REPEATS) repeats = 15;
    w = filled((size_t)LAYERS * WEIGHTS);
    dw = filled((size_t)LAYERS * WEIGHTS);
    x = filled((size_t)ROWS * WIDEST);
    dout = filled((size_t)ROWS * WIDEST);
    out = filled((size_t)ROWS * WIDEST);
    wte = filled((size_t)VP * C);
    dwte = filled((size_t)VP * C);
    logits = filled((size_t)classifier_chunk(ROWS, VP) * VP);
    losses = filled(ROWS);
    qkv = filled((size_t)B * LONGEST * 3 * C);
    dqkv = filled((size_t)B * LONGEST * 3 * C);
    att = filled((size_t)B * LONGEST * C);
    datt = filled((size_t)B * LONGEST * C);
    lse = filled((size_t)B * LONGEST * HEADS);
    targets = memory_new(ROWS, sizeof *targets, "targets");
    for (int i = 0; i < ROWS; i++) targets[i] = i * 49 % V;
    printf("%d threads, %d bytes a vector\n", omp_get_max_threads(), VEC_BYTES);
    bench_linear(1, repeats);
    bench_linear(256, repeats);
    bench_linear(1024, (repeats + 2) / 3);
    bench_classifier(256, (repeats + 2) / 3);
    bench_attention(64, repeats);
    bench_attention(256, repeats);
    bench_attention(1024, (repeats + 2) / 3);
    return 0;
}

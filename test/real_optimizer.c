/* real_optimizer.c: norm and AdamW against the plain loops; the device's memory. */
#include "real_data.h"

#include "../llmc/base/memory.h"
#include "../llmc/base/rng.h"
#include "../llmc/optimizer/adamw.h"

static const double ULP = sizeof(real) == 4 ? 0x1p-23 : 0x1p-52; // of 1

static void fill(real *x, size_t n, uint64_t seed) {
    for (size_t i = 0; i < n; i++) x[i] = (real)(rng_uniform(seed, i, 0) - 0.5);
}

/* Spans of awkward sizes with padding between them: nothing may touch the padding. */
enum { TOTAL = 40000 };
static const Span spans[] = {{0, 1, true},        {16, 15, false},      {32, 4096, true},
                             {5000, 4097, false}, {10000, 12345, true}, {30000, 9999, false}};
enum { SPANS = sizeof spans / sizeof *spans };

static int span_of(size_t i) {
    for (int s = 0; s < SPANS; s++)
        if (i >= spans[s].offset && i < spans[s].offset + spans[s].count) return s;
    return -1;
}

static real w[TOTAL], m[TOTAL], v[TOTAL], g[TOTAL];
TEST(adamw_steps, "five steps with clipping, decay on matrices only, and padding left alone") {
    const AdamW o = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .clip = 1};
    fill(w, TOTAL, 1);
    memset(m, 0, sizeof m), memset(v, 0, sizeof v);
    double *W = doubles(w, TOTAL), *M = doubles(m, TOTAL), *V = doubles(v, TOTAL);
    for (int t = 1; t <= 5; t++) {
        double norm = 0.5 * t, lr = 0.01 / t; // clipped from the third step on
        fill(g, TOTAL, 10 + (uint64_t)t);
        double *G = doubles(g, TOTAL);
        AdamWScalars step = adamw_scalars(&o, t, lr, clip_scale(norm, o.clip));
        adamw_update(w, NULL, m, v, g, spans, SPANS, &step);
        plain_adamw_update(W, NULL, M, V, G, spans, SPANS, &step);
        free(G);
    }
    check_near("w", w, W, TOTAL, 6 * ULP); // padding too
    check_near("m", m, M, TOTAL, 3 * ULP);
    check_near("v", v, V, TOTAL, 3 * ULP);
    free(W), free(M), free(V);
}

TEST(adamw_decay_only,
     "no gradient, lr 0.1, decay 0.1: a matrix's 1 becomes 0.99, a bias's stays 1") {
    const AdamW o = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .clip = 1};
    for (int i = 0; i < TOTAL; i++) w[i] = 1, m[i] = v[i] = g[i] = 0;
    AdamWScalars step = adamw_scalars(&o, 1, 0.1, clip_scale(0, o.clip));
    adamw_update(w, NULL, m, v, g, spans, SPANS, &step);
    for (int i = 0; i < TOTAL; i++) {
        int s = span_of((size_t)i);
        CHECK_NEAR(w[i], s >= 0 && spans[s].decayed ? 0.99 : 1, ULP);
    }
}

TEST(adamw_nan, "a NaN gradient makes its own weight NaN and no other") {
    const AdamW o = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8};
    for (int i = 0; i < TOTAL; i++) w[i] = 1, m[i] = v[i] = 0, g[i] = 1;
    g[10007] = NAN;
    AdamWScalars step = adamw_scalars(&o, 1, 0.1, clip_scale(1, o.clip));
    adamw_update(w, NULL, m, v, g, spans, SPANS, &step);
    for (int i = 0; i < TOTAL; i++)
        CHECK(isnan(w[i]) == (i == 10007), "element %d is %g", i, (double)w[i]);
}

TEST(square_sums, "the sum of squares of every span, without the padding") {
    double sums[SPANS], want[SPANS];
    fill(g, TOTAL, 7);
    double *G = doubles(g, TOTAL);
    gradient_square_sums(sums, g, spans, SPANS);
    plain_gradient_square_sums(want, G, spans, SPANS);
    for (int s = 0; s < SPANS; s++) CHECK_NEAR(sums[s], want[s], 4e-14 * want[s]);
    free(G);
}

TEST(square_sums_nonfinite, "NaN and Inf anywhere reach their span's sum and no other's") {
    for (int s = 0; s < SPANS; s++)
        for (size_t k = 0; k < spans[s].count; k += 1 + spans[s].count / 3) {
            double sums[SPANS];
            fill(g, TOTAL, 8);
            g[spans[s].offset + k] = k % 2 ? -INFINITY : NAN;
            gradient_square_sums(sums, g, spans, SPANS);
            for (int i = 0; i < SPANS; i++) CHECK(isfinite(sums[i]) == (i != s), "span %d", i);
        }
}

TEST(square_sums_range, "squares that a float cannot hold are summed: 1e-30 and 1e30") {
    double sum;
    for (int i = 0; i < 100; i++) g[i] = (real)1e-30;
    gradient_square_sums(&sum, g, &(Span){0, 100, true}, 1);
    CHECK_NEAR(sum, 1e-58, 1e-64);
    for (int i = 0; i < 100; i++) g[i] = (real)1e30;
    gradient_square_sums(&sum, g, &(Span){0, 100, true}, 1);
    CHECK_NEAR(sum, 1e62, 1e56);
}

TEST(passes_threads, "norm and weights have the same bits with one thread and with three") {
#ifdef _OPENMP
    const AdamW o = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
    static real first[TOTAL];
    double sums[2][SPANS];
    fill(g, TOTAL, 9);
    for (int k = 0; k < 2; k++) {
        omp_set_num_threads(k ? 3 : 1);
        fill(w, TOTAL, 1), memset(m, 0, sizeof m), memset(v, 0, sizeof v);
        gradient_square_sums(sums[k], g, spans, SPANS);
        AdamWScalars step = adamw_scalars(&o, 1, 0.1, clip_scale(0, o.clip));
        adamw_update(w, NULL, m, v, g, spans, SPANS, &step);
        if (k == 0) memcpy(first, w, sizeof w);
    }
    CHECK(memcmp(first, w, sizeof w) == 0 && memcmp(sums[0], sums[1], sizeof sums[0]) == 0);
#else
    SKIP("built without OpenMP");
#endif
}

TEST(zero, "gradient_zero clears exactly the elements it is given") {
    const size_t sizes[] = {0, 1, 4095, 4096, 4097, 12288, TOTAL - 2};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        for (int i = 0; i < TOTAL; i++) g[i] = NAN;
        gradient_zero(g + 1, sizes[k]);
        for (size_t i = 0; i < TOTAL; i++)
            CHECK(isnan(g[i]) == (i < 1 || i > sizes[k]), "element %zu", i);
    }
}

TEST(device_memory, "device memory is zeroed and aligned; what is written is read back") {
    const float host[5] = {1.5f, -0.0f, 0x1p-149f, INFINITY, 3e38f};
    const int32_t ids[3] = {0, -1, 50256};
    backend_open(0, 1, 2);
    CHECK(strstr(backend_name(), sizeof(real) == 4 ? "float32" : "float64"), "%s", backend_name());
    for (int kind = 0; kind < ELEMENT_KINDS; kind++) {
        size_t bytes = 100 * element_size((ElementKind)kind);
        char *device = device_alloc(bytes, "a test");
        CHECK((uintptr_t)device % 256 == 0);
        for (size_t i = 0; i < bytes; i++) CHECK(device[i] == 0);
        if (kind == OF_ID) {
            write_ids(device_at(device, OF_ID, 2), ids, 3);
            CHECK(((Id *)device)[1] == 0 && memcmp((Id *)device + 2, ids, sizeof ids) == 0);
        } else {
            float back[5];
            double stats[5];
            void *at = device_at(device, (ElementKind)kind, 3);
            write_floats(at, (ElementKind)kind, host, 5);
            read_floats(back, at, (ElementKind)kind, 5);
            read_stats(stats, at, 5);
            CHECK(memcmp(back, host, sizeof host) == 0);
            for (int i = 0; i < 5; i++) CHECK(stats[i] == (double)host[i]);
        }
        device_free(device, bytes);
    }
}

int main(int argc, char **argv) { return test_main(argc, argv); }

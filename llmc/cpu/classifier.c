/* classifier.c: the output matrix (tied to the token embedding), softmax and cross-entropy, in
 * chunks of rows: logits, loss and the loss's gradient of a chunk are done before the next chunk's
 * logits overwrite them. Each row is computed independently and gemm() treats all rows alike, so losses and dx do
 * not depend on the chunk. Read gemm.h first. */
#include "../base/arithmetic.h"
#include "../base/elementary.h"
#include "gemm.h"
#include "vec.h"

/* 256 rows let the products run at full speed; with a small vocabulary more fit the same scratch (a
 * million logits). The rows are shared out evenly, in whole tiles, over the chunks they need. */
int classifier_chunk(int N, int Vp) {
    enum { LEAST = 256, LOGITS = 1 << 20, TILE = 8 };
    int most = LOGITS / Vp > LEAST ? LOGITS / Vp : LEAST;
    int chunks = (N - 1) / most + 1;
    int rows = ((N - 1) / chunks / TILE + 1) * TILE;
    return int_min(rows, N);
}

/* row = exp(row - max); returns the sum. Blocks are added in double: a long float sum would not be precise
 * enough when the loss is small. */
static double exp_row(real *row, real max, size_t V) {
    enum { BLOCK = 32 * LANES };
    double sum = 0;
    for (size_t first = 0; first < V; first += BLOCK) {
        real *block = row + first;
        size_t n = V - first < BLOCK ? V - first : BLOCK;
        for (size_t i = 0; i < n; i += VEC)
            vec_store_n(block + i, vec_exp(vec_load_n(block + i, n - i) - max), n - i);
        sum += (double)vec_row_sum(block, n);
    }
    return sum;
}

static real largest(const real *row, size_t V) {
    vec max = vec_set1(row[0]);
    size_t i = 0;
    for (; i + VEC <= V; i += VEC) max = vec_larger(vec_load(row + i), max);
    real most = vec_max(max);
    for (; i < V; i++) most = row[i] > most ? row[i] : most;
    return most;
}

/* One row: logits become scale * (softmax - one-hot of the target), the gradient of scale * loss;
 * returns the loss. -log softmax = log sum exp(l - max) - (l_target - max); no exp overflows, and a
 * logit that is NaN makes the sum NaN. */
static RowStat finish_row(real *row, Id target, double scale, size_t V, bool gradient) {
    if (target < 0) {
        if (gradient) memset(row, 0, V * sizeof(real));
        return 0;
    }
    real max = largest(row, V);
    double of_target = (double)row[target] - (double)max;
    double sum = exp_row(row, max, V);
    double p = (double)row[target] / sum;
    if (gradient) {
        const real factor = (real)(scale / sum);
        for (size_t i = 0; i < V; i += VEC)
            vec_store_n(row + i, vec_load_n(row + i, V - i) * factor, V - i);
        row[target] = (real)((p - 1) * scale);
    }
    return (RowStat)(elementary_log(sum) - of_target);
}

/* dx = dlogits @ wte and dwte (+)= dlogits.T @ x, over the V tokens that there are. */
static void backward(Act *dx, Grad *dwte, const Act *dlogits, const Act *x, const Param *wte,
                     size_t rows, size_t C, size_t V, size_t Vp, bool accumulate) {
    gemm(&(Product){.rows = rows,
                    .columns = C,
                    .depth = V,
                    .a = {.at = dlogits, .row = Vp, .column = 1},
                    .b = {.at = wte, .row = C, .column = 1},
                    .c = dx,
                    .c_stride = C});
    gemm(&(Product){.rows = V,
                    .columns = C,
                    .depth = rows,
                    .a = {.at = dlogits, .row = 1, .column = Vp},
                    .b = {.at = x, .row = C, .column = 1},
                    .c = dwte,
                    .c_stride = C,
                    .start = accumulate ? dwte : NULL});
}

void classifier(RowStat *losses, Act *dx, Grad *dwte, Act *logits, const Act *x, const Param *wte,
                const Id *targets, double scale, int N, int C, int V, int Vp, bool accumulate) {
    int chunk = classifier_chunk(N, Vp);
    for (int first = 0; first < N; first += chunk) {
        int rows = N - first < chunk ? N - first : chunk;
        const Act *chunk_x = x + (size_t)first * (size_t)C;
        gemm(&(Product){.rows = (size_t)rows,
                        .columns = (size_t)V,
                        .depth = (size_t)C,
                        .a = {.at = chunk_x, .row = (size_t)C, .column = 1},
                        .b = {.at = wte, .row = 1, .column = (size_t)C},
                        .c = logits,
                        .c_stride = (size_t)Vp});
        PARALLEL_FOR_IF((size_t)rows * (size_t)V > 1 << 12)
        for (int n = 0; n < rows; n++)
            losses[first + n] = finish_row(logits + (size_t)n * (size_t)Vp, targets[first + n],
                                           scale, (size_t)V, dx != NULL);
        if (dx)
            backward(dx + (size_t)first * (size_t)C, dwte, logits, chunk_x, wte, (size_t)rows,
                     (size_t)C, (size_t)V, (size_t)Vp, accumulate || first > 0);
    }
    if (dx && !accumulate)
        memset(dwte + (size_t)V * (size_t)C, 0, (size_t)(Vp - V) * (size_t)C * sizeof(Grad));
}

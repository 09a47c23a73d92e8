/* layernorm.c: LayerNorm (Ba et al. 2016), every row on its own, and its gradient.
 *
 * The variance is that of x - mean, in a pass after the mean's, so that a large mean costs no digits.
 * Next: attention_tiles.h. */
#include "../base/memory.h"
#include "scratch.h"
#include "vec.h"

/* out = x - mean, C elements. */
static void subtract_mean(real *out, const real *x, real mean, size_t C) {
    for (size_t c = 0; c < C; c += VEC)
        vec_store_n(out + c, vec_load_n(x + c, C - c) - mean, C - c);
}

/* out = (x - mean) * rstd * w + b, with mean and rstd = 1 / sqrt(variance + eps) of this row of C. */
static void row_forward(real *out, real *mean, real *rstd, const real *x, const real *w,
                        const real *b, size_t C) {
    *mean = vec_row_sum(x, C) / (real)C;
    subtract_mean(out, x, *mean, C);
    *mean += vec_row_sum(out, C) / (real)C; // what the rounding of a large sum has left
    subtract_mean(out, x, *mean, C);
    *rstd = (real)(1 / sqrt(vec_row_dot(out, out, C) / (real)C + LAYERNORM_EPS));
    for (size_t c = 0; c < C; c += VEC) {
        size_t n = C - c;
        vec normed = vec_load_n(out + c, n) * *rstd;
        vec_store_n(out + c, normed * vec_load_n(w + c, n) + vec_load_n(b + c, n), n);
    }
}

void layernorm_forward(real *out, real *mean, real *rstd, const real *x, const real *w,
                       const real *b, int N, int C) {
    PARALLEL_FOR
    for (int n = 0; n < N; n++) {
        size_t at = (size_t)n * (size_t)C;
        row_forward(out + at, mean + n, rstd + n, x + at, w, b, (size_t)C);
    }
}

/* Forward:  z = (x - mean) * rstd,  out = z * w + b
 * Backward: db += dout,  dw += dout * z,  and with dz = dout * w
 *           dx = dresidual + rstd * (dz - average(dz) - z * average(dz * z)):
 * the two averages come from differentiating mean and rstd, which also depend on x. dresidual may be NULL. */
static void row_backward(real *dx, real *dw, real *db, const real *dout, const real *dresidual,
                         const real *x, real mean, real rstd, const real *w, size_t C) {
    Lanes sum_dz = {{{0}}}, sum_dz_z = {{{0}}};
    for (size_t first = 0; first < C; first += LANES)
        UNROLL for (size_t p = 0; p < LANE_VECS; p++) {
            size_t c = first + p * VEC, n = vec_left(C, c);
            vec g = vec_load_n(dout + c, n), z = (vec_load_n(x + c, n) - mean) * rstd;
            vec dz = g * vec_load_n(w + c, n);
            vec_store_n(db + c, vec_load_n(db + c, n) + g, n);
            vec_store_n(dw + c, vec_load_n(dw + c, n) + g * z, n);
            sum_dz.part[p] += dz;
            sum_dz_z.part[p] = vec_fma(dz, z, sum_dz_z.part[p]); // beyond the row dz is 0
        }
    const real average_dz = lanes_sum(sum_dz) / (real)C;
    const real average_dz_z = lanes_sum(sum_dz_z) / (real)C;
    for (size_t c = 0; c < C; c += VEC) {
        size_t n = C - c;
        vec z = (vec_load_n(x + c, n) - mean) * rstd;
        vec dz = vec_load_n(dout + c, n) * vec_load_n(w + c, n);
        vec residual = dresidual ? vec_load_n(dresidual + c, n) : (vec){0};
        vec_store_n(dx + c, residual + rstd * (dz - average_dz - z * average_dz_z), n);
    }
}

/* to (+)= the sum over `parts` of partial[part * stride], in that order; n elements each. */
static void add_partials(real *to, const real *partial, size_t stride, int parts, size_t n,
                         bool accumulate) {
    for (size_t c = 0; c < n; c += VEC) {
        vec sum = accumulate ? vec_load_n(to + c, n - c) : (vec){0};
        for (int part = 0; part < parts; part++)
            sum += vec_load_n(partial + (size_t)part * stride + c, n - c);
        vec_store_n(to + c, sum, n - c);
    }
}

/* dw and db are sums over rows: each ROWS rows, which one thread takes, have sums of their own, and
 * these are then added in order. So the shape alone fixes the order, and x is read once. */
void layernorm_backward(real *dx, real *dw, real *db, const real *dout, const real *dresidual,
                        const real *x, const real *mean, const real *rstd, const real *w, int N,
                        int C, bool accumulate) {
    enum { ROWS = 32, COLUMNS = 64 };
    const int parts = N / ROWS + (N % ROWS != 0);
    const size_t width = (size_t)C;
    real *partial = scratch_reserve((size_t)parts, size_mul(2, width, "LayerNorm"), "LayerNorm");
    PARALLEL_FOR
    for (int part = 0; part < parts; part++) {
        real *dw_part = partial + (size_t)part * 2 * width, *db_part = dw_part + width;
        memset(dw_part, 0, 2 * width * sizeof(real));
        for (int n = part * ROWS; n < N && n < (part + 1) * ROWS; n++) {
            size_t at = (size_t)n * width;
            row_backward(dx + at, dw_part, db_part, dout + at, dresidual ? dresidual + at : NULL,
                         x + at, mean[n], rstd[n], w, width);
        }
    }
    PARALLEL_FOR
    for (int c = 0; c < C; c += COLUMNS) {
        size_t n = C - c < COLUMNS ? (size_t)(C - c) : COLUMNS;
        add_partials(dw + c, partial + c, 2 * width, parts, n, accumulate);
        add_partials(db + c, partial + width + c, 2 * width, parts, n, accumulate);
    }
}

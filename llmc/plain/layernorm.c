/* layernorm.c: LayerNorm (Ba et al. 2016) brings every row x of C numbers to mean 0 and variance 1, then
 * scales and shifts each channel by the learned w and b:
 *     z = (x - mean) * rstd,  rstd = 1 / sqrt(variance + eps),  out = z * w + b
 * Next: linear.c. */
#include "plain.h"

#include <math.h>

/* The second loop is the average of x - mean: 0, except for the rounding of a large sum, which it corrects. */
static double row_mean(const real *x, int C) { // x (C)
    double sum = 0, rest = 0;
    for (int c = 0; c < C; c++) sum += x[c];
    for (int c = 0; c < C; c++) rest += x[c] - sum / C;
    return sum / C + rest / C;
}

static double row_variance(const real *x, double mean, int C) { // x (C)
    double sum = 0;
    for (int c = 0; c < C; c++) sum += (x[c] - mean) * (x[c] - mean);
    return sum / C;
}

void layernorm_forward(real *out,      // (N, C)
                       real *mean,     // (N) kept for backward
                       real *rstd,     // (N) likewise
                       const real *x,  // (N, C)
                       const real *w,  // (C)
                       const real *b,  // (C)
                       int N, int C) { // N = B*T rows, one for each token
    PARALLEL_FOR
    for (int n = 0; n < N; n++) {
        const real *x_n = x + at(n, 0, C); // (C)
        real *out_n = out + at(n, 0, C);   // (C)
        double m = row_mean(x_n, C);
        double r = 1 / sqrt(row_variance(x_n, m, C) + LAYERNORM_EPS);
        for (int c = 0; c < C; c++) out_n[c] = (real)((x_n[c] - m) * r * w[c] + b[c]);
        mean[n] = (real)m;
        rstd[n] = (real)r;
    }
}

/* dx (C) of one row. x[c] reaches out in three ways: directly, through the mean and through rstd. With
 * dz = dout * w the three parts are, in the order of the formula below, each times rstd:
 *     dz[c],   -(average of dz),   -z[c] * (average of dz * z)
 * dresidual (C) or NULL: the gradient that arrives at x on the residual path, which is added. */
static void row_backward(real *dx, const real *dout, const real *dresidual, const real *x,
                         double mean, double rstd, const real *w, int C) {
    double sum_dz = 0, sum_dz_z = 0;
    for (int c = 0; c < C; c++) {
        double z = (x[c] - mean) * rstd;
        double dz = (double)dout[c] * w[c]; // forward: out = z * w + b
        sum_dz += dz;
        sum_dz_z += dz * z;
    }
    for (int c = 0; c < C; c++) {
        double z = (x[c] - mean) * rstd;
        double dz = (double)dout[c] * w[c];
        double residual = dresidual ? dresidual[c] : 0;
        // forward: z = (x - mean) * rstd
        dx[c] = (real)(residual + rstd * (dz - sum_dz / C - z * sum_dz_z / C));
    }
}

void layernorm_backward(real *dx,              // (N, C) may be dresidual
                        real *dw, real *db,    // (C), (C)
                        const real *dout,      // (N, C)
                        const real *dresidual, // (N, C) or NULL
                        const real *x,         // (N, C)
                        const real *mean,      // (N)
                        const real *rstd,      // (N)
                        const real *w,         // (C)
                        int N, int C, bool accumulate) {
    // forward: out[n,c] = z[n,c] * w[c] + b[c], so dw[c] and db[c] are sums over all rows
    PARALLEL_FOR
    for (int c = 0; c < C; c++) {
        double sum_w = accumulate ? dw[c] : 0, sum_b = accumulate ? db[c] : 0;
        for (int n = 0; n < N; n++) {
            double z = ((double)x[at(n, c, C)] - mean[n]) * rstd[n];
            sum_w += dout[at(n, c, C)] * z;
            sum_b += dout[at(n, c, C)];
        }
        dw[c] = (real)sum_w;
        db[c] = (real)sum_b;
    }
    PARALLEL_FOR
    for (int n = 0; n < N; n++) {
        size_t row = at(n, 0, C);
        row_backward(dx + row, dout + row, dresidual ? dresidual + row : NULL, x + row, mean[n],
                     rstd[n], w, C);
    }
}

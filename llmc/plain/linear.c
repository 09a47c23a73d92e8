/* linear.c: a linear layer, out = x @ w.T + bias, and the same layer followed by GELU. Each output is a
 * dot product of an input row and a row of weights. Nearly all arithmetic of GPT-2 is in this file.
 * Next: attention.c. */
#include "plain.h"

#include <math.h>

/* GELU in the tanh form of Hendrycks and Gimpel 2016 (GPT-2's "gelu_new"):
 *     gelu(x) = x/2 * (1 + tanh(u)),  u = sqrt(2/pi) * (x + 0.044715 x^3) */
static double gelu(double x) {
    double u = sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    return 0.5 * x * (1 + tanh(u));
}

/* d gelu(x) / dx, by the product rule; the derivative of tanh(u) is (1 - tanh(u)^2) * du/dx. */
static double gelu_derivative(double x) {
    double u = sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    double du = sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
    double t = tanh(u);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * du;
}

void linear_forward(real *out,            // (N, O) may be residual
                    const real *x,        // (N, K)
                    const real *w,        // (O, K)
                    const real *bias,     // (O) or NULL
                    const real *residual, // (N, O) or NULL: added to the result
                    int N, int K, int O) {
    PARALLEL_FOR
    for (int n = 0; n < N; n++)
        for (int o = 0; o < O; o++) {
            double sum = bias ? bias[o] : 0;
            for (int k = 0; k < K; k++) sum += (double)x[at(n, k, K)] * w[at(o, k, K)];
            if (residual) sum += residual[at(n, o, O)];
            out[at(n, o, O)] = (real)sum;
        }
}

void linear_gelu_forward(real *out,        // (N, O) gelu(pre)
                         real *pre,        // (N, O) x @ w.T + bias, kept for backward
                         const real *x,    // (N, K)
                         const real *w,    // (O, K)
                         const real *bias, // (O) or NULL
                         int N, int K, int O) {
    linear_forward(pre, x, w, bias, NULL, N, K, O);
    PARALLEL_FOR
    for (int n = 0; n < N; n++)
        for (int o = 0; o < O; o++) out[at(n, o, O)] = (real)gelu(pre[at(n, o, O)]);
}

void linear_backward_input(real *dx,         // (N, K)
                           const real *dout, // (N, O)
                           const real *w,    // (O, K)
                           const real *pre,  // (N, K) or NULL: x was gelu(pre), and dx becomes dpre
                           int N, int K, int O) {
    PARALLEL_FOR
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++) {
            double sum = 0;
            // forward: out[n,o] += x[n,k] * w[o,k], for every o
            for (int o = 0; o < O; o++) sum += (double)dout[at(n, o, O)] * w[at(o, k, K)];
            // forward: x[n,k] = gelu(pre[n,k])
            if (pre) sum *= gelu_derivative(pre[at(n, k, K)]);
            dx[at(n, k, K)] = (real)sum;
        }
}

void linear_backward_weight(real *dw,         // (O, K)
                            real *dbias,      // (O) or NULL
                            const real *dout, // (N, O)
                            const real *x,    // (N, K)
                            int N, int K, int O, bool accumulate) {
    PARALLEL_FOR
    for (int o = 0; o < O; o++) {
        for (int k = 0; k < K; k++) {
            double sum = accumulate ? dw[at(o, k, K)] : 0;
            // forward: out[n,o] += x[n,k] * w[o,k], for every n
            for (int n = 0; n < N; n++) sum += (double)dout[at(n, o, O)] * x[at(n, k, K)];
            dw[at(o, k, K)] = (real)sum;
        }
        if (!dbias) continue;
        double sum = accumulate ? dbias[o] : 0;
        // forward: out[n,o] += bias[o], for every n
        for (int n = 0; n < N; n++) sum += dout[at(n, o, O)];
        dbias[o] = (real)sum;
    }
}

/* linear.c: linear layers, out = x @ w.T + bias, forward and backward: three products that differ
 * in what is transposed, hence only in the strides given to gemm(). Next: gemm.h. */
#include "gemm.h"
#include "vec.h"

/* A matrix as it lies in memory, row by row. */
static Matrix matrix(const real *at, int columns) {
    return (Matrix){.at = at, .row = (size_t)columns, .column = 1};
}

/* The same numbers with rows and columns exchanged. Nothing is moved: packing reads along the other stride. */
static Matrix transposed(const real *at, int columns) {
    return (Matrix){.at = at, .row = 1, .column = (size_t)columns};
}

/* The product begins at `residual` instead of 0, so that the addition costs no pass of its own. */
void linear_forward(Act *out, const Act *x, const Param *w, const Param *bias, const Act *residual,
                    int N, int K, int O) {
    gemm(&(Product){.rows = (size_t)N,
                    .columns = (size_t)O,
                    .depth = (size_t)K,
                    .a = matrix(x, K),
                    .b = transposed(w, K),
                    .c = out,
                    .c_stride = (size_t)O,
                    .start = residual,
                    .bias = bias});
}

/* Bias and GELU are applied to each tile while it is in L1: out = gelu(pre), and pre stays for backward. */
void linear_gelu_forward(Act *out, Act *pre, const Act *x, const Param *w, const Param *bias, int N,
                         int K, int O) {
    gemm(&(Product){.rows = (size_t)N,
                    .columns = (size_t)O,
                    .depth = (size_t)K,
                    .a = matrix(x, K),
                    .b = transposed(w, K),
                    .c = pre,
                    .c_stride = (size_t)O,
                    .bias = bias,
                    .gelu = out});
}

// out = x @ w.T: dx = dout @ w
// With `pre`, each tile of dx is also multiplied by GELU's gradient there, as long as it is in L1.
void linear_backward_input(Act *dx, const Act *dout, const Param *w, const Act *pre, int N, int K,
                           int O) {
    gemm(&(Product){.rows = (size_t)N,
                    .columns = (size_t)K,
                    .depth = (size_t)O,
                    .a = matrix(dout, O),
                    .b = matrix(w, K),
                    .c = dx,
                    .c_stride = (size_t)K,
                    .gelu_input = pre});
}

/* dbias (+)= the sum over rows, in order; each task takes the columns of a cache line or four. */
static void sum_rows(Grad *dbias, const Act *dout, int N, int O, bool accumulate) {
    enum { COLUMNS = 4 * VEC };
    PARALLEL_FOR_IF((size_t)N * (size_t)O > 1 << 15)
    for (int first = 0; first < O; first += COLUMNS) {
        vec sum[4] = {{0}};
        size_t columns = (size_t)(O - first < COLUMNS ? O - first : COLUMNS);
        for (size_t n = 0; n < (size_t)N; n++)
            for (size_t j = 0; j < columns; j += VEC)
                sum[j / VEC] += vec_load_n(dout + n * (size_t)O + (size_t)first + j, columns - j);
        for (size_t j = 0; j < columns; j += VEC) {
            Grad *to = dbias + first + j;
            vec before = accumulate ? vec_load_n(to, columns - j) : vec_set1(0);
            vec_store_n(to, before + sum[j / VEC], columns - j);
        }
    }
}

// out[n] = x[n] @ w.T + bias: dw = sum over n of the outer products dout[n], x[n]
void linear_backward_weight(Grad *dw, Grad *dbias, const Act *dout, const Act *x, int N, int K,
                            int O, bool accumulate) {
    gemm(&(Product){.rows = (size_t)O,
                    .columns = (size_t)K,
                    .depth = (size_t)N,
                    .a = transposed(dout, O),
                    .b = matrix(x, K),
                    .c = dw,
                    .c_stride = (size_t)K,
                    .start = accumulate ? dw : NULL});
    if (dbias) sum_rows(dbias, dout, N, O, accumulate);
}

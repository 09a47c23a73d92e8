/* real_linear.c: the linear layers against plain loops in double, in float and in double, at sizes
 * around every block of llmc/cpu/gemm.c: tiles of 4 and 8 rows, vectors of 2 to 16 columns, panels
 * of up to 48, depth 256 and 1024, 512 rows. */
#include "../llmc/cpu/cpu.h"
#include "real_data.h"
#include "test.h"

static const int sizes[] = {1, 2, 3, 7, 17, 33, 65, 130};
enum { SIZES = sizeof sizes / sizeof *sizes };

typedef struct {
    int N, K, O;
} Shape;

static const Shape large[] = {
    {9, 257, 49}, {13, 1100, 50}, {530, 20, 97}, {70, 530, 8}, {6, 9, 1030}};
enum { LARGE = sizeof large / sizeof *large, SHAPES = SIZES * SIZES * SIZES + LARGE };

static Shape shape(int i) {
    if (i < LARGE) return large[i];
    i -= LARGE;
    return (Shape){sizes[i % SIZES], sizes[i / SIZES % SIZES], sizes[i / SIZES / SIZES]};
}

static double gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x) {
    double t = tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

/* A sum in double, with the sum of magnitudes that its rounding error is measured by. */
typedef struct {
    double value, size;
} Sum;

static Sum plus(Sum sum, double term) { return (Sum){sum.value + term, sum.size + fabs(term)}; }

static Sum dot(const real *a, int a_step, const real *b, int b_step, int count) {
    Sum sum = {0, 0};
    for (int i = 0; i < count; i++) sum = plus(sum, (double)a[i * a_step] * (double)b[i * b_step]);
    return sum;
}

static void check_sum(const char *what, Shape s, int i, real got, Sum want) {
    double tolerance = 8 * REAL_EPSILON * want.size, error = fabs((double)got - want.value);
    CHECK(error <= tolerance, "%s, N %d, K %d, O %d, element %d: got %.9g, wanted %.9g", what, s.N,
          s.K, s.O, i, (double)got, want.value);
}

static void check_forward(Shape s, bool with_bias, bool with_residual, bool in_place) {
    Data x = data_new(s.N * s.K, 1), w = data_new(s.O * s.K, 2), bias = data_new(s.O, 3);
    Data residual = data_new(s.N * s.O, 4), out = data_new(s.N * s.O, 4);
    linear_forward(out.at, x.at, w.at, with_bias ? bias.at : NULL,
                   !with_residual ? NULL
                   : in_place     ? out.at
                                  : residual.at,
                   s.N, s.K, s.O);
    for (int i = 0; i < s.N * s.O; i++) {
        Sum want = dot(x.at + i / s.O * s.K, 1, w.at + i % s.O * s.K, 1, s.K);
        if (with_bias) want = plus(want, (double)bias.at[i % s.O]);
        if (with_residual) want = plus(want, (double)residual.at[i]);
        check_sum("forward", s, i, out.at[i], want);
    }
    data_free(&x), data_free(&w), data_free(&bias), data_free(&residual), data_free(&out);
}

TEST(forward, "out = x w.T, with and without bias and residual, also in place") {
    for (int i = 0; i < SHAPES; i++)
        for (int options = 0; options < 6; options++)
            check_forward(shape(i), options % 2, options >= 2, options >= 4);
}

TEST(residual_in_place, "adding to a residual in place gives the bits of adding to a copy") {
    enum { N = 35, K = 600, O = 70 };
    Data x = data_new(N * K, 1), w = data_new(O * K, 2), bias = data_new(O, 3);
    Data residual = data_new(N * O, 4), out = data_new(N * O, 5);
    linear_forward(out.at, x.at, w.at, bias.at, residual.at, N, K, O);
    linear_forward(residual.at, x.at, w.at, bias.at, residual.at, N, K, O);
    CHECK(memcmp(out.at, residual.at, sizeof(real) * N * O) == 0);
    data_free(&x), data_free(&w), data_free(&bias), data_free(&residual), data_free(&out);
}

TEST(gelu_forward, "pre = x w.T + bias, out = gelu(pre)") {
    for (int i = 0; i < SHAPES; i++) {
        Shape s = shape(i);
        Data x = data_new(s.N * s.K, 1), w = data_new(s.O * s.K, 2), bias = data_new(s.O, 3);
        Data pre = data_new(s.N * s.O, 4), out = data_new(s.N * s.O, 5);
        linear_gelu_forward(out.at, pre.at, x.at, w.at, bias.at, s.N, s.K, s.O);
        for (int j = 0; j < s.N * s.O; j++) {
            Sum want = dot(x.at + j / s.O * s.K, 1, w.at + j % s.O * s.K, 1, s.K);
            check_sum("pre", s, j, pre.at[j], plus(want, (double)bias.at[j % s.O]));
            double from = (double)pre.at[j];
            CHECK_NEAR((double)out.at[j], gelu(from), 16 * REAL_EPSILON * fabs(from));
        }
        data_free(&x), data_free(&w), data_free(&bias), data_free(&pre), data_free(&out);
    }
}

static void check_backward_input(Shape s, bool with_gelu) {
    Data dout = data_new(s.N * s.O, 1), w = data_new(s.O * s.K, 2), pre = data_new(s.N * s.K, 3);
    Data dx = data_new(s.N * s.K, 4);
    linear_backward_input(dx.at, dout.at, w.at, with_gelu ? pre.at : NULL, s.N, s.K, s.O);
    for (int i = 0; i < s.N * s.K; i++) {
        Sum want = dot(dout.at + i / s.K * s.O, 1, w.at + i % s.K, s.K, s.O);
        if (with_gelu) want.value *= gelu_slope((double)pre.at[i]), want.size *= 4;
        check_sum("dx", s, i, dx.at[i], want);
    }
    data_free(&dout), data_free(&w), data_free(&pre), data_free(&dx);
}

TEST(backward_input, "dx = dout w, times gelu'(pre) where asked for") {
    for (int i = 0; i < SHAPES; i++)
        for (int with_gelu = 0; with_gelu < 2; with_gelu++)
            check_backward_input(shape(i), with_gelu);
}

static void check_backward_weight(Shape s, bool with_bias, bool accumulate) {
    Data dout = data_new(s.N * s.O, 1), x = data_new(s.N * s.K, 2);
    Data dw = data_new(s.O * s.K, 3), before_w = data_new(s.O * s.K, 3);
    Data dbias = data_new(s.O, 4), before_b = data_new(s.O, 4);
    linear_backward_weight(dw.at, with_bias ? dbias.at : NULL, dout.at, x.at, s.N, s.K, s.O,
                           accumulate);
    for (int i = 0; i < s.O * s.K; i++) {
        Sum want = dot(dout.at + i / s.K, s.O, x.at + i % s.K, s.K, s.N);
        if (accumulate) want = plus(want, (double)before_w.at[i]);
        check_sum("dw", s, i, dw.at[i], want);
    }
    for (int i = 0; i < s.O; i++) {
        Sum want = {0, 0};
        for (int n = 0; with_bias && n < s.N; n++) want = plus(want, (double)dout.at[n * s.O + i]);
        if (accumulate || !with_bias) want = plus(want, (double)before_b.at[i]);
        check_sum("dbias", s, i, dbias.at[i], want);
    }
    data_free(&dout), data_free(&x), data_free(&dw), data_free(&before_w);
    data_free(&dbias), data_free(&before_b);
}

TEST(backward_weight, "dw (+)= dout.T x and dbias (+)= column sums; NULL leaves dbias alone") {
    for (int i = 0; i < SHAPES; i++)
        for (int options = 0; options < 4; options++)
            check_backward_weight(shape(i), options % 2, options >= 2);
}

/* All four operations on one set of data; the results, one after the other. */
enum { RN = 130, RK = 300, RO = 100, RESULTS = 3 * RN * RO + RN * RK + RO * RK + RO };

static void run_all(real *results, int N) {
    Data x = data_new(RN * RK, 1), w = data_new(RO * RK, 2), bias = data_new(RO, 3);
    Data dout = data_new(RN * RO, 4), pre = data_new(RN * RK, 5);
    real *forward = results, *pre_out = forward + RN * RO, *gelu_out = pre_out + RN * RO;
    real *dx = gelu_out + RN * RO, *dw = dx + RN * RK, *dbias = dw + RO * RK;
    for (int n = 0; n < RN; n += N) {
        int rows = RN - n < N ? RN - n : N;
        const real *x_n = x.at + n * RK, *dout_n = dout.at + n * RO;
        linear_forward(forward + n * RO, x_n, w.at, bias.at, dout_n, rows, RK, RO);
        linear_gelu_forward(gelu_out + n * RO, pre_out + n * RO, x_n, w.at, bias.at, rows, RK, RO);
        linear_backward_input(dx + n * RK, dout_n, w.at, pre.at + n * RK, rows, RK, RO);
    }
    linear_backward_weight(dw, dbias, dout.at, x.at, RN, RK, RO, false);
    data_free(&x), data_free(&w), data_free(&bias), data_free(&dout), data_free(&pre);
}

TEST(rows_alone, "a row's result has the same bits alone as in any batch") {
    Data whole = data_new(RESULTS, 6), parts = data_new(RESULTS, 7);
    run_all(whole.at, RN);
    static const int batches[] = {1, 2, 3, 4, 8, 11, 64};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        run_all(parts.at, batches[i]);
        CHECK(memcmp(whole.at, parts.at, RESULTS * sizeof(real)) == 0, "batches of %d", batches[i]);
    }
    data_free(&whole), data_free(&parts);
}

TEST(threads, "1, 2 and 3 threads give the same bits") {
#ifdef _OPENMP
    int threads = omp_get_max_threads();
    Data one = data_new(RESULTS, 6), more = data_new(RESULTS, 7);
    omp_set_num_threads(1);
    run_all(one.at, RN);
    static const int counts[] = {2, 3};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        omp_set_num_threads(counts[i]);
        run_all(more.at, RN);
        CHECK(memcmp(one.at, more.at, RESULTS * sizeof(real)) == 0, "%d threads", counts[i]);
    }
    omp_set_num_threads(threads);
    data_free(&one), data_free(&more);
#else
    SKIP("built without OpenMP");
#endif
}

TEST(not_finite, "NaN and Inf reach every sum they are in, also times 0, and no other") {
    enum { N = 20, K = 40, O = 60, BAD = 13 };
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    Data x = data_new(N * K, 1), w = data_new(O * K, 2), out = data_new(N * O, 3);
    Data dx = data_new(N * K, 4), dw = data_new(O * K, 5), dbias = data_new(O, 6);
    Data dout = data_new(N * O, 7);
    for (int o = 0; o < O; o++) w.at[o * K + 5] = 0;
    for (int n = 0; n < N; n++) x.at[n * K + 7] = 0;
    for (int b = 0; b < 3; b++) {
        x.at[BAD * K + 5] = (real)bad[b];
        linear_forward(out.at, x.at, w.at, NULL, NULL, N, K, O);
        for (int i = 0; i < N * O; i++)
            CHECK(isnan(out.at[i]) == (i / O == BAD) && (i / O == BAD || isfinite(out.at[i])));
        x.at[BAD * K + 5] = 1;
        dout.at[BAD * O + 9] = (real)bad[b];
        linear_backward_input(dx.at, dout.at, w.at, NULL, N, K, O);
        linear_backward_weight(dw.at, dbias.at, dout.at, x.at, N, K, O, false);
        for (int i = 0; i < N * K; i++) CHECK(isfinite(dx.at[i]) == (i / K != BAD));
        for (int i = 0; i < O * K; i++) CHECK(isfinite(dw.at[i]) == (i / K != 9));
        for (int i = 0; i < O; i++) CHECK(isfinite(dbias.at[i]) == (i != 9));
        CHECK(isnan(dx.at[BAD * K + 5]) && isnan(dw.at[9 * K + 7]), "0 times %f", bad[b]);
        dout.at[BAD * O + 9] = 1;
    }
    data_free(&x), data_free(&w), data_free(&out), data_free(&dx), data_free(&dw);
    data_free(&dbias), data_free(&dout);
}

int main(int argc, char **argv) { return test_main(argc, argv); }

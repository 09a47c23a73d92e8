/* real_linear.c: the linear layers, in float and in double, against the plain loops, at sizes
 * around every block of llmc/cpu/gemm.c: tiles of 4 and 8 rows, vectors of 2 to 16 columns, panels
 * of up to 48, depth 256 and 1024, 512 rows. */
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

/* What rounding may make of a sum of `terms` products of numbers below 1, which are 1/4 on average. */
static double rounding(int terms) { return 2 * REAL_EPSILON * (terms + 4); }

static void check(const char *what, Shape s, const Data *data, double tolerance) {
    int failures = test_failures;
    data_check(what, data, tolerance);
    if (test_failures > failures) printf("  (N %d, K %d, O %d)\n", s.N, s.K, s.O);
}

static void check_forward(Shape s, bool with_bias, bool with_residual, bool in_place) {
    Data x = data_new(s.N * s.K, 1), w = data_new(s.O * s.K, 2), bias = data_new(s.O, 3);
    Data residual = data_new(s.N * s.O, 4);
    Data out = in_place ? data_new(s.N * s.O, 4) : data_result(s.N * s.O);
    Data *added = in_place ? &out : &residual;
    linear_forward(out.at, x.at, w.at, with_bias ? bias.at : NULL, with_residual ? added->at : NULL,
                   s.N, s.K, s.O);
    plain_linear_forward(out.want, x.want, w.want, with_bias ? bias.want : NULL,
                         with_residual ? added->want : NULL, s.N, s.K, s.O);
    check("out", s, &out, rounding(s.K));
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
        Data pre = data_result(s.N * s.O), out = data_result(s.N * s.O);
        linear_gelu_forward(out.at, pre.at, x.at, w.at, bias.at, s.N, s.K, s.O);
        plain_linear_gelu_forward(out.want, pre.want, x.want, w.want, bias.want, s.N, s.K, s.O);
        check("pre", s, &pre, rounding(s.K));
        // GELU of the very same pre: a layer from one channel, of input 1, has it as its weights.
        double one = 1, *same_pre = doubles(pre.at, (size_t)pre.count);
        plain_linear_gelu_forward(out.want, pre.want, &one, same_pre, NULL, 1, 1, pre.count);
        check("gelu(pre)", s, &out, 16 * REAL_EPSILON);
        free(same_pre);
        data_free(&x), data_free(&w), data_free(&bias), data_free(&pre), data_free(&out);
    }
}

static void check_backward_input(Shape s, bool with_gelu) {
    Data dout = data_new(s.N * s.O, 1), w = data_new(s.O * s.K, 2), pre = data_new(s.N * s.K, 3);
    Data dx = data_result(s.N * s.K);
    linear_backward_input(dx.at, dout.at, w.at, with_gelu ? pre.at : NULL, s.N, s.K, s.O);
    plain_linear_backward_input(dx.want, dout.want, w.want, with_gelu ? pre.want : NULL, s.N, s.K,
                                s.O);
    check("dx", s, &dx, (with_gelu ? 2 : 1) * rounding(s.O));
    data_free(&dout), data_free(&w), data_free(&pre), data_free(&dx);
}

TEST(backward_input, "dx = dout w, times gelu'(pre) where asked for") {
    for (int i = 0; i < SHAPES; i++)
        for (int with_gelu = 0; with_gelu < 2; with_gelu++)
            check_backward_input(shape(i), with_gelu);
}

static void check_backward_weight(Shape s, bool with_bias, bool accumulate) {
    Data dout = data_new(s.N * s.O, 1), x = data_new(s.N * s.K, 2);
    Data dw = accumulate ? data_new(s.O * s.K, 3) : data_result(s.O * s.K);
    Data dbias = accumulate || !with_bias ? data_new(s.O, 4) : data_result(s.O);
    linear_backward_weight(dw.at, with_bias ? dbias.at : NULL, dout.at, x.at, s.N, s.K, s.O,
                           accumulate);
    plain_linear_backward_weight(dw.want, with_bias ? dbias.want : NULL, dout.want, x.want, s.N,
                                 s.K, s.O, accumulate);
    check("dw", s, &dw, rounding(s.N));
    check("dbias", s, &dbias, 2 * rounding(s.N)); // terms of 1/2 on average
    data_free(&dout), data_free(&x), data_free(&dw), data_free(&dbias);
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

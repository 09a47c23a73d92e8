/* real_layernorm.c: LayerNorm and its gradient against the plain loops. */
#include "real_data.h"

#include "../llmc/base/rng.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))
static const bool is_float = sizeof(real) == 4;

typedef struct {
    int N, C;
    real *x, *w, *b, *dout, *dresidual;     // inputs
    real *out, *mean, *rstd, *dx, *dw, *db; // results
} Case;

static real *normals(size_t count, uint64_t seed, double centre, double size) {
    real *at = malloc((count + 2) * sizeof *at);
    for (size_t i = 0; i < count; i += 2) {
        double z[2];
        rng_normal_pair(z, seed, i, 1);
        at[i] = (real)(centre + size * z[0]), at[i + 1] = (real)(centre + size * z[1]);
    }
    at[count] = SENTINEL;
    return at;
}

static Case case_new(int N, int C, double centre, double size) {
    size_t n = (size_t)N * C;
    Case c = {.N = N, .C = C};
    c.x = normals(n, 1, centre, size), c.w = normals(C, 2, 1, 0.5), c.b = normals(C, 3, 0, 1);
    c.dout = normals(n, 4, 0, 1), c.dresidual = normals(n, 5, 0, 1);
    real **results[] = {&c.out, &c.dx, &c.mean, &c.rstd, &c.dw, &c.db};
    for (int i = 0; i < LENGTH(results); i++)
        *results[i] = normals(i < 2 ? n : (size_t)(i < 4 ? N : C), 6, NAN, 1);
    return c;
}

static void case_free(Case *c) {
    free(c->x), free(c->w), free(c->b), free(c->dout), free(c->dresidual), free(c->out);
    free(c->mean), free(c->rstd), free(c->dx), free(c->dw), free(c->db);
}

static void run_forward(Case *c) {
    layernorm_forward(c->out, c->mean, c->rstd, c->x, c->w, c->b, c->N, c->C);
}

static void run_both(Case *c) {
    run_forward(c);
    layernorm_backward(c->dx, c->dw, c->db, c->dout, c->dresidual, c->x, c->mean, c->rstd, c->w,
                       c->N, c->C, false);
}

static void check_sentinels(const Case *c) {
    size_t n = (size_t)c->N * c->C;
    CHECK(c->out[n] == SENTINEL && c->dx[n] == SENTINEL);
    CHECK(c->mean[c->N] == SENTINEL && c->rstd[c->N] == SENTINEL);
    CHECK(c->dw[c->C] == SENTINEL && c->db[c->C] == SENTINEL);
}

/* ---- the same with the plain loops --------------------------------------------------------------- */

/* A case's arrays in double; the results are those of the plain loops. */
typedef struct {
    double *x, *w, *b, *dout, *dresidual, *out, *mean, *rstd, *dx, *dw, *db;
} Plain;

static Plain plain_of(const Case *c) {
    size_t n = (size_t)c->N * c->C, N = (size_t)c->N, C = (size_t)c->C;
    Plain p = {doubles(c->x, n),    doubles(c->w, C),         doubles(c->b, C),
               doubles(c->dout, n), doubles(c->dresidual, n), doubles(c->out, n),
               doubles(c->mean, N), doubles(c->rstd, N),      doubles(c->dx, n),
               doubles(c->dw, C),   doubles(c->db, C)};
    plain_layernorm_forward(p.out, p.mean, p.rstd, p.x, p.w, p.b, c->N, c->C);
    plain_layernorm_backward(p.dx, p.dw, p.db, p.dout, p.dresidual, p.x, p.mean, p.rstd, p.w, c->N,
                             c->C, false);
    return p;
}

static void plain_free(Plain *p) {
    free(p->x), free(p->w), free(p->b), free(p->dout), free(p->dresidual), free(p->out);
    free(p->mean), free(p->rstd), free(p->dx), free(p->dw), free(p->db);
}

/* The loss whose gradient dout is: the sum of dout * out. */
static double loss_of(const Case *c) {
    Plain p = plain_of(c);
    double loss = 0;
    for (int i = 0; i < c->N * c->C; i++) loss += p.dout[i] * p.out[i];
    plain_free(&p);
    return loss;
}

static void check_forward(const Case *c, double tolerance) {
    Plain p = plain_of(c);
    check_near("mean", c->mean, p.mean, (size_t)c->N, tolerance);
    for (int n = 0; n < c->N; n++) {
        size_t row = (size_t)n * c->C;
        CHECK_NEAR(c->rstd[n] / p.rstd[n], 1, tolerance);
        check_near("out", c->out + row, p.out + row, (size_t)c->C, tolerance * (2 + p.rstd[n]));
    }
    plain_free(&p);
}

static void check_backward(const Case *c, double tolerance) {
    Plain p = plain_of(c);
    for (int n = 0; n < c->N; n++) {
        size_t row = (size_t)n * c->C;
        check_near("dx", c->dx + row, p.dx + row, (size_t)c->C, tolerance * (1 + p.rstd[n]) / 2);
    }
    check_near("dw", c->dw, p.dw, (size_t)c->C, tolerance * (1 + sqrt(c->N)) / 2);
    check_near("db", c->db, p.db, (size_t)c->C, tolerance * (1 + sqrt(c->N)) / 2);
    plain_free(&p);
}

TEST(shapes, "forward and backward agree with the plain loops, whatever the rows and channels") {
    const int rows[] = {1, 2, 31, 32, 33, 100}, channels[] = {1, 2, 7, 16, 17, 48, 127, 768};
    for (int i = 0; i < LENGTH(rows); i++)
        for (int j = 0; j < LENGTH(channels); j++) {
            Case c = case_new(rows[i], channels[j], 0.3, 2);
            run_both(&c);
            check_forward(&c, is_float ? 2e-6 : 4e-15);
            if (channels[j] > 2) check_backward(&c, is_float ? 4e-6 : 8e-15);
            check_sentinels(&c);
            if (test_failures) printf("  (N %d, C %d)\n", rows[i], channels[j]);
            case_free(&c);
        }
}

TEST(differences, "dx is the slope of the loss, by central differences") {
    Case c = case_new(2, 9, 0, 1);
    memset(c.dresidual, 0, sizeof(real) * 18);
    run_both(&c);
    const real h = is_float ? (real)0x1p-8 : (real)0x1p-17;
    for (int i = 0; i < 18; i++) {
        const real kept = c.x[i];
        double loss[2];
        for (int side = 0; side < 2; side++) {
            c.x[i] = side ? kept + h : kept - h;
            loss[side] = loss_of(&c);
        }
        c.x[i] = kept;
        double slope = (loss[1] - loss[0]) / (2 * (double)h);
        CHECK_NEAR(c.dx[i], slope, is_float ? 1e-3 : 1e-8);
    }
    case_free(&c);
}

TEST(constant_rows,
     "a constant row gives the bias, and finite gradients: eps stands for the variance") {
    Case c = case_new(3, 40, 0, 1);
    const real constants[] = {0, 5, (real)-1e6};
    for (int n = 0; n < 3; n++)
        for (int i = 0; i < 40; i++) c.x[n * 40 + i] = constants[n];
    run_both(&c);
    for (int n = 0; n < 3; n++) CHECK_NEAR(c.rstd[n], 1 / sqrt(1e-5), 1e-4);
    for (int i = 0; i < 120; i++) {
        CHECK_NEAR(c.out[i], c.b[i % 40], 0);
        CHECK(isfinite(c.dx[i]));
    }
    case_free(&c);
}

TEST(offsets, "a mean far larger than the deviation costs its own rounding, no more") {
    Case c = case_new(4, 768, 4096, 1); // x is rounded to 2^-11 in float
    run_both(&c);
    check_forward(&c, is_float ? 2e-4 : 1e-12);
    check_backward(&c, is_float ? 5e-4 : 1e-12);
    case_free(&c);
}

TEST(accumulate, "with accumulate the gradients are added, without it they are written") {
    Case c = case_new(50, 20, 0, 1), added = case_new(50, 20, 0, 1);
    run_both(&c), run_both(&added);
    for (int i = 0; i < 20; i++) added.dw[i] = (real)i, added.db[i] = (real)-i;
    layernorm_backward(added.dx, added.dw, added.db, added.dout, added.dresidual, added.x,
                       added.mean, added.rstd, added.w, 50, 20, true);
    for (int i = 0; i < 20; i++) {
        CHECK_NEAR(added.dw[i] - i, c.dw[i], is_float ? 1e-5 : 1e-13);
        CHECK_NEAR(added.db[i] + i, c.db[i], is_float ? 1e-5 : 1e-13);
    }
    CHECK(memcmp(added.dx, c.dx, sizeof(real) * 1000) == 0, "dx does not accumulate");
    case_free(&c), case_free(&added);
}

TEST(residual, "dresidual NULL counts as 0, and dx itself may be dresidual") {
    Case c = case_new(35, 19, 0, 1);
    size_t n = (size_t)c.N * c.C;
    real *none = malloc(n * sizeof *none);
    run_both(&c);
    layernorm_backward(none, c.dw, c.db, c.dout, NULL, c.x, c.mean, c.rstd, c.w, c.N, c.C, false);
    for (size_t i = 0; i < n; i++)
        CHECK_NEAR(none[i], c.dx[i] - c.dresidual[i], is_float ? 1e-5 : 1e-14);
    real *in_place = malloc(n * sizeof *in_place);
    memcpy(in_place, c.dresidual, n * sizeof *in_place);
    layernorm_backward(in_place, c.dw, c.db, c.dout, in_place, c.x, c.mean, c.rstd, c.w, c.N, c.C,
                       false);
    CHECK(memcmp(in_place, c.dx, n * sizeof *in_place) == 0);
    free(none), free(in_place), case_free(&c);
}

TEST(nonfinite, "a NaN or Inf is seen in its row and in no other; in dw where it counts") {
    for (int kind = 0; kind < 2; kind++) {
        Case c = case_new(40, 21, 0, 1);
        c.x[33 * 21 + 4] = (real)(kind ? NAN : INFINITY);
        run_both(&c);
        for (int n = 0; n < 40; n++)
            for (int i = 0; i < 21; i++) {
                CHECK(isfinite(c.out[n * 21 + i]) == (n != 33), "row %d", n);
                CHECK(isfinite(c.dx[n * 21 + i]) == (n != 33), "row %d", n);
            }
        CHECK(!isfinite(c.dw[4]) && isfinite(c.db[4]));
        case_free(&c);
    }
}

TEST(threads, "1, 2 and 3 threads give the same bits") {
#ifndef _OPENMP
    SKIP("built without OpenMP");
#else
    int kept = omp_get_max_threads();
    omp_set_num_threads(1);
    Case one = case_new(137, 90, 0, 1);
    run_both(&one);
    for (int threads = 2; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        Case c = case_new(137, 90, 0, 1);
        run_both(&c);
        CHECK(memcmp(c.out, one.out, sizeof(real) * 137 * 90) == 0);
        CHECK(memcmp(c.dx, one.dx, sizeof(real) * 137 * 90) == 0);
        CHECK(memcmp(c.dw, one.dw, sizeof(real) * 90) == 0);
        CHECK(memcmp(c.db, one.db, sizeof(real) * 90) == 0);
        case_free(&c);
    }
    omp_set_num_threads(kept);
    case_free(&one);
#endif
}

int main(int argc, char **argv) { return test_main(argc, argv); }

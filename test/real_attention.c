/* real_attention.c: attention against the plain loops, and what else its interface promises: nothing of
 * later tokens, of other heads or of other sequences is seen, and neither threads nor the batch change a
 * bit. */
#include "real_data.h"

#include "../llmc/base/rng.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))
static const bool is_float = sizeof(real) == 4;

/* A problem: its inputs, and room for its results with a sentinel after each. */
typedef struct {
    int B, T, NH, hs, C;
    real *qkv, *dout;       // inputs
    real *out, *lse, *dqkv; // results
} Case;

static size_t outs(const Case *c) { return (size_t)c->B * c->T * c->C; }
static size_t lses(const Case *c) { return (size_t)c->B * c->NH * c->T; }

static real *results(size_t count) {
    real *at = malloc((count + 1) * sizeof *at);
    for (size_t i = 0; i < count; i++) at[i] = (real)NAN; // whatever is not written shows
    at[count] = SENTINEL;
    return at;
}

static real *normals(size_t count, uint64_t seed, double size) {
    real *at = malloc((count + 1) * sizeof *at);
    for (size_t i = 0; i < count; i += 2) {
        double z[2];
        rng_normal_pair(z, seed, i, 1);
        at[i] = (real)(size * z[0]), at[i + 1] = (real)(size * z[1]);
    }
    at[count] = SENTINEL;
    return at;
}

static Case case_new(int B, int T, int NH, int hs, double size) {
    Case c = {.B = B, .T = T, .NH = NH, .hs = hs, .C = NH * hs};
    c.qkv = normals(3 * outs(&c), 1, size), c.dout = normals(outs(&c), 2, 1);
    c.out = results(outs(&c)), c.lse = results(lses(&c)), c.dqkv = results(3 * outs(&c));
    return c;
}

static void case_free(Case *c) {
    free(c->qkv), free(c->dout), free(c->out), free(c->lse), free(c->dqkv);
}

static void run_forward(Case *c) {
    attention_forward(c->out, c->lse, c->qkv, c->B, c->T, c->C, c->NH);
}

static void run_both(Case *c) {
    run_forward(c);
    attention_backward(c->dqkv, c->dout, c->out, c->lse, c->qkv, c->B, c->T, c->C, c->NH);
}

/* ---- the same with the plain loops --------------------------------------------------------------- */

/* A case's arrays in double; the results are those of the plain loops. */
typedef struct {
    double *qkv, *dout, *out, *lse, *dqkv;
} Plain;

static Plain plain_of(const Case *c) {
    Plain p = {doubles(c->qkv, 3 * outs(c)), doubles(c->dout, outs(c)), doubles(c->out, outs(c)),
               doubles(c->lse, lses(c)), doubles(c->dqkv, 3 * outs(c))};
    plain_attention_forward(p.out, p.lse, p.qkv, c->B, c->T, c->C, c->NH);
    plain_attention_backward(p.dqkv, p.dout, p.out, p.lse, p.qkv, c->B, c->T, c->C, c->NH);
    return p;
}

static void plain_free(Plain *p) {
    free(p->qkv), free(p->dout), free(p->out), free(p->lse), free(p->dqkv);
}

/* The loss whose gradient dout is: the sum of dout * out. */
static double loss_of(const Case *c) {
    Plain p = plain_of(c);
    double loss = 0;
    for (size_t i = 0; i < outs(c); i++) loss += p.dout[i] * p.out[i];
    plain_free(&p);
    return loss;
}

static void check_forward(const Case *c, double tolerance) {
    Plain p = plain_of(c);
    check_near("lse", c->lse, p.lse, lses(c), tolerance);
    check_near("out", c->out, p.out, outs(c), tolerance / 2);
    CHECK(c->out[outs(c)] == SENTINEL && c->lse[lses(c)] == SENTINEL);
    plain_free(&p);
}

static void check_backward(const Case *c, double tolerance) {
    Plain p = plain_of(c);
    check_near("dqkv", c->dqkv, p.dqkv, 3 * outs(c), tolerance * 4);
    CHECK(c->dqkv[3 * outs(c)] == SENTINEL);
    plain_free(&p);
}

TEST(shapes, "forward and backward agree with the plain loops, whatever the length and head size") {
    const int lengths[] = {1, 2, 3, 7, 17, 64, 65, 96, 97, 200}, sizes[] = {1, 4, 16, 24, 64, 128};
    for (int i = 0; i < LENGTH(lengths); i++)
        for (int j = 0; j < LENGTH(sizes); j++) {
            int T = lengths[i], hs = sizes[j], NH = 1 + (i + j) % 3;
            Case c = case_new(T < 64 ? 2 : 1, T, NH, hs, 1);
            run_both(&c);
            check_forward(&c, is_float ? 5e-6 : 1e-14);
            check_backward(&c, is_float ? 5e-6 : 1e-14);
            if (test_failures) printf("  (T %d, hs %d, NH %d)\n", T, hs, NH);
            case_free(&c);
        }
}

TEST(panels, "a row longer than several panels of keys is summed over all of them") {
    Case c = case_new(1, 450, 1, 16, 1);
    run_both(&c);
    check_forward(&c, is_float ? 5e-6 : 1e-14);
    check_backward(&c, is_float ? 5e-6 : 1e-14);
    case_free(&c);
}

TEST(differences, "the gradient is the slope of the loss, by central differences") {
    Case c = case_new(1, 5, 2, 3, 1);
    run_both(&c);
    double loss[2];
    for (size_t at = 0; at < 3 * outs(&c); at++) {
        const real kept = c.qkv[at], h = is_float ? (real)0x1p-8 : (real)0x1p-17;
        for (int side = 0; side < 2; side++) {
            c.qkv[at] = side ? kept + h : kept - h;
            loss[side] = loss_of(&c);
        }
        c.qkv[at] = kept;
        double slope = (loss[1] - loss[0]) / (2 * (double)h);
        CHECK_NEAR(c.dqkv[at], slope, is_float ? 1e-4 : 1e-9);
    }
    case_free(&c);
}

TEST(decode, "one token against its past is the row of the whole, to rounding") {
    const int sizes[] = {1, 16, 24, 64};
    for (int j = 0; j < LENGTH(sizes); j++) {
        Case c = case_new(1, 130, 2, sizes[j], 1);
        run_forward(&c);
        for (int t = 0; t < c.T; t++) {
            real *out = results((size_t)c.C);
            attention_decode(out, c.qkv, t, c.C, c.NH);
            for (int i = 0; i < c.C; i++)
                CHECK_NEAR(out[i], c.out[t * c.C + i], is_float ? 5e-6 : 1e-14);
            CHECK(out[c.C] == SENTINEL);
            free(out);
        }
        case_free(&c);
    }
}

TEST(causal, "changing a token changes no output before it, not by a bit, not even to NaN") {
    const real values[] = {100, (real)NAN, (real)INFINITY};
    Case c = case_new(1, 130, 1, 20, 1);
    run_forward(&c);
    real *before = results(outs(&c));
    memcpy(before, c.out, outs(&c) * sizeof(real));
    for (int t = 0; t < c.T; t++) {
        Case changed = case_new(1, 130, 1, 20, 1);
        for (int i = 0; i < 3 * c.C; i++) changed.qkv[t * 3 * c.C + i] = values[t % 3];
        run_forward(&changed);
        CHECK(memcmp(changed.out, before, (size_t)t * c.C * sizeof(real)) == 0, "token %d", t);
        CHECK(memcmp(changed.lse, c.lse, (size_t)t * sizeof(real)) == 0, "token %d", t);
        for (int later = t; later < c.T && t % 3 != 0; later++)
            CHECK(isnan(changed.out[later * c.C]), "token %d misses the NaN of %d", later, t);
        case_free(&changed);
    }
    free(before), case_free(&c);
}

TEST(nonfinite,
     "a NaN or Inf in a head's q, k or v is seen by that head of that row, and no other") {
    for (int n = 0; n < 6; n++) {
        Case c = case_new(2, 70, 3, 16, 1), clean = case_new(2, 70, 3, 16, 1);
        const int part = n / 2, token = 33, channel = c.hs + 5; // head 1, row 1
        c.qkv[((size_t)(c.T + token) * 3 + part) * c.C + channel] = (real)(n % 2 ? NAN : INFINITY);
        run_both(&c), run_both(&clean);
        bool out_seen = false, gradient_seen = false;
        for (size_t i = 0; i < outs(&c); i++) {
            bool there = i / c.C / c.T == 1 && i % c.C / c.hs == 1;
            CHECK(there || c.out[i] == clean.out[i]);
            out_seen |= there && !isfinite(c.out[i]);
        }
        for (size_t i = 0; i < 3 * outs(&c); i++) {
            bool there = i / (3 * c.C) / c.T == 1 && i % c.C / c.hs == 1;
            CHECK(there || c.dqkv[i] == clean.dqkv[i]);
            gradient_seen |= there && !isfinite(c.dqkv[i]);
        }
        CHECK(out_seen && gradient_seen, "case %d", n);
        case_free(&c), case_free(&clean);
    }
}

TEST(nonfinite_dout, "a NaN in dout reaches its head's gradients, and no other's") {
    Case c = case_new(2, 70, 3, 16, 1);
    c.dout[(size_t)(c.T + 40) * c.C + c.hs] = (real)NAN; // row 1, token 40, head 1
    run_both(&c);
    for (size_t i = 0; i < 3 * outs(&c); i++) {
        bool there = i / (3 * c.C) / c.T == 1 && i % c.C / c.hs == 1;
        CHECK(there || isfinite(c.dqkv[i]));
    }
    for (int s = 0; s < c.T; s++) { // v_s feels the first channel of tokens s and later
        real dv = c.dqkv[((size_t)(c.T + s) * 3 + 2) * c.C + c.hs];
        CHECK(isnan(dv) == (s <= 40), "token %d", s);
    }
    case_free(&c);
}

TEST(large_scores, "scores of 1e4 and more give finite results that still agree") {
    Case c = case_new(1, 100, 2, 16, 70);
    run_both(&c);
    for (size_t i = 0; i < outs(&c); i++) CHECK(isfinite(c.out[i]));
    for (size_t i = 0; i < 3 * outs(&c); i++) CHECK(isfinite(c.dqkv[i]));
    check_forward(&c, is_float ? 1 : 1e-9);
    case_free(&c);
    Case peak = case_new(1, 40, 1, 4, 1); // each query sees one key at +1e4, the rest at -1e4
    for (int t = 0; t < peak.T; t++)
        for (int i = 0; i < 4; i++) {
            peak.qkv[t * 12 + i] = 100 * (i == 0), peak.qkv[t * 12 + 4 + i] = t ? -200 : 200;
        }
    run_both(&peak);
    for (int t = 0; t < peak.T; t++) CHECK(peak.out[t * 4] == peak.qkv[8]);
    for (size_t i = 0; i < 3 * outs(&peak); i++) CHECK(isfinite(peak.dqkv[i]));
    case_free(&peak);
}

TEST(threads, "1, 2 and 3 threads give the same bits") {
#ifndef _OPENMP
    SKIP("built without OpenMP");
#else
    int kept = omp_get_max_threads();
    omp_set_num_threads(1);
    Case one = case_new(2, 120, 3, 24, 1);
    run_both(&one);
    for (int n = 2; n <= 3; n++) {
        omp_set_num_threads(n);
        Case c = case_new(2, 120, 3, 24, 1);
        run_both(&c);
        CHECK(memcmp(c.out, one.out, outs(&c) * sizeof(real)) == 0);
        CHECK(memcmp(c.lse, one.lse, lses(&c) * sizeof(real)) == 0);
        CHECK(memcmp(c.dqkv, one.dqkv, 3 * outs(&c) * sizeof(real)) == 0);
        case_free(&c);
    }
    omp_set_num_threads(kept);
    case_free(&one);
#endif
}

TEST(batch, "a row's results do not depend on the rows beside it, nor on what ran before") {
    Case whole = case_new(3, 33, 2, 16, 1);
    run_both(&whole);
    for (int b = 0; b < 3; b++) {
        Case c = case_new(1, 33, 2, 16, 1);
        size_t n = outs(&c);
        memcpy(c.qkv, whole.qkv + 3 * n * b, 3 * n * sizeof(real));
        memcpy(c.dout, whole.dout + n * b, n * sizeof(real));
        run_both(&c);
        CHECK(memcmp(c.out, whole.out + n * b, n * sizeof(real)) == 0);
        CHECK(memcmp(c.dqkv, whole.dqkv + 3 * n * b, 3 * n * sizeof(real)) == 0);
        case_free(&c);
    }
    case_free(&whole);
}

int main(int argc, char **argv) { return test_main(argc, argv); }

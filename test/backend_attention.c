/* backend_attention.c: attention and the classifier, forward and backward, against the oracle. Next:
 * backend_update.c. */
#include "backend.h"

/* Attention of qkv (B,T,3C) and its gradient, compared with the oracle. */
static void compare_attention(Array *qkv, int B, int T, int NH, int hs) {
    int C = NH * hs;
    size_t size = (size_t)B * T * C, rows = (size_t)B * NH * T;
    Array *out = output(OF_ACT, size), *lse = output(OF_ROW_STAT, rows);
    attention_forward(out->at, lse->at, qkv->at, B, T, C, NH);
    plain_attention_forward(out->want, lse->want, qkv->values, B, T, C, NH);
    check(out, ATTENTION, "out");
    check(lse, ATTENTION, "lse");

    Array *dout = input(OF_ACT, size, 1), *dqkv = output(OF_ACT, 3 * size);
    attention_backward(dqkv->at, dout->at, out->at, lse->at, qkv->at, B, T, C, NH);
    plain_attention_backward(dqkv->want, dout->values, out->want, lse->want, qkv->values, B, T, C,
                             NH);
    check(dqkv, ATTENTION, "dqkv");
}

static void attention_case(int B, int T, int NH, int hs) {
    compare_attention(input(OF_ACT, (size_t)B * T * 3 * NH * hs, 2), B, T, NH, hs);
}

TEST(attention_64,
     "head size 64, the tensor cores' with bf16: one token, below, at and beyond a tile of 64") {
    EACH_ORDER attention_case(1, 1, 1, 64);
    EACH_ORDER attention_case(1, 37, 2, 64);
    EACH_ORDER attention_case(2, 64, 1, 64);
    EACH_ORDER attention_case(1, 150, 1, 64);
}

TEST(attention_128, "head size 128 likewise") {
    EACH_ORDER attention_case(1, 1, 1, 128);
    EACH_ORDER attention_case(1, 70, 2, 128);
}

TEST(attention_long, "sixteen tiles of a head: both buffers many times, and the longest rows") {
    EACH_ORDER attention_case(1, 1024, 1, 64);
}

TEST(attention_low_scores,
     "all scores near -100: the rows that fill up the last tile leave no infinity behind") {
    EACH_ORDER for (int hs = 64; hs <= 128; hs *= 2) {
        int T = 37;
        Array *qkv = input(OF_ACT, (size_t)T * 3 * hs, 1);
        for (int i = 0; i < T * 3 * hs; i++) { // q . k / sqrt(hs) is -96 or -102
            int of = i / hs % 3;
            float value = of == 0 ? 4 : of == 1 ? (hs == 64 ? -3 : -2.25f) : (float)qkv->values[i];
            write_floats(device_at(qkv->at, OF_ACT, (size_t)i), OF_ACT, &value, 1);
            qkv->values[i] = value;
        }
        compare_attention(qkv, 1, T, 1, hs);
    }
}

TEST(attention_plain, "any other head size, small, odd and so large that tiles shrink") {
    EACH_ORDER attention_case(2, 40, 2, 32);
    EACH_ORDER attention_case(1, 37, 3, 5);
    EACH_ORDER attention_case(2, 1, 2, 1);
    EACH_ORDER attention_case(1, 6, 1, 700);
}

TEST(attention_unaligned, "rows that begin at odd addresses") {
    arrays_shift(1);
    EACH_ORDER attention_case(1, 20, 1, 64);
    arrays_shift(0);
}

static void decode_case(int T, int NH, int hs) {
    int C = NH * hs;
    Array *qkv = input(OF_ACT, (size_t)T * 3 * C, 2), *whole = output(OF_ACT, (size_t)T * C);
    plain_attention_forward(whole->want, output(OF_ROW_STAT, (size_t)NH * T)->want, qkv->values, 1,
                            T, C, NH);
    for (int t = 0; t < T; t += 7) {
        Array *out = output(OF_ACT, (size_t)C);
        attention_decode(out->at, qkv->at, t, C, NH);
        memcpy(out->want, whole->want + (size_t)t * C, (size_t)C * sizeof(double));
        check(out, ATTENTION, "one query");
    }
}

TEST(attention_decode, "one query against its past is a row of the whole") {
    EACH_ORDER decode_case(45, 2, 64);
    EACH_ORDER decode_case(9, 3, 10);
}

TEST(attention_nan, "a NaN value reaches every output that sees it, and no other") {
    EACH_ORDER {
        int T = 70, C = 64, bad = 40;
        Array *qkv = input(OF_ACT, (size_t)T * 3 * C, 1), *out = output(OF_ACT, (size_t)T * C);
        Array *lse = output(OF_ROW_STAT, (size_t)T);
        float nan = NAN;
        write_floats(device_at(qkv->at, OF_ACT, (size_t)bad * 3 * C + C + 5), OF_ACT, &nan,
                     1); // a key
        attention_forward(out->at, lse->at, qkv->at, 1, T, C, 1);
        double *got = contents(out), *log_sums = contents(lse);
        for (int t = 0; t < T; t++) {
            CHECK(isnan(got[t * C]) == (t >= bad), "query %d: %g", t, got[t * C]);
            CHECK(isnan(log_sums[t]) == (t >= bad), "query %d: lse %g", t, log_sums[t]);
        }
        free(got);
        free(log_sums);
    }
}

// ---- classifier ---------------------------------------------------------------------------------

static void classifier_case(int N, int C, int V, bool accumulate) {
    int Vp = (V + 127) / 128 * 128;
    double scale = 1.0 / N;
    int32_t *targets = calloc((size_t)N, sizeof *targets);
    for (int n = 0; n < N; n++) targets[n] = n % 4 == 3 ? -1 : (n * 31 + 5) % V;
    Array *target = ids_of(targets, (size_t)N), *x = input(OF_ACT, (size_t)N * C, 1);
    Array *wte = in_out(OF_PARAM, (size_t)Vp * C, 1),
          *logits = output(OF_ACT, (size_t)classifier_chunk(N, Vp) * Vp);
    float *zeros = calloc((size_t)(Vp - V) * C + 1, sizeof *zeros); // rows V.. are padding
    write_floats(device_at(wte->at, OF_PARAM, (size_t)V * C), OF_PARAM, zeros,
                 (size_t)(Vp - V) * C);
    memset(wte->values + (size_t)V * C, 0, (size_t)(Vp - V) * C * sizeof(double));
    double *scratch = calloc((size_t)plain_classifier_chunk(N, Vp) * Vp, sizeof *scratch);

    Array *losses = output(OF_ROW_STAT, (size_t)N), *alone = output(OF_ROW_STAT, (size_t)N);
    Array *dx = output(OF_ACT, (size_t)N * C);
    Array *dwte =
        accumulate ? in_out(OF_GRAD, (size_t)Vp * C, 0.1) : output(OF_GRAD, (size_t)Vp * C);
    classifier(alone->at, NULL, NULL, logits->at, x->at, wte->at, target->at, 0, N, C, V, Vp,
               false);
    plain_classifier(alone->want, NULL, NULL, scratch, x->values, wte->values, targets, 0, N, C, V,
                     Vp, false);
    check(alone, CLASSIFIER, "losses alone");
    classifier(losses->at, dx->at, dwte->at, logits->at, x->at, wte->at, target->at, scale, N, C, V,
               Vp, accumulate);
    plain_classifier(losses->want, dx->want, dwte->want, scratch, x->values, wte->values, targets,
                     scale, N, C, V, Vp, accumulate);
    check(losses, CLASSIFIER, "losses");
    check(dx, CLASSIFIER, "dx");
    check(dwte, CLASSIFIER, "dwte");
    free(targets);
    free(zeros);
    free(scratch);
}

TEST(classifier,
     "losses and gradients; ignored targets; padded vocabulary; several chunks of rows") {
    EACH_ORDER classifier_case(60, 16, 300, false);
    EACH_ORDER classifier_case(5, 8, 101, true);
    EACH_ORDER classifier_case(1, 8, 1, false);
}

TEST(classifier_wide, "more words than one pass of a block") {
    EACH_ORDER classifier_case(4, 8, 4200, false);
    EACH_ORDER classifier_case(2, 1, 60000, true);
}

TEST(classifier_nan,
     "one NaN or infinite logit makes its row's loss NaN or infinite, and no other row's") {
    EACH_ORDER {
        int N = 3, C = 8, V = 70, Vp = 128;
        int32_t targets[] = {1, 2, 3};
        Array *target = ids_of(targets, 3), *x = input(OF_ACT, (size_t)N * C, 1);
        Array *wte = input(OF_PARAM, (size_t)Vp * C, 1), *losses = output(OF_ROW_STAT, (size_t)N);
        Array *logits = output(OF_ACT, (size_t)classifier_chunk(N, Vp) * Vp);
        float nan = NAN;
        write_floats(device_at(x->at, OF_ACT, (size_t)C + 3), OF_ACT, &nan, 1);
        classifier(losses->at, NULL, NULL, logits->at, x->at, wte->at, target->at, 0, N, C, V, Vp,
                   false);
        double *got = contents(losses);
        for (int n = 0; n < N; n++) CHECK(!isfinite(got[n]) == (n == 1), "row %d: %g", n, got[n]);
        free(got);
    }
}

/* gpt2_operations.c: each operation of llmc/ops.h on its own, forward and backward, against
 * PyTorch. A gradient is computed twice, written and then added, and must double. Next:
 * gpt2_model.c. */
#include "expect.h"
#include "real_data.h"

TEST(embedding,
     "embedding forward and backward are PyTorch's, repeated words and unused positions too") {
    enum { B = 3, T = 7, C = 10, V = 11, VP = 128, SEQ_LEN = 9, N = B * T };
    Expectations *e = expect_open("embedding");
    Id *ids = fresh_tokens("embedding.ids", V, N);
    real *wte = fresh_formula("embedding.wte", VP * C),
         *wpe = fresh_formula("embedding.wpe", SEQ_LEN * C);
    real *out = fresh(N * C);
    embedding_forward(out, ids, wte, wpe, B, T, C, 0);
    expect_tensor(e, "out", out, N * C, EMBEDDING, 1);
    embedding_forward(out, ids, wte, wpe, B, T, C, 2);
    expect_tensor(e, "out_from_2", out, N * C, EMBEDDING, 1);

    real *dout = fresh_formula("embedding.dout", N * C);
    real *dwte = fresh(VP * C), *dwpe = fresh(SEQ_LEN * C);
    memset(dwte, 0, VP * C * sizeof *dwte); // the classifier has written it before
    for (int times = 1; times <= 2; times++) {
        embedding_backward(dwte, dwpe, dout, ids, B, T, C, SEQ_LEN, times > 1);
        expect_tensor(e, "dwte", dwte, V * C, EMBEDDING, times);
        expect_tensor(e, "dwpe", dwpe, SEQ_LEN * C, EMBEDDING, times);
    }
    for (int i = V * C; i < VP * C; i++) CHECK(dwte[i] == 0, "padding [%d] got a gradient", i);
    release_fresh();
    expect_close(e);
}

TEST(residual_layernorm,
     "linear + residual + LayerNorm, and the gradient added from both sides") {
    enum { N = 13, K = 9, C = 20 };
    Expectations *e = expect_open("residual");
    real *x = fresh_formula("residual.x", N * K), *w = fresh_formula("residual.w", C * K);
    real *b = fresh_formula("residual.b", C), *residual = fresh_formula("residual.residual", N * C);
    real *lnw = fresh_formula("residual.lnw", C), *lnb = fresh_formula("residual.lnb", C);
    real *z = fresh(N * C), *mean = fresh(N), *rstd = fresh(N), *y = residual; // in place
    linear_forward(y, x, w, b, residual, N, K, C);
    layernorm_forward(z, mean, rstd, y, lnw, lnb, N, C);
    expect_tensor(e, "y", y, N * C, LINEAR, 1);
    expect_tensor(e, "z", z, N * C, LAYERNORM, 1);
    expect_tensor(e, "mean", mean, N, LAYERNORM, 1);
    expect_tensor(e, "rstd", rstd, N, LAYERNORM, 1);

    real *dz = fresh_formula("residual.dz", N * C), *dy = fresh(N * C), *dx = fresh(N * K);
    real *dlnw = fresh(C), *dlnb = fresh(C), *dw = fresh(C * K), *db = fresh(C);
    for (int times = 1; times <= 2; times++) {
        formula_fill(dy, "residual.dy", N * C, plain); // dresidual, in place
        layernorm_backward(dy, dlnw, dlnb, dz, dy, y, mean, rstd, lnw, N, C, times > 1);
        linear_backward_weight(dw, db, dy, x, N, K, C, times > 1);
        linear_backward_input(dx, dy, w, NULL, N, K, C);
        expect_tensor(e, "dy", dy, N * C, LAYERNORM, 1);
        expect_tensor(e, "dlnw", dlnw, C, LAYERNORM, times);
        expect_tensor(e, "dlnb", dlnb, C, LAYERNORM, times);
        expect_tensor(e, "dw", dw, C * K, LINEAR, times);
        expect_tensor(e, "db", db, C, LINEAR, times);
        expect_tensor(e, "dx", dx, N * K, LINEAR, 1);
    }
    // Without a residual the LayerNorm's own part is left.
    real *alone = fresh(N * C), *dresidual = fresh_formula("residual.dy", N * C);
    layernorm_backward(alone, dlnw, dlnb, dz, NULL, y, mean, rstd, lnw, N, C, false);
    for (int i = 0; i < N * C; i++) alone[i] += dresidual[i];
    expect_tensor(e, "dy", alone, N * C, LAYERNORM, 1);
    release_fresh();
    expect_close(e);
}

static void check_linear(Expectations *e, int N, int K, int O) {
    const char *shape = named("%dx%dx%d", N, K, O);
    real *x = fresh_formula("linear.x", N * K), *w = fresh_formula("linear.w", O * K);
    real *b = fresh_formula("linear.b", O), *dout = fresh_formula("linear.dout", N * O);
    real *out = fresh(N * O), *dx = fresh(N * K), *dw = fresh(O * K), *db = fresh(O);
    linear_forward(out, x, w, b, NULL, N, K, O);
    expect_tensor(e, named("%s.out", shape), out, N * O, LINEAR, 1);
    linear_forward(out, x, w, NULL, NULL, N, K, O);
    expect_tensor(e, named("%s.out_without_bias", shape), out, N * O, LINEAR, 1);
    linear_backward_input(dx, dout, w, NULL, N, K, O);
    expect_tensor(e, named("%s.dx", shape), dx, N * K, LINEAR, 1);
    for (int times = 1; times <= 2; times++) {
        linear_backward_weight(dw, db, dout, x, N, K, O, times > 1);
        expect_tensor(e, named("%s.dw", shape), dw, O * K, LINEAR, times);
        expect_tensor(e, named("%s.db", shape), db, O, LINEAR, times);
    }
    linear_backward_weight(dw, NULL, dout, x, N, K, O, false);
    expect_tensor(e, named("%s.dw", shape), dw, O * K, LINEAR, 1);
    release_fresh();
}

TEST(linear, "linear layers of odd shapes, with and without bias, long and short sums") {
    Expectations *e = expect_open("linear");
    check_linear(e, 37, 20, 29);
    check_linear(e, 3, 300, 5);
    check_linear(e, 150, 5, 7);
    check_linear(e, 1, 1, 1);
    expect_close(e);
}

TEST(mlp, "linear, GELU, linear: GELU is fused into what stands beside it, both ways") {
    enum { N = 19, C = 12, H = 29 };
    Expectations *e = expect_open("mlp");
    real *x = fresh_formula("mlp.x", N * C), *w = fresh_formula("mlp.w", H * C);
    real *b = fresh_formula("mlp.b", H), *w2 = fresh_formula("mlp.w2", C * H);
    real *pre = fresh(N * H), *gelu = fresh(N * H), *out = fresh(N * C);
    linear_gelu_forward(gelu, pre, x, w, b, N, C, H);
    linear_forward(out, gelu, w2, NULL, NULL, N, H, C);
    expect_tensor(e, "pre", pre, N * H, LINEAR, 1);
    expect_tensor(e, "gelu", gelu, N * H, GELU, 1);
    expect_tensor(e, "out", out, N * C, GELU, 1);

    real *dout = fresh_formula("mlp.dout", N * C), *dpre = fresh(N * H), *dx = fresh(N * C);
    real *dw = fresh(H * C), *db = fresh(H), *dw2 = fresh(C * H);
    linear_backward_weight(dw2, NULL, dout, gelu, N, H, C, false);
    linear_backward_input(dpre, dout, w2, pre, N, H, C);
    linear_backward_weight(dw, db, dpre, x, N, C, H, false);
    linear_backward_input(dx, dpre, w, NULL, N, C, H);
    expect_tensor(e, "dw2", dw2, C * H, GELU, 1);
    expect_tensor(e, "dpre", dpre, N * H, GELU, 1);
    expect_tensor(e, "dw", dw, H * C, GELU, 1);
    expect_tensor(e, "db", db, H, GELU, 1);
    expect_tensor(e, "dx", dx, N * C, GELU, 1);
    release_fresh();
    expect_close(e);
}

/* GELU at recorded points: a linear layer from 1 channel, of input 1, has them as its weights. */
static void check_gelu(Expectations *e, const char *range) {
    const char *points = named("%s.x", range);
    int n = (int)expect_count(e, points);
    const double *x = expect_values(e, points, n);
    real *pre = fresh(n), *out = fresh(n), *derivative = fresh(n), one = 1, zero = 0;
    real *w = fresh(n), *bias = fresh(n), *ones = fresh(n);
    for (int i = 0; i < n; i++) w[i] = (real)x[i], bias[i] = zero, ones[i] = one;
    linear_gelu_forward(out, pre, &one, w, bias, 1, 1, n);
    expect_tensor(e, named("%s.out", range), out, n, GELU, 1);
    linear_backward_input(derivative, &one, ones, pre, 1, n, 1);
    expect_tensor(e, named("%s.derivative", range), derivative, n, GELU, 1);
    release_fresh();
}

TEST(gelu, "GELU and its derivative from -8 to 8, and finite as far out as 1e4") {
    Expectations *e = expect_open("gelu");
    check_gelu(e, "near");
    check_gelu(e, "far");
    expect_close(e);
}

static void check_attention(Expectations *e, int B, int T, int NH, int hs) {
    const char *shape = named("%dx%dx%dx%d", B, T, NH, hs);
    int C = NH * hs, N = B * T;
    real *qkv = fresh(N * 3 * C), *dout = fresh_formula("attention.dout", N * C);
    real *out = fresh(N * C), *lse = fresh(N * NH), *dqkv = fresh(N * 3 * C), *one = fresh(C);
    formula_fill(qkv, "attention.qkv", N * 3 * C, (Range){.bits = 16, .scale = 2});
    attention_forward(out, lse, qkv, B, T, C, NH);
    expect_tensor(e, named("%s.out", shape), out, N * C, ATTENTION, 1);
    expect_tensor(e, named("%s.lse", shape), lse, N * NH, ATTENTION, 1);
    attention_backward(dqkv, dout, out, lse, qkv, B, T, C, NH);
    expect_tensor(e, named("%s.dqkv", shape), dqkv, N * 3 * C, ATTENTION, 1);

    // Row by row from a cache, as generation does it: the same rows once more.
    for (int b = 0; b < B; b++)
        for (int t = 0; t < T; t++) {
            attention_decode(one, qkv + b * T * 3 * C, t, C, NH);
            memcpy(out + (b * T + t) * C, one, C * sizeof *out);
        }
    expect_tensor(e, named("%s.out", shape), out, N * C, ATTENTION, 1);
    release_fresh();
}

TEST(attention, "causal attention at 1 to 200 tokens, whole rows and token by token") {
    Expectations *e = expect_open("attention");
    check_attention(e, 2, 1, 3, 8);
    check_attention(e, 2, 2, 3, 8);
    check_attention(e, 3, 7, 2, 5);
    check_attention(e, 2, 33, 3, 8);
    check_attention(e, 1, 11, 1, 64);
    check_attention(e, 1, 200, 1, 4);
    expect_close(e);
}

static void check_classifier(Expectations *e, const char *name, int N, int C, int V, bool ignored) {
    int Vp = (V + 127) / 128 * 128;
    real *x = fresh_formula("classifier.x", N * C), *wte = fresh(Vp * C);
    Id *targets = fresh_tokens("classifier.targets", V, N);
    real *losses = fresh(N), *dx = fresh(N * C), *dwte = fresh(Vp * C);
    real *logits = fresh((size_t)classifier_chunk(N, Vp) * Vp);
    // Padding that would win every softmax, were it not left out.
    formula_fill(wte, "classifier.wte", V * C, plain);
    for (int i = V * C; i < Vp * C; i++) wte[i] = 50;
    if (ignored) formula_ignore(targets, "classifier.ignored", N);
    int valid = 0;
    for (int n = 0; n < N; n++) valid += targets[n] >= 0;

    classifier(losses, NULL, NULL, logits, x, wte, targets, 0, N, C, V, Vp, false);
    expect_tensor(e, named("%s.losses", name), losses, N, CLASSIFIER, 1);
    for (int times = 1; times <= 2; times++) {
        classifier(losses, dx, dwte, logits, x, wte, targets, 1.0 / valid, N, C, V, Vp, times > 1);
        expect_tensor(e, named("%s.losses", name), losses, N, CLASSIFIER, 1);
        expect_tensor(e, named("%s.dx", name), dx, N * C, CLASSIFIER, 1);
        expect_tensor(e, named("%s.dwte", name), dwte, V * C, CLASSIFIER, times);
    }
    for (int i = V * C; i < Vp * C; i++) CHECK(dwte[i] == 0, "padding [%d] got a gradient", i);
    for (int n = 0; n < N; n++)
        CHECK(targets[n] >= 0 || losses[n] == 0, "ignored row %d has a loss", n);
    release_fresh();
}

TEST(classifier,
     "losses and gradients, ignored targets, a vocabulary that is not a multiple of its padding") {
    Expectations *e = expect_open("classifier");
    check_classifier(e, "dense", 21, 12, 131, false);
    check_classifier(e, "ignored", 21, 12, 131, true);
    check_classifier(e, "many", 300, 2, 37, true);
    expect_close(e);
}

TEST(classifier_chunks,
     "rows that take several chunks of logits are what the plain loops make of them") {
    enum { N = 520, C = 3, V = 4500, VP = 4608 };
    CHECK(classifier_chunk(N, VP) < N, "%d rows are one chunk: the test needs more", N);
    Data x = data_new(N * C, 1), wte = data_new(VP * C, 2), losses = data_result(N);
    Data dx = data_result(N * C), dwte = data_result(VP * C);
    Id *targets = fresh_tokens("chunks.targets", V, N);
    double *scratch = calloc((size_t)plain_classifier_chunk(N, VP) * VP, sizeof *scratch);
    classifier(losses.at, dx.at, dwte.at, fresh((size_t)classifier_chunk(N, VP) * VP), x.at, wte.at,
               targets, 0.5, N, C, V, VP, false);
    plain_classifier(losses.want, dx.want, dwte.want, scratch, x.want, wte.want, targets, 0.5, N, C,
                     V, VP, false);
    data_check("losses", &losses, 4 * REAL_EPSILON);
    data_check("dx", &dx, 64 * REAL_EPSILON);
    data_check("dwte", &dwte, 64 * REAL_EPSILON);
    free(scratch);
    data_free(&x), data_free(&wte), data_free(&losses), data_free(&dx), data_free(&dwte);
    release_fresh();
}

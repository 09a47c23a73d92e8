/* backend_layers.c: embedding, LayerNorm and linear layers, forward and backward, against the oracle. Next:
 * backend_attention.c. */
#include "backend.h"

// ---- embedding ----------------------------------------------------------------------------------

static void embedding_case(int B, int T, int C, int V, int first, bool accumulate) {
    int N = B * T, seq_len = first + T + 3;
    int32_t *ids = calloc((size_t)N, sizeof *ids);
    for (int n = 0; n < N; n++) ids[n] = n % 3 ? (n * n * 7 + n) % V : 1; // one token is frequent
    Array *id = ids_of(ids, (size_t)N);
    Array *wte = input(OF_PARAM, (size_t)V * C, 1), *wpe = input(OF_PARAM, (size_t)seq_len * C, 1);
    Array *out = output(OF_ACT, (size_t)N * C);
    embedding_forward(out->at, id->at, wte->at, wpe->at, B, T, C, first);
    plain_embedding_forward(out->want, ids, wte->values, wpe->values, B, T, C, first);
    check(out, EMBEDDING, "out");

    Array *dout = input(OF_ACT, (size_t)N * C, 1), *dwte = in_out(OF_GRAD, (size_t)V * C, 1);
    Array *dwpe =
        accumulate ? in_out(OF_GRAD, (size_t)seq_len * C, 1) : output(OF_GRAD, (size_t)seq_len * C);
    embedding_backward(dwte->at, dwpe->at, dout->at, id->at, B, T, C, seq_len, accumulate);
    plain_embedding_backward(dwte->want, dwpe->want, dout->values, ids, B, T, C, seq_len,
                             accumulate);
    check(dwte, EMBEDDING, "dwte");
    check(dwpe, EMBEDDING, "dwpe");
    free(ids);
}

TEST(
    embedding,
    "token and position embeddings and their gradients; ids that repeat; rows that are not a multiple "
    "of 16 bytes") {
    EACH_ORDER embedding_case(2, 70, 16, 11, 0, false);
    EACH_ORDER embedding_case(3, 5, 7, 20, 2, true);
    EACH_ORDER embedding_case(1, 1, 1, 3, 0, false);
    EACH_ORDER embedding_case(1, 130, 40, 50, 1, true);
}

TEST(embedding_wide, "more channels than one block takes") {
    EACH_ORDER embedding_case(2, 3, 1100, 5, 0, false);
}

/* Ids whose counts are `counts` (0 ends them), dealt out over the batch one after another: 0, 3, 6, ... and `last`, of
 * which a sort that looks at too few digits takes for 18. */
static size_t deal_ids(int32_t *ids, const int *counts, int32_t last) {
    size_t n = 0;
    for (int round = 0, dealt = 1; dealt; round++) {
        dealt = 0;
        for (int k = 0; counts[k]; k++)
            if (round < counts[k]) ids[n++] = counts[k + 1] ? k * 3 : last, dealt = 1;
    }
    return n;
}

TEST(embedding_counts, "tokens that occur 1, 31, 32, 33, 65 and 3000 times get the sum of their rows, with the same "
                       "bits in every order of threads; ids of one, two and three bytes") {
    static const int counts[] = {1, 31, 32, 33, 65, 64, 3000, 1, 500, 0};
    static const int32_t last[] = {200, 256 + 18, 65536 + 18};
    int32_t ids[4000];
    for (int k = 0; k < 3; k++) {
        float *first = NULL;
        EACH_ORDER {
            size_t N = deal_ids(ids, counts, last[k]), V = (size_t)last[k] + 1;
            Array *id = ids_of(ids, N), *dout = input(OF_ACT, N * 3, 1);
            Array *dwte = in_out(OF_GRAD, V * 3, 1), *dwpe = output(OF_GRAD, N * 3);
            embedding_backward(dwte->at, dwpe->at, dout->at, id->at, 1, (int)N, 3, (int)N, false);
            plain_embedding_backward(dwte->want, dwpe->want, dout->values, ids, 1, (int)N, 3, (int)N, false);
            check(dwte, EMBEDDING, "dwte");
            check(dwpe, EMBEDDING, "dwpe");
            float *got = malloc(V * 3 * sizeof *got);
            read_floats(got, dwte->at, OF_GRAD, V * 3);
            CHECK(!first || memcmp(got, first, V * 3 * sizeof *got) == 0, "other bits in another order");
            if (first)
                free(got);
            else
                first = got;
        }
        free(first);
    }
}

// ---- LayerNorm ----------------------------------------------------------------------------------

static void layernorm_case(int N, int C, int dresidual_is, bool accumulate) {
    size_t size = (size_t)N * C;
    Array *x = input(OF_ACT, size, 2), *w = input(OF_PARAM, (size_t)C, 1),
          *b = input(OF_PARAM, (size_t)C, 1);
    Array *out = output(OF_ACT, size), *mean = output(OF_ROW_STAT, (size_t)N),
          *rstd = output(OF_ROW_STAT, (size_t)N);
    layernorm_forward(out->at, mean->at, rstd->at, x->at, w->at, b->at, N, C);
    plain_layernorm_forward(out->want, mean->want, rstd->want, x->values, w->values, b->values, N,
                            C);
    check(out, LAYERNORM, "out");
    check(mean, LAYERNORM, "mean");
    check(rstd, LAYERNORM, "rstd");

    Array *dout = input(OF_ACT, size, 1),
          *dx = dresidual_is == 2 ? in_out(OF_ACT, size, 1) : output(OF_ACT, size);
    Array *other = dresidual_is == 1 ? input(OF_ACT, size, 1) : dx;
    Array *dw = accumulate ? in_out(OF_GRAD, (size_t)C, 1) : output(OF_GRAD, (size_t)C);
    Array *db = accumulate ? in_out(OF_GRAD, (size_t)C, 1) : output(OF_GRAD, (size_t)C);
    layernorm_backward(dx->at, dw->at, db->at, dout->at, dresidual_is ? other->at : NULL, x->at,
                       mean->at, rstd->at, w->at, N, C, accumulate);
    plain_layernorm_backward(dx->want, dw->want, db->want, dout->values,
                             dresidual_is ? other->values : NULL, x->values, mean->want, rstd->want,
                             w->values, N, C, accumulate);
    check(dx, LAYERNORM, "dx");
    check(dw, LAYERNORM, "dw");
    check(db, LAYERNORM, "db");
}

TEST(layernorm, "LayerNorm and its gradients; residual gradient absent, apart and in place; one "
                "row; more rows than a "
                "chunk of partial sums") {
    EACH_ORDER layernorm_case(1, 40, 0, false);
    EACH_ORDER layernorm_case(33, 128, 1, true);
    EACH_ORDER layernorm_case(300, 24, 2, false);
    EACH_ORDER layernorm_case(2200, 3, 1, true);
    EACH_ORDER layernorm_case(13, 9, 1, false);
    EACH_ORDER layernorm_case(5, 523, 2, true);
}

TEST(layernorm_wide, "rows of many warps, up to the longest that a block keeps, and one that it cannot") {
    EACH_ORDER layernorm_case(3, 1600, 2, true);
    EACH_ORDER layernorm_case(2, 3072, 1, false);
    EACH_ORDER layernorm_case(3, 3083, 2, true);
}

TEST(layernorm_unaligned, "arrays that begin at odd addresses") {
    arrays_shift(1);
    EACH_ORDER layernorm_case(7, 64, 1, true);
    arrays_shift(0);
}

// ---- linear layers ------------------------------------------------------------------------------

static void linear_case(int N, int K, int O) {
    Array *x = input(OF_ACT, (size_t)N * K, 1), *w = input(OF_PARAM, (size_t)O * K, 1);
    Array *bias = input(OF_PARAM, (size_t)O, 1), *residual = input(OF_ACT, (size_t)N * O, 1);
    Array *plain = output(OF_ACT, (size_t)N * O), *both = output(OF_ACT, (size_t)N * O);
    Array *in_place = in_out(OF_ACT, (size_t)N * O, 1);
    linear_forward(plain->at, x->at, w->at, NULL, NULL, N, K, O);
    plain_linear_forward(plain->want, x->values, w->values, NULL, NULL, N, K, O);
    check(plain, LINEAR, "x w.T");
    linear_forward(both->at, x->at, w->at, bias->at, residual->at, N, K, O);
    plain_linear_forward(both->want, x->values, w->values, bias->values, residual->values, N, K, O);
    check(both, LINEAR, "x w.T + bias + residual");
    linear_forward(in_place->at, x->at, w->at, bias->at, in_place->at, N, K, O);
    plain_linear_forward(in_place->want, x->values, w->values, bias->values, in_place->want, N, K,
                         O);
    check(in_place, LINEAR, "residual in place");
}

static void linear_gelu_case(int N, int K, int O) {
    Array *x = input(OF_ACT, (size_t)N * K, 1), *w = input(OF_PARAM, (size_t)O * K, 0.5);
    Array *bias = input(OF_PARAM, (size_t)O, 1), *out = output(OF_ACT, (size_t)N * O);
    Array *pre = output(OF_ACT, (size_t)N * O);
    linear_gelu_forward(out->at, pre->at, x->at, w->at, bias->at, N, K, O);
    plain_linear_gelu_forward(out->want, pre->want, x->values, w->values, bias->values, N, K, O);
    check(pre, LINEAR, "pre");
    check(out, GELU, "gelu(pre)");
}

static void linear_backward_case(int N, int K, int O, bool accumulate) {
    Array *x = input(OF_ACT, (size_t)N * K, 1), *w = input(OF_PARAM, (size_t)O * K, 1);
    Array *dout = input(OF_ACT, (size_t)N * O, 1), *pre = input(OF_ACT, (size_t)N * K, 3);
    Array *dx = output(OF_ACT, (size_t)N * K), *dx_gelu = output(OF_ACT, (size_t)N * K);
    linear_backward_input(dx->at, dout->at, w->at, NULL, N, K, O);
    plain_linear_backward_input(dx->want, dout->values, w->values, NULL, N, K, O);
    check(dx, LINEAR, "dx");
    linear_backward_input(dx_gelu->at, dout->at, w->at, pre->at, N, K, O);
    plain_linear_backward_input(dx_gelu->want, dout->values, w->values, pre->values, N, K, O);
    check(dx_gelu, GELU, "dx through GELU");

    Array *dw = accumulate ? in_out(OF_GRAD, (size_t)O * K, 1) : output(OF_GRAD, (size_t)O * K);
    Array *db = accumulate ? in_out(OF_GRAD, (size_t)O, 1) : output(OF_GRAD, (size_t)O);
    Array *alone = accumulate ? in_out(OF_GRAD, (size_t)O * K, 1) : output(OF_GRAD, (size_t)O * K);
    linear_backward_weight(dw->at, db->at, dout->at, x->at, N, K, O, accumulate);
    plain_linear_backward_weight(dw->want, db->want, dout->values, x->values, N, K, O, accumulate);
    check(dw, LINEAR, "dw");
    check(db, LINEAR, "dbias");
    linear_backward_weight(alone->at, NULL, dout->at, x->at, N, K, O, accumulate);
    plain_linear_backward_weight(alone->want, NULL, dout->values, x->values, N, K, O, accumulate);
    check(alone, LINEAR, "dw without bias");
}

static const int shapes[][3] = {{37, 64, 96},  {5, 16, 24}, {1, 8, 51},
                                {130, 24, 72}, {7, 13, 5},  {300, 8, 16}};
#define EACH_SHAPE                                                                                 \
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) EACH_ORDER

TEST(linear, "products with and without bias and residual; one row; odd sizes") {
    EACH_SHAPE linear_case(shapes[i][0], shapes[i][1], shapes[i][2]);
}

TEST(linear_gelu, "the product before GELU and after") {
    EACH_SHAPE linear_gelu_case(shapes[i][0], shapes[i][1], shapes[i][2]);
}

TEST(linear_backward, "gradients of input, weight and bias, written and added") {
    EACH_SHAPE linear_backward_case(shapes[i][0], shapes[i][1], shapes[i][2], i % 2);
}

TEST(linear_tall, "more rows than a grid has in its second dimension: a micro-batch of 64 times 1024 has 65536") {
    EACH_ORDER linear_case(65540, 1, 1);
    EACH_ORDER linear_backward_case(65540, 1, 1, true);
}

/* An array that begins `elements` after an aligned address, while the others are aligned. */
static Array *shifted_input(ElementKind kind, size_t count, size_t elements) {
    arrays_shift(elements);
    Array *array = input(kind, count, 1);
    arrays_shift(0);
    return array;
}

TEST(linear_unaligned, "one of x, w, bias, residual and result at an odd address, while the others are aligned") {
    for (int odd = 0; odd < 5; odd++) EACH_ORDER {
            int N = 16, K = 32, O = 64;
            Array *x = shifted_input(OF_ACT, (size_t)N * K, odd == 0);
            Array *w = shifted_input(OF_PARAM, (size_t)O * K, odd == 1);
            Array *bias = shifted_input(OF_PARAM, (size_t)O, odd == 2);
            Array *residual = shifted_input(OF_ACT, (size_t)N * O, odd == 3);
            Array *out = shifted_input(OF_ACT, (size_t)N * O, odd == 4);
            linear_forward(out->at, x->at, w->at, bias->at, residual->at, N, K, O);
            plain_linear_forward(out->want, x->values, w->values, bias->values, residual->values, N, K, O);
            check(out, LINEAR, "x w.T + bias + residual");
        }
}

/* backend_update.c: memory, square sums, AdamW and the reduction over micro-batches, of any backend. */
#include "backend.h"

TEST(memory, "device memory starts as zeros and returns what was written, rounded to its kind") {
    static const ElementKind kinds[] = {OF_PARAM, OF_ACT, OF_GRAD, OF_ROW_STAT, OF_OPTIMIZER_STATE};
    for (int k = 0; k < 5; k++) {
        float host[1000], back[1000];
        void *memory = device_alloc(sizeof host, "a test");
        read_floats(back, memory, kinds[k], 1000);
        for (int i = 0; i < 1000; i++) CHECK(back[i] == 0 && !signbit(back[i]));
        for (int i = 0; i < 1000; i++)
            host[i] = (float)(i - 500) * 1.00390625f; // 9 significant bits and more
        write_floats(memory, kinds[k], host, 1000);
        read_floats(back, memory, kinds[k], 1000);
        double micro_batch = element_size(kinds[k]) == 2 ? 0x1p-8 : 0;
        for (int i = 0; i < 1000; i++) CHECK_NEAR(back[i], host[i], micro_batch * fabs(host[i]));
        device_free(memory, sizeof host);
    }
}

static const Span spans[] = {
    {0, 20000, true}, {20032, 5, false}, {20096, 64, true}, {20160, 8192, false}};
enum { SPANS = 4, ELEMENTS = 20160 + 8192 };

TEST(square_sums, "squares are summed per tensor, in double; NaN and infinity stay") {
    EACH_ORDER {
        Array *grads = input(OF_GRAD, ELEMENTS, 3);
        double got[SPANS], want[SPANS], bad_got[SPANS];
        gradient_square_sums(got, grads->at, spans, SPANS);
        plain_gradient_square_sums(want, grads->values, spans, SPANS);
        for (int i = 0; i < SPANS; i++) CHECK_NEAR(got[i], want[i], 1e-12 * want[i]);
        float bad[2] = {NAN, INFINITY};
        write_floats(device_at(grads->at, OF_GRAD, 19999), OF_GRAD, &bad[0], 1);
        write_floats(device_at(grads->at, OF_GRAD, 20034), OF_GRAD, &bad[1], 1);
        gradient_square_sums(bad_got, grads->at, spans, SPANS);
        CHECK(isnan(bad_got[0]) && isinf(bad_got[1]) && bad_got[2] == got[2]);
    }
}

TEST(square_sums_long, "a tensor of more chunks than a block has threads, as a vocabulary's weights are") {
    enum { LONG = 256 * 8192 + 9 };
    static const Span long_spans[] = {{0, LONG, true}, {LONG + 55, 70, false}};
    EACH_ORDER {
        Array *grads = input(OF_GRAD, LONG + 55 + 70, 1e-3);
        double got[2], want[2];
        gradient_square_sums(got, grads->at, long_spans, 2);
        plain_gradient_square_sums(want, grads->values, long_spans, 2);
        for (int i = 0; i < 2; i++) CHECK_NEAR(got[i], want[i], 1e-12 * want[i]);
    }
}

TEST(adamw, "three steps of AdamW on master weights; parameters are the masters rounded; gaps are "
            "left alone") {
    EACH_ORDER {
        Array *params = in_out(OF_PARAM, ELEMENTS, 1), *grads = input(OF_GRAD, ELEMENTS, 1);
        Array *m = in_out(OF_OPTIMIZER_STATE, ELEMENTS, 0.1),
              *v = input(OF_OPTIMIZER_STATE, ELEMENTS, 0.1);
        Array *master = low_precision() ? in_out(OF_OPTIMIZER_STATE, ELEMENTS, 1) : params;
        float *positive = malloc(ELEMENTS * sizeof *positive);
        for (int i = 0; i < ELEMENTS; i++) v->want[i] = positive[i] = (float)fabs(v->values[i]);
        write_floats(v->at, OF_OPTIMIZER_STATE, positive, ELEMENTS);
        for (int t = 1; t <= 3; t++) {
            AdamWScalars step = {.learning_rate = 0.01,
                                 .beta1 = 0.9,
                                 .beta2 = 0.95,
                                 .eps = 1e-8,
                                 .weight_decay = 0.1,
                                 .correction1 = 1 - pow(0.9, t),
                                 .correction2 = 1 - pow(0.95, t),
                                 .grad_scale = 0.7};
            adamw_update(params->at, low_precision() ? master->at : NULL, m->at, v->at, grads->at,
                         spans, SPANS, &step);
            plain_adamw_update(master->want, NULL, m->want, v->want, grads->values, spans, SPANS,
                               &step);
        }
        check(master, ADAMW, "master weights");
        check(m, ADAMW, "m");
        check(v, ADAMW, "v");
        double *rounded = contents(params), *exact = contents(master);
        for (int s = 0; s < SPANS && low_precision(); s++)
            for (size_t i = spans[s].offset; i < spans[s].offset + spans[s].count; i++)
                CHECK_NEAR(rounded[i], exact[i], 0x1.01p-9 * exp2(ceil(log2(fabs(exact[i])))));
        for (size_t i = 20005; i < 20032; i++) CHECK(rounded[i] == params->values[i]);
        free(rounded);
        free(exact);
        free(positive);
    }
}

// ---- reduction ----------------------------------------------------------------------------------

enum { FIRST = 1024, COUNT = 3001 }; // of the one bucket that is used

/* 2^-48 micro-batches, rounded to nearest even. */
static long long fixed(double g) { return llrint(g * 0x1p48); }

TEST(reduction_exact, "--exact: micro-batches add up as 48-bit fixed point, to the last bit") {
    EACH_ORDER {
        Array *grads = in_out(OF_GRAD, FIRST + COUNT, 1e-3);
        long long sums[COUNT] = {0};
        reduction_open(grads->at, FIRST + COUNT, true, 3);
        for (int micro_batch = 0; micro_batch < 3; micro_batch++) {
            float host[COUNT];
            for (int i = 0; i < COUNT; i++) {
                host[i] = (float)(grads->values[FIRST + i] * (micro_batch + 0.37));
                sums[i] += fixed(host[i]);
            }
            write_floats(device_at(grads->at, OF_GRAD, FIRST), OF_GRAD, host, COUNT);
            reduction_ready(FIRST, COUNT, micro_batch == 0, micro_batch == 2, true);
        }
        CHECK(reduction_finish() == -1);
        double *got = contents(grads);
        for (int i = 0; i < COUNT; i++)
            CHECK(got[FIRST + i] == (double)((float)sums[i] * 0x1p-48f), "element %d", i);
        free(got);
        reduction_close();
    }
}

TEST(reduction_alone, "--exact with a lone micro-batch rounds in place, with the same bits") {
    EACH_ORDER {
        Array *grads = in_out(OF_GRAD, FIRST + COUNT, 1e-3);
        reduction_open(grads->at, FIRST + COUNT, true, 1);
        reduction_ready(FIRST, COUNT, true, true, true);
        CHECK(reduction_finish() == -1);
        double *got = contents(grads);
        // The plain loops read every element's sum at the end, also of those that are in no bucket.
        int first = strstr(backend_name(), "plain loops") ? FIRST : 0;
        for (int i = first; i < FIRST + COUNT; i++) {
            double rounded = (double)fixed(grads->values[i]) * 0x1p-48;
            CHECK(got[i] == (i < FIRST ? grads->values[i] : rounded), "element %d", i);
        }
        free(got);
        reduction_close();
    }
}

TEST(reduction_refuses,
     "--exact names the first element that is not finite or too large, also when only the sum is") {
    EACH_ORDER {
        static const float bad[] = {NAN, -INFINITY, 32768.0f, -1e9f};
        for (int k = 0; k < 4; k++) {
            Array *grads = input(OF_GRAD, FIRST + COUNT, 1);
            reduction_open(grads->at, FIRST + COUNT, true, 2);
            write_floats(device_at(grads->at, OF_GRAD, FIRST + 777), OF_GRAD, &bad[k], 1);
            write_floats(device_at(grads->at, OF_GRAD, FIRST + 2222), OF_GRAD, &bad[k], 1);
            reduction_ready(FIRST, COUNT, true, true, true);
            int64_t at = reduction_finish();
            CHECK(at == FIRST + 777, "%g: element %lld", (double)bad[k], (long long)at);
            reduction_close();
        }
        Array *grads = input(OF_GRAD, FIRST + COUNT, 1);
        float large = 20000;
        reduction_open(grads->at, FIRST + COUNT, true, 2);
        write_floats(device_at(grads->at, OF_GRAD, FIRST + 5), OF_GRAD, &large, 1);
        reduction_ready(FIRST, COUNT, true, false, true);
        reduction_ready(FIRST, COUNT, false, true, true);
        CHECK(reduction_finish() == FIRST + 5);
        reduction_ready(FIRST, COUNT, true, true, true); // the next update starts again
        CHECK(reduction_finish() == -1);
        reduction_close();
    }
}

/* One update of a lone micro-batch, whose element `at` is `value`: what reduction_finish says. */
static int64_t update_with(const Array *grads, int at, float value) {
    write_floats(device_at(grads->at, OF_GRAD, (size_t)(FIRST + at)), OF_GRAD, &value, 1);
    reduction_ready(FIRST, COUNT, true, true, true);
    return reduction_finish();
}

TEST(reduction_recovers, "a bad element is found wherever it is, and the next update, a good one, is not refused") {
    static const int places[] = {0, 33, 255, 777, 1100, 2047, 2048, COUNT - 1};
    EACH_ORDER {
        Array *grads = input(OF_GRAD, FIRST + COUNT, 1);
        reduction_open(grads->at, FIRST + COUNT, true, 2);
        for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
            int64_t at = update_with(grads, places[k], k % 2 ? NAN : INFINITY);
            CHECK(at == FIRST + places[k], "element %lld instead of %d", (long long)at, FIRST + places[k]);
            at = update_with(grads, places[k], 0.5f);
            CHECK(at == -1, "after a bad element at %d: element %lld", FIRST + places[k], (long long)at);
        }
        reduction_close();
    }
}

TEST(gradient_zero, "a rank without a micro-batch has zero gradients") {
    Array *grads = input(OF_GRAD, 1000, 1);
    gradient_zero(grads->at, 999);
    double *got = contents(grads);
    for (int i = 0; i < 1000; i++) CHECK(got[i] == (i < 999 ? 0 : grads->values[i]));
    free(got);
    release();
}

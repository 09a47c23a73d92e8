/* backend_model.c: the whole model on a device: losses and every gradient against the float64 values that
 * were recorded from PyTorch (test/expectations/), and generation against whole sequences. */
#include "backend.h"

#include "../llmc/model/gpt2.h"

// Of expect.c, compiled in double (its header names the CPU's element types).
typedef struct Expectations Expectations;
void formula_weights(float *out, const char *name, size_t count);
int32_t formula_token(const char *name, int vocab, size_t i);
Expectations *expect_open(const char *name);
const double *expect_values(Expectations *e, const char *tensor, size_t count);
void expect_close(Expectations *e);

enum { ROWS = 5, T = 19, VOCAB = 131, N = ROWS * T };

/* Relative to a tensor's largest value: float32, bf16 (whose weights alone are off by 2^-9). */
static const double loss_tolerance[2] = {2e-6, 4e-3}, gradient_tolerance[2] = {5e-6, 4e-2};

static void write_weights(GPT2 *model) {
    for (int i = 0; i < model->table.count; i++) {
        const Tensor *t = &model->table.tensors[i];
        float *host = calloc(t->count, sizeof *host);
        formula_weights(host, t->name, t->count);
        gpt2_write_weights(model, t, 0, host, t->count);
        free(host);
    }
}

static GPT2 *model_new(bool recompute) {
    Config config = {.layers = 2, .heads = 3, .channels = 24, .seq_len = 23, .vocab = VOCAB};
    GPT2 *model = gpt2_new(&config, ROWS, recompute, true);
    float nan = NAN; // backward must write every gradient, whatever was there before
    for (size_t i = 0; i < model->table.elements; i += 7)
        write_floats(device_at(model->grads, OF_GRAD, i), OF_GRAD, &nan, 1);
    write_weights(model);
    return model;
}

static void read_batch(int32_t *ids, int32_t *targets) {
    for (int b = 0; b < ROWS; b++)
        for (int t = 0; t < T; t++) {
            size_t at = (size_t)b * (T + 1) + t;
            ids[b * T + t] = formula_token("tiny.rows", VOCAB, at);
            targets[b * T + t] = formula_token("tiny.rows", VOCAB, at + 1);
        }
}

/* The largest difference relative to the largest recorded value; infinite where one is not finite. */
static double distance(const double *got, const double *want, size_t count) {
    double largest = 0, error = 0;
    for (size_t i = 0; i < count; i++) {
        double d = isfinite(got[i]) ? fabs(got[i] - want[i]) : INFINITY;
        largest = fmax(largest, fabs(want[i]));
        error = fmax(error, d);
    }
    return error / largest;
}

static void check_gradients(Expectations *e, const GPT2 *model) {
    for (int i = 0; i < model->table.count; i++) {
        const Tensor *t = &model->table.tensors[i];
        float *host = malloc(t->count * sizeof *host);
        double *got = malloc(t->count * sizeof *got);
        read_floats(host, device_at(model->grads, OF_GRAD, t->offset), OF_GRAD, t->count);
        for (size_t j = 0; j < t->count; j++) got[j] = (double)host[j];
        double error = distance(got, expect_values(e, t->name, t->count), t->count);
        CHECK(error <= gradient_tolerance[low_precision()], "%s: off by %.3g", t->name, error);
        free(host);
        free(got);
    }
}

/* Five sequences, in one micro-batch or as 2 and 3 sequences that add up. */
static void model_case(bool recompute, bool split) {
    Expectations *e = expect_open("gpt2_five");
    GPT2 *model = model_new(recompute);
    int32_t ids[N], targets[N];
    double losses[N];
    read_batch(ids, targets);
    Array *id = ids_of(ids, N), *target = ids_of(targets, N), *loss = output(OF_ROW_STAT, N);
    for (int first = 0, sequences; first < ROWS; first += sequences) {
        sequences = !split ? ROWS : first == 0 ? 2 : 3;
        size_t at = (size_t)first * T;
        const Id *micro_batch = device_at(id->at, OF_ID, at);
        gpt2_forward(model, micro_batch, sequences, T);
        gpt2_backward(model, device_at(loss->at, OF_ROW_STAT, at), micro_batch,
                      device_at(target->at, OF_ID, at), sequences, T, 1.0 / N, first > 0, NULL,
                      NULL);
    }
    read_stats(losses, loss->at, N);
    double error = distance(losses, expect_values(e, "losses", N), N);
    CHECK(error <= loss_tolerance[low_precision()], "losses are off by %.3g", error);
    check_gradients(e, model);
    (void)expect_values(e, "logits_of_row_0", (size_t)T * VOCAB);
    gpt2_free(model);
    expect_close(e);
}

TEST(model, "losses and all gradients of a tiny GPT are the recorded ones") {
    EACH_ORDER model_case(false, false);
}

TEST(model_split, "... also as 2 + 3 sequences that add up, and with blocks computed again") {
    EACH_ORDER model_case(true, true);
}

TEST(model_generates, "logits of one token after another are those of the whole sequence") {
    Expectations *e = expect_open("gpt2_five");
    const double *want = expect_values(e, "logits_of_row_0", (size_t)T * VOCAB);
    GPT2 *model = model_new(false);
    int32_t ids[N], targets[N];
    read_batch(ids, targets);
    Array *id = ids_of(ids, N);
    for (int t = 4; t < T; t++) { // five tokens at once, then one by one
        float logits[VOCAB];
        double got[VOCAB];
        int first = t == 4 ? 0 : t;
        gpt2_extend(model, device_at(id->at, OF_ID, (size_t)first), t + 1 - first, first);
        gpt2_logits(model, logits, t + 1 - first);
        for (int v = 0; v < VOCAB; v++) got[v] = (double)logits[v];
        double error = distance(got, want + (size_t)t * VOCAB, VOCAB);
        CHECK(error <= (low_precision() ? 2e-2 : 2e-6), "token %d: off by %.3g", t, error);
    }
    for (int i = 0; i < model->table.count; i++)
        (void)expect_values(e, model->table.tensors[i].name, model->table.tensors[i].count);
    (void)expect_values(e, "losses", N);
    gpt2_free(model);
    expect_close(e);
    release();
}

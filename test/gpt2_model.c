/* gpt2_model.c: the whole model: logits, losses and every gradient tensor against PyTorch. Next:
 * gpt2_differences.c, which confirms the gradients without it. */
#include "tiny.h"

static void check_five(bool recompute) {
    enum { N = 5 * TINY_T };
    Expectations *e = expect_open("gpt2_five");
    GPT2 *model = tiny_new(recompute);
    TinyBatch batch = tiny_batch("tiny.rows", 5);
    real *losses = fresh(N), *logits = fresh(TINY_T * TINY_VOCAB);
    tiny_micro_batch(model, losses, &batch, 0, 5, 1.0 / N, false);
    expect_tensor(e, "losses", losses, N, MODEL_LOSS, 1);
    tiny_expect(e, model, model->grads, MODEL_GRADIENT);
    linear_forward(logits, model->lnf, model->wte.w, NULL, NULL, TINY_T, TINY_CHANNELS, TINY_VOCAB);
    expect_tensor(e, "logits_of_row_0", logits, TINY_T * TINY_VOCAB, MODEL_LOSS, 1);

    // Losses alone, as validation takes them.
    for (int i = 0; i < N; i++) losses[i] = (real)NAN;
    gpt2_forward(model, batch.ids, 5, TINY_T);
    gpt2_loss(model, losses, batch.targets, 5, TINY_T);
    expect_tensor(e, "losses", losses, N, MODEL_LOSS, 1);
    release_fresh();
    gpt2_free(model);
    expect_close(e);
}

TEST(gpt2_five_sequences, "logits, losses and all 28 gradients of five sequences") {
    check_five(false);
}

TEST(gpt2_five_sequences_recomputed, "the same when backward runs each block's forward again") {
    check_five(true);
}

TEST(gpt2_ignored_targets, "ignored targets weigh nothing, a whole ignored sequence neither") {
    enum { N = 3 * TINY_T };
    Expectations *e = expect_open("gpt2_ignored");
    GPT2 *model = tiny_new(false);
    TinyBatch batch = tiny_batch("tiny.ignored.rows", 3);
    formula_ignore(batch.targets, "tiny.ignored", N);
    for (int t = 0; t < TINY_T; t++) batch.targets[TINY_T + t] = -1;
    int valid = 0;
    for (int i = 0; i < N; i++) valid += batch.targets[i] >= 0;
    double recorded = expect_values(e, "valid", 1)[0];
    CHECK(valid == recorded, "%d valid targets; %g were recorded", valid, recorded);

    real *losses = fresh(N);
    tiny_micro_batch(model, losses, &batch, 0, 3, 1.0 / valid, false);
    expect_tensor(e, "losses", losses, N, MODEL_LOSS, 1);
    tiny_expect(e, model, model->grads, MODEL_GRADIENT);
    release_fresh();
    gpt2_free(model);
    expect_close(e);
}

TEST(gpt2_token_by_token, "generation from the cache gives the logits of whole sequences") {
    GPT2 *model = tiny_new(false);
    TinyBatch batch = tiny_batch("tiny.rows", 5);
    Expectations *e = expect_open("gpt2_five");
    const double *want = expect_values(e, "logits_of_row_0", TINY_T * TINY_VOCAB);
    float logits[TINY_VOCAB];
    for (int t = 4; t < TINY_T; t++) { // five tokens at once, then one by one
        if (t == 4)
            gpt2_extend(model, batch.ids, 5, 0);
        else
            gpt2_extend(model, batch.ids + t, 1, t);
        gpt2_logits(model, logits, t == 4 ? 5 : 1);
        for (int v = 0; v < TINY_VOCAB; v++) CHECK_NEAR(logits[v], want[t * TINY_VOCAB + v], 1e-5);
    }
    expect_rest(e);
    gpt2_free(model);
    expect_close(e);
}

/* Remembers the gradients as they were when reported complete. */
typedef struct {
    const GPT2 *model;
    real *reported;
    size_t end; // the next bucket must end here: from the back to the front
} Buckets;

static void remember(void *context, size_t first, size_t count) {
    Buckets *b = context;
    CHECK(first + count == b->end, "bucket %zu..%zu, expected to end at %zu", first, first + count,
          b->end);
    memcpy(b->reported + first, b->model->grads + first, count * sizeof(real));
    b->end = first;
}

TEST(gpt2_buckets,
     "buckets cover all gradients once, and what is reported complete does not change") {
    GPT2 *model = tiny_new(false);
    TinyBatch batch = tiny_batch("tiny.rows", 5);
    size_t P = model->table.elements;
    Buckets buckets = {model, calloc(P, sizeof(real)), P};
    real *losses = fresh(2 * TINY_T);
    gpt2_forward(model, batch.ids, 2, TINY_T);
    gpt2_backward(model, losses, batch.ids, batch.targets, 2, TINY_T, 1, false, remember, &buckets);
    CHECK(buckets.end == 0, "elements below %zu in no bucket", buckets.end);
    for (int i = 0; i < model->table.count; i++) {
        const Tensor *t = &model->table.tensors[i];
        CHECK(memcmp(buckets.reported + t->offset, model->grads + t->offset,
                     t->count * sizeof(real)) == 0,
              "%s changed after it was reported", t->name);
    }
    free(buckets.reported);
    release_fresh();
    gpt2_free(model);
}

TEST(gpt2_threads, "one thread and three give the same bits") {
#ifdef _OPENMP
    int threads = omp_get_max_threads();
    TinyBatch batch = tiny_batch("tiny.rows", 5);
    GPT2 *models[2];
    for (int i = 0; i < 2; i++) {
        real *losses = fresh(5 * TINY_T);
        omp_set_num_threads(i ? 3 : 1);
        models[i] = tiny_new(false);
        tiny_micro_batch(models[i], losses, &batch, 0, 5, 0.01, false);
    }
    omp_set_num_threads(threads);
    for (int i = 0; i < models[0]->table.count; i++) {
        const Tensor *t = &models[0]->table.tensors[i];
        CHECK(memcmp(models[0]->grads + t->offset, models[1]->grads + t->offset,
                     t->count * sizeof(real)) == 0,
              "%s differs", t->name);
    }
    for (int i = 0; i < 2; i++) gpt2_free(models[i]);
    release_fresh();
#endif
}

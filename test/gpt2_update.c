/* gpt2_update.c: from the gradient to the new weights: global norm, clipping, AdamW, learning rate,
 * and six whole updates. Against torch.nn.utils.clip_grad_norm_, torch.optim.AdamW and the course's
 * formula. Next: chapter27_adamw.c. */
#include "tiny.h"

#include "../llmc/optimizer/adamw.h"
#include "../llmc/optimizer/schedule.h"

// ---------------------------------------------------------------------------------------------
// Clipping

/* Equal, where NaN and infinities count as themselves: for what a non-finite gradient must become.
 */
static bool same(double got, double want) {
    return isfinite(want) ? fabs(got - want) <= 2e-7 * fabs(want)
                          : (isnan(want) ? isnan(got) : got == want);
}

static double norm_of(const real *gradient, size_t count) {
    Span all = {.offset = 0, .count = count};
    double sum;
    gradient_square_sums(&sum, gradient, &all, 1);
    return sqrt(sum);
}

TEST(clip_pairs,
     "norm and clipped gradient of (3,4), at, below and far from the threshold, 0, Inf, NaN") {
    static const struct {
        const char *name;
        double g[2];
    } cases[] = {{"3_4", {3, 4}},  {"at_threshold", {0.6, 0.8}}, {"below", {0.3, 0.4}},
                 {"zero", {0, 0}}, {"inf", {INFINITY, 1}},       {"nan", {NAN, 1}}};
    Expectations *e = expect_open("clip");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        real g[2] = {(real)cases[i].g[0], (real)cases[i].g[1]};
        double norm = norm_of(g, 2), scale = clip_scale(norm, 1);
        double want = expect_values(e, named("%s.norm", cases[i].name), 1)[0];
        const double *clipped = expect_values(e, named("%s.gradient", cases[i].name), 2);
        CHECK(same(norm, want), "%s: norm %g, wanted %g", cases[i].name, norm, want);
        for (int j = 0; j < 2; j++)
            CHECK(same(g[j] * scale, clipped[j]), "%s[%d]: %.9g, wanted %.9g", cases[i].name, j,
                  g[j] * scale, clipped[j]);
    }

    GPT2 *model = tiny_new(false);
    TinyBatch batch = tiny_batch("tiny.rows", 5);
    real *losses = fresh(5 * TINY_T), *clipped = fresh(TINY_CHANNELS);
    tiny_micro_batch(model, losses, &batch, 0, 5, 1.0 / (5 * TINY_T), false);
    double norm = tiny_norm(model), thresholds[2] = {0.25, 64};
    for (int below = 0; below < 2; below++) {
        const char *name = below ? "model_below" : "model_above";
        double scale = clip_scale(norm, thresholds[below]);
        for (int i = 0; i < TINY_CHANNELS; i++) clipped[i] = (real)(model->lnfw.g[i] * scale);
        expect_doubles(e, named("%s.norm", name), &norm, 1, CLIP);
        expect_tensor(e, named("%s.gradient", name), clipped, TINY_CHANNELS, MODEL_GRADIENT, 1);
    }
    CHECK(clip_scale(norm, 64) == 1, "below the threshold nothing is scaled");
    CHECK(clip_scale(1e30, 0) == 1, "a threshold of 0 does not clip");
    release_fresh();
    gpt2_free(model);
    expect_close(e);
}

TEST(norm_of_many, "the norm of tensors longer than any block of the sum is the plain sum's") {
    enum { COUNT = 20011 };
    real *g = fresh_formula("norm.g", COUNT);
    const Span spans[2] = {{.offset = 0, .count = 7}, {.offset = 7, .count = COUNT - 7}};
    double sums[2], want[2] = {0};
    for (int i = 0; i < COUNT; i++) want[i >= 7] += (double)g[i] * g[i];
    gradient_square_sums(sums, g, spans, 2);
    for (int i = 0; i < 2; i++) CHECK_NEAR(sums[i], want[i], 1e-13 * want[i]);
    release_fresh();
}

// ---------------------------------------------------------------------------------------------
// AdamW

enum { MATRIX = 35, VECTOR = 7, AT = 40, STEPS = 10, ROOM = 48 }; // the vector starts at AT

typedef struct {
    const char *name;
    double decay, clip, gradient_scale, eps;
} AdamWCase;

static double adamw_rate(int step) { return (1 + step % 4) * 0x1p-7; }

static void check_adamw(Expectations *e, const AdamWCase *c) {
    const Span spans[2] = {{.offset = 0, .count = MATRIX, .decayed = true},
                           {.offset = AT, .count = VECTOR}};
    real *params = fresh(ROOM), *grads = fresh(ROOM), *m = fresh(ROOM), *v = fresh(ROOM);
    double matrices[STEPS * MATRIX], vectors[STEPS * VECTOR], norms[STEPS], sums[2];
    memset(m, 0, ROOM * sizeof *m);
    memset(v, 0, ROOM * sizeof *v);
    formula_fill(params, "adamw.matrix", MATRIX, plain);
    formula_fill(params + AT, "adamw.vector", VECTOR, plain);
    for (int step = 0; step < STEPS; step++) {
        Range range = {.bits = 16, .scale = c->gradient_scale};
        formula_fill(grads, named("adamw.dmatrix.%d", step), MATRIX, range);
        formula_fill(grads + AT, named("adamw.dvector.%d", step), VECTOR, range);
        gradient_square_sums(sums, grads, spans, 2);
        norms[step] = sqrt(sums[0] + sums[1]);
        AdamW optimizer = {.beta1 = 0.9,
                           .beta2 = 0.95,
                           .eps = c->eps,
                           .weight_decay = c->decay,
                           .clip = c->clip * (step + 1)};
        AdamWScalars scalars = adamw_scalars(&optimizer, step + 1, adamw_rate(step),
                                             clip_scale(norms[step], optimizer.clip));
        adamw_update(params, NULL, m, v, grads, spans, 2, &scalars);
        for (int i = 0; i < MATRIX; i++) matrices[step * MATRIX + i] = params[i];
        for (int i = 0; i < VECTOR; i++) vectors[step * VECTOR + i] = params[AT + i];
    }
    if (c->clip > 0) expect_doubles(e, named("%s.norm", c->name), norms, STEPS, CLIP);
    expect_doubles(e, named("%s.matrix", c->name), matrices, STEPS * MATRIX, ADAMW);
    expect_doubles(e, named("%s.vector", c->name), vectors, STEPS * VECTOR, ADAMW);
    expect_tensor(e, named("%s.matrix_m", c->name), m, MATRIX, ADAMW, 1);
    expect_tensor(e, named("%s.matrix_v", c->name), v, MATRIX, ADAMW, 1);
    expect_tensor(e, named("%s.vector_m", c->name), m + AT, VECTOR, ADAMW, 1);
    expect_tensor(e, named("%s.vector_v", c->name), v + AT, VECTOR, ADAMW, 1);
    for (int i = MATRIX; i < AT; i++)
        CHECK(isnan(params[i]), "an element of no tensor was updated");
    release_fresh();
}

TEST(adamw,
     "ten steps in both groups: decay or none, clipped, no gradient, and eps against a tiny root") {
    static const AdamWCase cases[] = {
        {"decay", 0.1, 0, 1, 1e-8},
        {"no_decay", 0, 0, 1, 1e-8},
        {"clip", 0.1, 0.5, 1, 1e-8},
        {"zero_gradient", 0.1, 0, 0, 1e-8},
        {"tiny_gradient", 0.1, 0, 0x1p-28, 1e-8},
        {"tiny_gradient_tiny_eps", 0.1, 0, 0x1p-28, 1e-16},
    };
    Expectations *e = expect_open("adamw");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check_adamw(e, &cases[i]);
    expect_close(e);
}

TEST(adamw_of_many, "every element of a long tensor is updated once, each from its own gradient") {
    enum { COUNT = 20011 };
    const double tolerance = IN_DOUBLE ? 1e-15 : 1e-6;
    const Span span = {.offset = 0, .count = COUNT, .decayed = true};
    const AdamW optimizer = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.5};
    real *w = fresh_formula("adamw.long", COUNT), *before = fresh_formula("adamw.long", COUNT);
    real *g = fresh_formula("adamw.dlong", COUNT), *m = fresh(COUNT), *v = fresh(COUNT);
    memset(m, 0, COUNT * sizeof *m);
    memset(v, 0, COUNT * sizeof *v);
    AdamWScalars step = adamw_scalars(&optimizer, 1, 0.125, clip_scale(1, optimizer.clip));
    adamw_update(w, NULL, m, v, g, &span, 1, &step);
    for (int i = 0; i < COUNT; i++) {
        double gradient = g[i]; // after one step m^ is it, and v^ its square
        double want = before[i] * (1 - 0.125 * 0.5) - 0.125 * gradient / (fabs(gradient) + 1e-8);
        CHECK_NEAR(w[i], want, tolerance);
        CHECK_NEAR(m[i], 0.1 * gradient, tolerance);
        CHECK_NEAR(v[i], 0.05 * gradient * gradient, tolerance);
    }
    release_fresh();
}

// ---------------------------------------------------------------------------------------------
// Schedule

TEST(schedules, "rates at every boundary of the four schedules, and far beyond") {
    static const char *const kinds[] = {[SCHEDULE_COSINE] = "cosine",
                                        [SCHEDULE_LINEAR] = "linear",
                                        [SCHEDULE_CONSTANT] = "constant",
                                        [SCHEDULE_WSD] = "wsd"};
    static const int spans[][2] = {{715, 19073}, {4, 20}, {0, 20}, {20, 20},
                                   {0, 1},       {1, 1},  {30, 20}};
    Expectations *e = expect_open("schedule");
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t s = 0; s < sizeof spans / sizeof spans[0]; s++) {
            const char *name = named("%s.%d.%d", kinds[k], spans[s][0], spans[s][1]);
            size_t count = expect_count(e, named("%s.steps", name));
            const double *steps = expect_values(e, named("%s.steps", name), count);
            Schedule schedule = {.kind = (ScheduleKind)k,
                                 .max = 6e-4,
                                 .min = 6e-5,
                                 .warmup = spans[s][0],
                                 .end = spans[s][1]};
            double rates[16];
            for (size_t i = 0; i < count && i < 16; i++)
                rates[i] = schedule_rate(&schedule, (int64_t)steps[i]);
            expect_doubles(e, named("%s.rates", name), rates, count, SCHEDULE);
        }
    expect_close(e);
}

// ---------------------------------------------------------------------------------------------
// Whole updates

TEST(training, "six updates of the tiny GPT in micro-batches of 2 and 3 sequences: losses, norms, "
               "rates, weights") {
    enum { UPDATES = 6, N = 5 * TINY_T };
    Expectations *e = expect_open("training");
    GPT2 *model = tiny_new(false);
    Schedule schedule = {
        .kind = SCHEDULE_COSINE, .max = 0x1p-6, .min = 0x1p-9, .warmup = 2, .end = UPDATES};
    AdamW optimizer = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-4, .weight_decay = 0.1, .clip = 1};
    double means[UPDATES] = {0}, norms[UPDATES], rates[UPDATES];
    for (int step = 0; step < UPDATES; step++) {
        TinyBatch batch = tiny_batch(named("training.rows.%d", step), 5);
        real losses[N];
        tiny_micro_batch(model, losses, &batch, 0, 2, 1.0 / N, false);
        tiny_micro_batch(model, losses, &batch, 2, 3, 1.0 / N, true);
        for (int i = 0; i < N; i++) means[step] += losses[i] / (double)N;
        norms[step] = tiny_norm(model);
        rates[step] = schedule_rate(&schedule, step);
        AdamWScalars scalars = adamw_scalars(&optimizer, step + 1, rates[step],
                                             clip_scale(norms[step], optimizer.clip));
        adamw_update(model->params, model->master, model->m, model->v, model->grads,
                     model->table.spans, model->table.count, &scalars);
    }
    expect_doubles(e, "losses", means, UPDATES, TRAINING);
    expect_doubles(e, "norms", norms, UPDATES, TRAINING);
    expect_doubles(e, "rates", rates, UPDATES, SCHEDULE);
    tiny_expect(e, model, model->params, TRAINING);
    gpt2_free(model);
    expect_close(e);
}

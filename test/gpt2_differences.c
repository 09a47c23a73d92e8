/* gpt2_differences.c: the gradients confirmed without any recorded value: along random directions,
 * a tensor at a time, the loss must change as the gradient says. Needs the double build. */
#include "tiny.h"

static double mean_loss(GPT2 *model, const TinyBatch *batch, real *losses) {
    double sum = 0;
    gpt2_forward(model, batch->ids, TINY_ROWS, TINY_T);
    gpt2_loss(model, losses, batch->targets, TINY_ROWS, TINY_T);
    for (int i = 0; i < TINY_ROWS * TINY_T; i++) sum += losses[i];
    return sum / (TINY_ROWS * TINY_T);
}

/* (L(w + h d) - L(w - h d)) / 2h. */
static double slope(GPT2 *model, const TinyBatch *batch, real *losses, real *w, const real *d,
                    size_t n, double h) {
    double loss[2];
    for (int side = 0; side < 2; side++) {
        double step = side ? -h : h;
        for (size_t i = 0; i < n; i++) w[i] += step * d[i];
        loss[side] = mean_loss(model, batch, losses);
        for (size_t i = 0; i < n; i++) w[i] -= step * d[i];
    }
    return (loss[0] - loss[1]) / (2 * h);
}

TEST(central_differences, "every gradient tensor agrees with central differences of the loss") {
    const double h =
        1.0 / 512; // with the extrapolation below, truncation and rounding are about 1e-12
    GPT2 *model = tiny_new(false);
    TinyBatch batch = tiny_batch("tiny.rows", TINY_ROWS);
    real *losses = fresh(TINY_ROWS * TINY_T);
    tiny_micro_batch(model, losses, &batch, 0, TINY_ROWS, 1.0 / (TINY_ROWS * TINY_T), false);
    double worst = 0;
    for (int i = 0; i < model->table.count; i++) {
        const Tensor *t = &model->table.tensors[i];
        for (int direction = 0; direction < 3; direction++) {
            real *d = fresh(t->count), *w = model->params + t->offset,
                 *g = model->grads + t->offset;
            double along = 0, norm = 0;
            formula_fill(d, named("differences.%s.%d", t->name, direction), t->count,
                         (Range){.bits = 16, .scale = 1 / sqrt(t->count)});
            for (size_t j = 0; j < t->count; j++) along += g[j] * d[j], norm += g[j] * g[j];
            double fine = slope(model, &batch, losses, w, d, t->count, h);
            double coarse = slope(model, &batch, losses, w, d, t->count, 2 * h);
            double difference = (4 * fine - coarse) / 3; // Richardson: the error in h^2 goes
            double error = fabs(difference - along) / sqrt(norm);
            CHECK(error <= 1e-9, "%s, direction %d: differences say %.12g, the gradient %.12g",
                  t->name, direction, difference, along);
            if (error > worst) worst = error;
        }
        release_fresh();
        losses = fresh(TINY_ROWS * TINY_T);
    }
    printf("  central differences: worst error %.2g of a tensor's gradient norm (tolerance 1e-9)\n",
           worst);
    release_fresh();
    gpt2_free(model);
}

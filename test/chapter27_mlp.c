/* chapter27_mlp.c: the experiment of 27.3 with a small MLP, 16 -> 32 -> 1: four samples at once against four
 * micro-batches of one sample. The course's notebook (build-nanogpt, play.ipynb) has it in PyTorch; the
 * chapter repeats it in float64. Here it runs on the program's own linear layers. Next: chapter27_batches.c. */
#include "chapter27.h"
#include "expect.h"

#include "../llmc/ops.h"

enum { SAMPLES = 4, IN = 16, HIDDEN = 32, OUT = 1 };

typedef struct {
    real w1[HIDDEN * IN], b1[HIDDEN]; // (32, 16), (32)
    real w2[OUT * HIDDEN], b2[OUT];   // (1, 32), (1)
} Mlp;

/* grads (+)= the gradient of scale * (sum of squared errors of n samples). x (n, 16), y (n). */
static void accumulate(Mlp *grads, const Mlp *mlp, const real *x, const real *y, int n, double scale,
                       bool add) {
    real pre[SAMPLES * HIDDEN], hidden[SAMPLES * HIDDEN], out[SAMPLES], dout[SAMPLES];
    real dhidden[SAMPLES * HIDDEN];
    linear_gelu_forward(hidden, pre, x, mlp->w1, mlp->b1, n, IN, HIDDEN);
    linear_forward(out, hidden, mlp->w2, mlp->b2, NULL, n, HIDDEN, OUT);
    for (int i = 0; i < n; i++) dout[i] = (real)(scale * 2 * (out[i] - y[i]));
    linear_backward_weight(grads->w2, grads->b2, dout, hidden, n, HIDDEN, OUT, add);
    linear_backward_input(dhidden, dout, mlp->w2, pre, n, HIDDEN, OUT);
    linear_backward_weight(grads->w1, grads->b1, dhidden, x, n, IN, HIDDEN, add);
}

/* Values between -1 and 1 that depend on `key` and the place alone. */
static void fill(real *values, size_t count, int key) {
    for (size_t i = 0; i < count; i++) values[i] = (real)sin(1.0 + 0.7 * key + 1.3 * (double)i * (key + 1));
}

static double largest(const Mlp *a, const Mlp *b) {
    const real *x = (const real *)a, *y = (const real *)b;
    double difference = 0;
    for (size_t i = 0; i < sizeof(Mlp) / sizeof(real); i++)
        difference = fmax(difference, fabs((double)x[i] - y[i]));
    return difference;
}

TEST(mlp_four_samples, "27.3: an MLP 16 -> 32 -> 1: the mean squared error of four samples, at once and as "
                       "four micro-batches of one, each divided by 4") {
    static Mlp mlp, whole, parts, undivided;
    static real x[SAMPLES * IN], y[SAMPLES];
    fill((real *)&mlp, sizeof mlp / sizeof(real), 1);
    for (size_t i = 0; i < sizeof mlp / sizeof(real); i++) ((real *)&mlp)[i] *= (real)0.25;
    fill(x, SAMPLES * IN, 2);
    fill(y, SAMPLES, 3);
    accumulate(&whole, &mlp, x, y, SAMPLES, 1.0 / SAMPLES, false);
    for (int k = 0; k < SAMPLES; k++) {
        accumulate(&parts, &mlp, x + k * IN, y + k, 1, 1.0 / SAMPLES, k > 0);
        accumulate(&undivided, &mlp, x + k * IN, y + k, 1, 1.0, k > 0);
    }
    double error = largest(&parts, &whole), forgotten = largest(&undivided, &whole), size = 0;
    for (size_t i = 0; i < sizeof whole / sizeof(real); i++)
        size = fmax(size, fabs((double)((real *)&whole)[i]));
    CHECK(size > 0.1, "the gradients are %g: the experiment shows nothing", size);
    CHECK(error <= (IN_DOUBLE ? 2e-15 : 1e-6), "%g", error);
    CHECK(fabs(forgotten - 3 * size) <= 1e-5, "without the division it is four times as large: %g", forgotten);
    SHOW("largest error of the gradients", "1.67e-16", "%.3g", error);
    SHOW("their error when the division by 4 is forgotten", "-", "%.3g", forgotten);
}

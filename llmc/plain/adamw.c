/* adamw.c: what an update does with the summed gradient: its squares for the global norm, and AdamW
 * (Loshchilov and Hutter 2019) as PyTorch 2.6 computes it. Shared code computes the norm, the clip factor
 * and the bias corrections from these (../optimizer/adamw.h). Next: device.c. */
#include "plain.h"

#include <math.h>

/* sums (count): a sum of squares for each span. */
void gradient_square_sums(double *sums, const real *grads, const Span *spans, int count) {
    PARALLEL_FOR
    for (int s = 0; s < count; s++) {
        const real *g = grads + spans[s].offset; // (spans[s].count)
        // One sum a tensor. In double, a sum of 10^9 squares keeps more digits than a float has.
        sums[s] = 0;
        for (size_t i = 0; i < spans[s].count; i++) sums[s] += (double)g[i] * g[i];
    }
}

void adamw_update(real *params,      // theta, all tensors
                  real *master,      // not used: params are their own master weights on a CPU
                  real *m,           // the running average of gradients
                  real *v,           // the running average of their squares
                  const real *grads, // summed over micro-steps and ranks, not yet clipped
                  const Span *spans, int count, const AdamWScalars *step) {
    const double lr = step->learning_rate, beta1 = step->beta1, beta2 = step->beta2;
    (void)master;
    for (int s = 0; s < count; s++) {
        const size_t first = spans[s].offset, end = first + spans[s].count;
        const double decay = spans[s].decayed ? step->weight_decay : 0; // none on biases, LayerNorm
        PARALLEL_FOR
        for (size_t i = first; i < end; i++) {
            double g = step->grad_scale * grads[i]; // clipped
            double m_i = beta1 * m[i] + (1 - beta1) * g;
            double v_i = beta2 * v[i] + (1 - beta2) * g * g;
            double m_hat = m_i / step->correction1; // m and v began at 0: 1 - beta^t corrects that
            double v_hat = v_i / step->correction2;
            double theta = params[i] - lr * decay * params[i]; // "decoupled": no part of g
            params[i] = (real)(theta - lr * m_hat / (sqrt(v_hat) + step->eps));
            m[i] = (real)m_i;
            v[i] = (real)v_i;
        }
    }
}

void gradient_zero(real *grads, size_t count) {
    for (size_t i = 0; i < count; i++) grads[i] = 0;
}

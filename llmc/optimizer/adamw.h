/* adamw.h: AdamW and the clipping of its gradient (chapter 27.1 and 27.4).
 *
 * Adam keeps two running averages for each parameter theta, of the same shape as theta: m, of its gradient
 * g, and v, of its squared gradient. Both begin at 0. The t-th update, t = 1, 2, ..., is, for each element:
 *
 *     g       <- min(1, c / (|g| + 1e-6)) * g               clip: |g| is the 2-norm of ALL gradients
 *     m       <- beta1 * m + (1 - beta1) * g
 *     v       <- beta2 * v + (1 - beta2) * g * g
 *     m_hat    = m / (1 - beta1^t)                          bias corrections: m and v began at 0,
 *     v_hat    = v / (1 - beta2^t)                          so early averages are too small
 *     theta   <- (1 - lr * lambda) * theta                  decay, apart from g: the W of AdamW
 *     theta   <- theta - lr * m_hat / (sqrt(v_hat) + eps)
 *
 * lambda is 0 for tensors with one dimension (biases, LayerNorm). The formulas are those of Loshchilov and
 * Hutter 2019, algorithm 2, as torch.optim.AdamW (PyTorch 2.6) computes them; the clip factor is that of
 * torch.nn.utils.clip_grad_norm_.
 *
 * What depends on the update alone (lr, the bias corrections, the clip factor) is computed here, once, in
 * double. The pass over all elements is adamw_update in ops.h: llmc/plain/adamw.c shows it in plain loops.
 * One pass does all seven lines; PyTorch calls that "fused". Next: schedule.h for lr. */
#ifndef LLMC_ADAMW_H
#define LLMC_ADAMW_H

#include "../ops.h"

typedef struct {
    double beta1, beta2;
    double eps;          // outside the bias-corrected root
    double weight_decay; // lambda; only for tensors with two or more dimensions
    double clip;         // c, the largest global norm of the gradient; 0 does not clip
} AdamW;

/* The clip factor min(1, clip / (norm + 1e-6)), or 1 when clip is 0. It scales the whole gradient, so its
 * direction stays; it does not limit single elements. A NaN norm gives NaN. */
double clip_scale(double norm, double clip);

/* The scalars of the t-th update, t = 1, 2, ...; grad_scale is the clip factor. */
AdamWScalars adamw_scalars(const AdamW *optimizer, int64_t t, double learning_rate, double grad_scale);

#endif

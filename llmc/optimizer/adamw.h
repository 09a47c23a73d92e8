/* adamw.h: the host's part of the optimizer (chapter 27.1 and 27.4): its settings, and the scalars of
 * one step, in double. The pass over the parameters is ops.h's adamw_update. */
#ifndef LLMC_ADAMW_H
#define LLMC_ADAMW_H

#include "../ops.h"

typedef struct {
    double beta1, beta2;
    double eps;          // outside the bias-corrected root
    double weight_decay; // decoupled; only tensors with two or more dimensions
    double clip;         // largest global norm of the gradient; 0 does not clip
} AdamW;

/* min(1, clip / (norm + 1e-6)): torch.nn.utils.clip_grad_norm_. 1 when clip is 0. */
double clip_scale(double norm, double clip);

/* The scalars of the t-th update, t = 1, 2, ... */
AdamWStep adamw_step(const AdamW *optimizer, int64_t t, double learning_rate, double norm);

#endif

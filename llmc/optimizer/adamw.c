/* adamw.c: the scalars of one AdamW step, computed once on the host; adamw.h has the formulas. */
#include "adamw.h"

#include "../base/elementary.h"

double clip_scale(double norm, double clip) {
    // --clip 0 switches clipping off.
    if (clip == 0) return 1.0;
    // PyTorch's clip_grad_norm_ adds 1e-6 too, so that a norm of 0 does not lead to a division by 0.
    double scale = clip / (norm + 1e-6);
    return scale > 1.0 ? 1.0 : scale; // a NaN norm stays NaN
}

AdamWScalars adamw_scalars(const AdamW *o, int64_t t, double learning_rate, double grad_scale) {
    // A power function of the project's own: libm's differ in the last bit from machine to machine.
    return (AdamWScalars){
        .learning_rate = learning_rate,
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .eps = o->eps,
        .weight_decay = o->weight_decay,
        .correction1 = 1.0 - elementary_power(o->beta1, t),
        .correction2 = 1.0 - elementary_power(o->beta2, t),
        .grad_scale = grad_scale,
    };
}

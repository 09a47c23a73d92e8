/* block.c: one transformer block. Forward first; backward then takes the same lines from the last to the
 * first, and quotes each line of forward above its gradient.
 *
 * The residual stream has two paths: x goes to mid unchanged and through attention, mid goes to out unchanged
 * and through the MLP. In backward both paths bring a gradient, and the two are added. That is why dx, the
 * gradient of the unchanged path, stays in place through the whole function, and why layernorm_backward, where
 * the other path begins, adds it. */
#include "block.h"

void block_forward(Act *out, const BlockActs *a, const Act *x, const BlockWeights *w, int B, int T,
                   int C, int NH, int past) {
    int N = B * T;
    Act *qkv = device_at(a->qkv, OF_ACT, (size_t)past * 3 * C); // where the new tokens' rows begin
    // mid = x + proj(attention(qkv(ln1(x))))
    layernorm_forward(a->ln1, a->ln1_mean, a->ln1_rstd, x, w->ln1w.w, w->ln1b.w, N, C); // (N, C)
    linear_forward(qkv, a->ln1, w->qkvw.w, w->qkvb.w, NULL, N, C, 3 * C);               // (N, 3C)
    if (past > 0)
        attention_decode(a->att, a->qkv, past, C, NH); // (1, C)
    else
        attention_forward(a->att, a->lse, a->qkv, B, T, C, NH);         // (N, C)
    linear_forward(a->mid, a->att, w->projw.w, w->projb.w, x, N, C, C); // (N, C)

    // out = mid + fcproj(gelu(fc(ln2(mid))))
    layernorm_forward(a->ln2, a->ln2_mean, a->ln2_rstd, a->mid, w->ln2w.w, w->ln2b.w, N, C); // (N, C)
    linear_gelu_forward(a->fc_gelu, a->fc, a->ln2, w->fcw.w, w->fcb.w, N, C, 4 * C);         // (N, 4C)
    linear_forward(out, a->fc_gelu, w->fcprojw.w, w->fcprojb.w, a->mid, N, 4 * C, C);        // (N, C)
}

void block_backward(Act *dx, const BlockScratch *scratch, const BlockActs *a, const Act *x,
                    const BlockWeights *w, int B, int T, int C, int NH, bool accumulate) {
    int N = B * T;
    Act *scratch_C = scratch->scratch_C, *scratch_4C = scratch->scratch_4C;
    // out = mid + fcproj(fc_gelu)
    linear_backward_weight(w->fcprojw.g, w->fcprojb.g, dx, a->fc_gelu, N, 4 * C, C, accumulate);
    // fc_gelu = gelu(fc)
    linear_backward_input(scratch_4C, dx, w->fcprojw.w, a->fc, N, 4 * C, C);
    // fc = fc(ln2)
    linear_backward_weight(w->fcw.g, w->fcb.g, scratch_4C, a->ln2, N, C, 4 * C, accumulate);
    linear_backward_input(scratch_C, scratch_4C, w->fcw.w, NULL, N, C, 4 * C);
    // ln2 = LayerNorm2(mid); mid is also added to out (residual), so dx comes in and is added
    layernorm_backward(dx, w->ln2w.g, w->ln2b.g, scratch_C, dx, a->mid, a->ln2_mean, a->ln2_rstd,
                       w->ln2w.w, N, C, accumulate);

    // mid = x + proj(att)
    linear_backward_weight(w->projw.g, w->projb.g, dx, a->att, N, C, C, accumulate);
    linear_backward_input(scratch_C, dx, w->projw.w, NULL, N, C, C);
    // att = attention(qkv), whose probabilities are computed again from qkv and lse
    attention_backward(scratch_4C, scratch_C, a->att, a->lse, a->qkv, B, T, C, NH);
    // qkv = qkv(ln1)
    linear_backward_weight(w->qkvw.g, w->qkvb.g, scratch_4C, a->ln1, N, C, 3 * C, accumulate);
    linear_backward_input(scratch_C, scratch_4C, w->qkvw.w, NULL, N, C, 3 * C);
    // ln1 = LayerNorm1(x); x is also added to mid (residual)
    layernorm_backward(dx, w->ln1w.g, w->ln1b.g, scratch_C, dx, x, a->ln1_mean, a->ln1_rstd,
                       w->ln1w.w, N, C, accumulate);
}

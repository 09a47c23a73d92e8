/* block.h: one transformer block, forward and backward (GPT-2, Radford et al. 2019, section 2.3):
 *     mid = x + proj(attention(ln1(x)))
 *     out = mid + fcproj(gelu(fc(ln2(mid))))
 * Not here: embedding and classifier (gpt2.h). The sums of the residual stream are fused into the
 * linear layers that end a branch; in backward, layernorm_backward adds the gradients of both paths.
 * Next: block.c, then gpt2.h. */
#ifndef LLMC_BLOCK_H
#define LLMC_BLOCK_H

#include "../ops.h"

/* A weight and its gradient. */
typedef struct {
    Param *w;
    Grad *g;
} Weight;

/* A block's weights, in the order of the tensor table. Matrices are (out, in). */
typedef struct {
    Weight ln1w, ln1b;       // (C)
    Weight qkvw, qkvb;       // (3C, C), (3C)
    Weight projw, projb;     // (C, C), (C)
    Weight ln2w, ln2b;       // (C)
    Weight fcw, fcb;         // (4C, C), (4C)
    Weight fcprojw, fcprojb; // (C, 4C), (C)
} BlockWeights;

/* What forward keeps for backward. N = B*T token positions. */
typedef struct {
    Act *ln1;                  // (N, C)
    RowStat *ln1_mean, *ln1_rstd; // (N)
    Act *qkv;                  // (N, 3C)
    Act *att;                  // (N, C)
    RowStat *lse;              // (B, NH, T)
    Act *mid;                  // (N, C)
    Act *ln2;                  // (N, C)
    RowStat *ln2_mean, *ln2_rstd; // (N)
    Act *fc;                   // (N, 4C) before GELU
    Act *fc_gelu;              // (N, 4C)
} BlockActs;

/* Scratch that all blocks' backward passes share. */
typedef struct {
    Act *scratch_C;  // (N, C)
    Act *scratch_4C; // (N, 4C)
} BlockScratch;

/* out (N,C) from x (N,C). past > 0: generation of one new token (B = T = 1) after `past` earlier ones, whose
 * keys and values are rows 0 .. past-1 of acts->qkv; the new token's become row `past`. */
void block_forward(Act *out, const BlockActs *acts, const Act *x, const BlockWeights *weights, int B,
                   int T, int C, int NH, int past);

/* dx (N,C): in, the gradient with respect to the block's output; out, to its input x. The weights'
 * gradients honour accumulate. */
void block_backward(Act *dx, const BlockScratch *scratch, const BlockActs *acts, const Act *x,
                    const BlockWeights *weights, int B, int T, int C, int NH, bool accumulate);

#endif

/* gpt2.h: the model. Its shape, its tensor table, its memory, forward and backward; written once,
 * for both backends, from the operations of ops.h.
 *
 * GPT-2 (Radford et al. 2019): learned positions, pre-LayerNorm blocks, GELU (tanh form), biases
 * everywhere, output matrix tied to the token embedding. Not here: the update (adamw.h), which sequences
 * are trained on (sequences.h), checkpoints. Reading order: config.h, block.h, this file, then gpt2.c. */
#ifndef LLMC_GPT2_H
#define LLMC_GPT2_H

#include "block.h"
#include "config.h"

typedef struct {
    Config config;
    TensorTable table;

    // Packed buffers, table.elements each. Without training only params exist.
    Param *params;
    Grad *grads;
    OptimizerState *master; // NULL where params are their own master weights (CPU)
    OptimizerState *m, *v;
    Weight wte, wpe; // (Vp, C), (config_positions, C)
    BlockWeights *blocks; // (L)
    Weight lnfw, lnfb; // (C)

    // Activations for up to max_sequences sequences of seq_len tokens.
    int max_sequences;
    bool recompute;    // keep only each block's input; backward runs the block's forward again
    Act **residual;    // (L+1) of (N, C): what enters block l; the last leaves the last block
    BlockActs *acts;   // (L); with recompute, or without training, all share one block's memory
    Act **cache;       // (L) of (seq_len, 3C): queries, keys and values of a text being generated
    Act *lnf;          // (N, C)
    RowStat *lnf_mean, *lnf_rstd; // (N)

    // Scratch of backward and classifier.
    Act *dresidual;       // (N, C) gradient of the residual stream
    BlockScratch scratch; // narrow is also the gradient of lnf
    Act *logits;          // (classifier_chunk, Vp)

    void *memory; // the arena that all of the above is carved from
    size_t bytes;
} GPT2;

/* Bytes of device memory that a model will take, by purpose: what `plan` prints. */
typedef struct {
    size_t params, grads, optimizer, activations, scratch;
} MemoryPlan;
MemoryPlan gpt2_memory(const Config *config, int max_sequences, bool recompute, bool training);

/* Builds the model with zeroed weights for micro-batches of up to max_sequences sequences. training: with gradients,
 * moments and the memory of backward. */
GPT2 *gpt2_new(const Config *config, int max_sequences, bool recompute, bool training);
void gpt2_free(GPT2 *model);

/* N(0, 0.02), residual projections N(0, 0.02/sqrt(2L)) (GPT-2 paper, section 2.3), biases 0, LayerNorm
 * scales 1. Each element depends on (seed, tensor, index) alone. */
void gpt2_init(GPT2 *model, uint64_t seed);

/* Packed weights of one tensor, elements first .. first+count, from and to the host. */
void gpt2_write_weights(GPT2 *model, const Tensor *tensor, size_t first, const float *host, size_t count);
void gpt2_read_weights(const GPT2 *model, const Tensor *tensor, size_t first, float *host, size_t count);

/* Activations of ids (B,T), up to the final LayerNorm. B <= max_sequences, T <= seq_len. */
void gpt2_forward(GPT2 *model, const Id *ids, int B, int T);

/* After gpt2_forward: losses (B,T) of targets (B,T), without gradients. */
void gpt2_loss(GPT2 *model, RowStat *losses, const Id *targets, int B, int T);

/* Called during backward when elements first .. first+count of grads are complete: per bucket, always
 * in the same order (the last block with ln_f, ..., block 0, the embeddings). */
typedef void (*BucketReady)(void *context, size_t first, size_t count);

/* After gpt2_forward: losses (B,T), and grads (+)= the gradient of scale * sum(losses). */
void gpt2_backward(GPT2 *model, RowStat *losses, const Id *ids, const Id *targets, int B, int T,
                   double scale, bool accumulate, BucketReady ready, void *context);

/* Calls `ready` for every bucket in backward's order: for a rank without a micro-batch. */
void gpt2_each_bucket(const GPT2 *model, BucketReady ready, void *context);

/* Generation, one sequence of text. Runs n new tokens that follow `past` earlier ones, whose keys and values
 * are in the cache; n is 1 unless past is 0. past + n <= seq_len. Uses the memory of gpt2_forward. */
void gpt2_extend(GPT2 *model, const Id *ids, int n, int past);

/* After gpt2_extend: the logits (V) of its last new token. Fatal (EXIT_NONFINITE) when one is not finite. */
void gpt2_logits(GPT2 *model, float *logits, int n);

/* Floating point operations per token of forward and backward: 6 per weight of a matrix (the tied one
 * once), and 12 L C T / 2 for causal attention (Kaplan et al. 2020; PaLM, appendix B). */
double gpt2_flops_per_token(const Config *config);

#endif

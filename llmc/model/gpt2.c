/* gpt2.c: the whole model, in the order in which it is used: memory, weights and their initialisation, forward,
 * backward, generation. Forward and backward are flat lists of calls to ops.h and block.h, with shapes.
 *
 *     ids (B,T) -> embedding -> residual[0] -> block 0 -> residual[1] -> ... -> residual[L] -> ln_f -> classifier
 *                  wte, wpe      (N,C)                     (N,C)               (N,C)           lnf     wte again
 *
 * The classifier multiplies by wte, the matrix of the embedding (tied weights): its gradient has two parts,
 * one from each end. The classifier writes the first in backward, the embedding adds the second at last. */
#include "gpt2.h"

#include "../base/arithmetic.h"
#include "../base/error.h"
#include "../base/activity.h"
#include "../base/finite.h"
#include "../base/memory.h"
#include "../base/parallel.h"
#include "../base/rng.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

// ---------------------------------------------------------------------------------------------
// Memory. The model has one arena on the device. The same function gives out its parts twice: the first pass,
// with base NULL, only computes the size; the second assigns addresses. So size and layout cannot disagree.

typedef struct {
    char *base; // NULL while measuring
    size_t used;
} Arena;

enum { ARENA_ALIGNMENT = 256 };

/* The next `count` elements of a kind; NULL while measuring. */
static void *take(Arena *arena, ElementKind kind, size_t count) {
    const char *what = "the model's memory";
    size_t bytes = size_mul(count, element_size(kind), what);
    size_t start = arena->used;
    arena->used = size_add(start, size_add(bytes, ARENA_ALIGNMENT - 1, what), what);
    arena->used -= arena->used % ARENA_ALIGNMENT;
    return arena->base ? arena->base + start : NULL;
}

/* m, v, and where weights are bf16 a float copy of them, the master weights, which AdamW changes. */
static void take_optimizer(GPT2 *model, Arena *arena) {
    size_t P = model->table.elements;
    bool low_precision = element_size(OF_PARAM) != element_size(OF_OPTIMIZER_STATE);
    model->master = low_precision ? take(arena, OF_OPTIMIZER_STATE, P) : NULL;
    model->m = take(arena, OF_OPTIMIZER_STATE, P);
    model->v = take(arena, OF_OPTIMIZER_STATE, P);
}

/* What a block keeps of its forward for its backward: block.h has the shapes. */
static BlockActs take_block(Arena *arena, size_t N, size_t C, size_t NH) {
    return (BlockActs){
        .ln1 = take(arena, OF_ACT, N * C),
        .ln1_mean = take(arena, OF_ROW_STAT, N),
        .ln1_rstd = take(arena, OF_ROW_STAT, N),
        .qkv = take(arena, OF_ACT, N * 3 * C),
        .att = take(arena, OF_ACT, N * C),
        .lse = take(arena, OF_ROW_STAT, N * NH),
        .mid = take(arena, OF_ACT, N * C),
        .ln2 = take(arena, OF_ACT, N * C),
        .ln2_mean = take(arena, OF_ROW_STAT, N),
        .ln2_rstd = take(arena, OF_ROW_STAT, N),
        .fc = take(arena, OF_ACT, N * 4 * C),
        .fc_gelu = take(arena, OF_ACT, N * 4 * C),
    };
}

/* In training each block keeps its activations until backward has used them. With --recompute, and without
 * training, all blocks share the memory of one (share): backward computes a block's forward again. Generation
 * needs keys and values of all blocks at once, so blocks that share memory have a cache of their own. */
static void take_activations(GPT2 *model, Arena *arena, size_t N, bool share, bool training) {
    const Config *c = &model->config;
    size_t C = c->channels;
    for (int l = 0; l <= c->layers; l++)
        model->residual[l] = training || l < 2 ? take(arena, OF_ACT, N * C) : model->residual[l - 2];
    for (int l = 0; l < c->layers; l++) {
        model->acts[l] = share && l > 0 ? model->acts[0] : take_block(arena, N, C, c->heads);
        model->cache[l] = share ? take(arena, OF_ACT, (size_t)c->seq_len * 3 * C) : model->acts[l].qkv;
    }
    model->lnf = take(arena, OF_ACT, N * C);
    model->lnf_mean = take(arena, OF_ROW_STAT, N);
    model->lnf_rstd = take(arena, OF_ROW_STAT, N);
}

/* Buffers that hold nothing between calls. Logits exist for a chunk of rows only: all of them would be larger than
 * all activations together. */
static void take_scratch(GPT2 *model, Arena *arena, size_t N, bool training) {
    size_t C = model->config.channels, Vp = config_padded_vocab(&model->config);
    model->logits = take(arena, OF_ACT, (size_t)classifier_chunk((int)N, (int)Vp) * Vp);
    if (!training) return;
    model->dresidual = take(arena, OF_ACT, N * C);
    model->scratch.scratch_C = take(arena, OF_ACT, N * C);
    model->scratch.scratch_4C = take(arena, OF_ACT, N * 4 * C);
}

/* Bytes taken since the last call with the same mark. */
static size_t taken(const Arena *arena, size_t *mark) {
    size_t bytes = arena->used - *mark;
    *mark = arena->used;
    return bytes;
}

/* Gives out all of the model's device memory, in the order of MemoryPlan's fields, and returns the bytes of
 * each. training: with gradients, AdamW's state and what backward needs. */
static MemoryPlan carve(GPT2 *model, Arena *arena, bool training) {
    MemoryPlan plan = {0};
    size_t P = model->table.elements, N = (size_t)model->max_sequences * model->config.seq_len,
           mark = 0;
    model->params = take(arena, OF_PARAM, P);
    plan.params = taken(arena, &mark);
    model->grads = training ? take(arena, OF_GRAD, P) : NULL;
    plan.grads = taken(arena, &mark);
    if (training) take_optimizer(model, arena);
    plan.optimizer = taken(arena, &mark);
    take_activations(model, arena, N, model->recompute || !training, training);
    plan.activations = taken(arena, &mark);
    take_scratch(model, arena, N, training);
    plan.scratch = taken(arena, &mark);
    return plan;
}

/* Where a tensor of the table lies, and its gradient, which is NULL without training. */
static Weight weight_of(const GPT2 *model, int tensor) {
    size_t offset = model->table.tensors[tensor].offset;
    return (Weight){
        .w = device_at(model->params, OF_PARAM, offset),
        .g = model->grads ? device_at(model->grads, OF_GRAD, offset) : NULL,
    };
}

enum { BLOCK_TENSORS = sizeof(BlockWeights) / sizeof(Weight) };

/* Points the named weights at their places in the packed buffers. The order of the tensor table (config.c) is
 * the order of the fields of BlockWeights. */
static void name_weights(GPT2 *model) {
    int tensor = 0;
    model->wte = weight_of(model, tensor++);
    model->wpe = weight_of(model, tensor++);
    for (int l = 0; l < model->config.layers; l++) {
        Weight *fields = (Weight *)&model->blocks[l];
        for (int i = 0; i < BLOCK_TENSORS; i++) fields[i] = weight_of(model, tensor++);
    }
    model->lnfw = weight_of(model, tensor++);
    model->lnfb = weight_of(model, tensor++);
}

/* A model with its tables, but without device memory: enough to measure what it would need. */
static GPT2 *model_outline(const Config *config, int max_sequences, bool recompute) {
    if ((int64_t)max_sequences * config->seq_len > INT_MAX)
        fatal(EXIT_USAGE,
              "--batch %d times --seq-len %d is more than %d tokens at once; use a smaller --batch",
              max_sequences, config->seq_len, INT_MAX);
    GPT2 *model = memory_new(1, sizeof *model, "the model");
    size_t L = config->layers;
    model->config = *config;
    model->table = tensor_table_new(config);
    model->max_sequences = max_sequences;
    model->recompute = recompute;
    model->blocks = memory_new(L, sizeof *model->blocks, "the model");
    model->acts = memory_new(L, sizeof *model->acts, "the model");
    model->residual = memory_new(L + 1, sizeof *model->residual, "the model");
    model->cache = memory_new(L, sizeof *model->cache, "the model");
    return model;
}

MemoryPlan gpt2_memory(const Config *config, int max_sequences, bool recompute, bool training) {
    GPT2 *model = model_outline(config, max_sequences, recompute);
    Arena measure = {NULL, 0};
    MemoryPlan plan = carve(model, &measure, training);
    gpt2_free(model);
    return plan;
}

GPT2 *gpt2_new(const Config *config, int max_sequences, bool recompute, bool training) {
    GPT2 *model = model_outline(config, max_sequences, recompute);
    Arena arena = {NULL, 0};
    carve(model, &arena, training);
    model->bytes = arena.used;
    model->memory = device_alloc(model->bytes, "the model");
    arena = (Arena){model->memory, 0};
    carve(model, &arena, training);
    name_weights(model);
    return model;
}

void gpt2_free(GPT2 *model) {
    if (model->memory) device_free(model->memory, model->bytes);
    tensor_table_free(&model->table);
    free(model->blocks);
    free(model->acts);
    free(model->residual);
    free(model->cache);
    free(model);
}

// ---------------------------------------------------------------------------------------------
// Weights

void gpt2_write_weights(GPT2 *model, const Tensor *tensor, size_t first, const float *host,
                        size_t count) {
    size_t at = tensor->offset + first;
    activity_tick();
    write_floats(device_at(model->params, OF_PARAM, at), OF_PARAM, host, count);
    if (model->master)
        write_floats(device_at(model->master, OF_OPTIMIZER_STATE, at), OF_OPTIMIZER_STATE, host,
                     count);
}

void gpt2_read_weights(const GPT2 *model, const Tensor *tensor, size_t first, float *host,
                       size_t count) {
    size_t at = tensor->offset + first;
    activity_tick();
    if (model->master)
        read_floats(host, device_at(model->master, OF_OPTIMIZER_STATE, at), OF_OPTIMIZER_STATE,
                    count);
    else
        read_floats(host, device_at(model->params, OF_PARAM, at), OF_PARAM, count);
}

enum { INIT_CHUNK = 1 << 16 }; // elements; even, because the generator makes two normal numbers at a time

/* Elements first .. first+count of a tensor's initial value; first is even. GPT-2's: normal with a standard
 * deviation of 0.02; the two matrices that end a branch have 0.02 / sqrt(2L), because 2L of them add to the
 * residual stream (Radford et al. 2019, section 2.3). Each number depends on seed, tensor and place alone, so
 * threads and chunks do not change it. */
static void init_chunk(float *out, const Tensor *tensor, int index, const Config *config, uint64_t seed,
                       size_t first, size_t count) {
    double constant = tensor->init == INIT_ONE ? 1 : 0, std = 0;
    if (tensor->init == INIT_NORMAL) std = 0.02;
    if (tensor->init == INIT_NORMAL_RESIDUAL) std = 0.02 / sqrt(2.0 * config->layers);
    PARALLEL_FOR
    for (size_t i = 0; i < count; i += 2) {
        double z[2] = {0, 0};
        if (std > 0) rng_normal_pair(z, seed, (first + i) / 2, (uint64_t)index);
        out[i] = (float)(constant + std * z[0]);
        if (i + 1 < count) out[i + 1] = (float)(constant + std * z[1]);
    }
}

void gpt2_init(GPT2 *model, uint64_t seed) {
    float *chunk = memory_new(INIT_CHUNK, sizeof(float), "initial weights");
    for (int i = 0; i < model->table.count; i++) {
        const Tensor *tensor = &model->table.tensors[i];
        for (size_t first = 0; first < tensor->count; first += INIT_CHUNK) {
            size_t left = tensor->count - first;
            size_t count = size_min(left, INIT_CHUNK);
            init_chunk(chunk, tensor, i, &model->config, seed, first, count);
            gpt2_write_weights(model, tensor, first, chunk, count);
        }
    }
    free(chunk);
}

// ---------------------------------------------------------------------------------------------
// Forward and backward

/* From the embeddings to the final LayerNorm. past: tokens of the sequence that were computed before (only in
 * generation). cached: keys and values go to the cache that generation reads. */
static void forward(GPT2 *m, const Id *ids, int B, int T, int past, bool cached) {
    int C = m->config.channels, L = m->config.layers, N = B * T;
    embedding_forward(m->residual[0], ids, m->wte.w, m->wpe.w, B, T, C, past); // (B, T, C)
    for (int l = 0; l < L; l++, activity_tick()) {
        BlockActs acts = m->acts[l];
        if (cached) acts.qkv = m->cache[l];
        block_forward(m->residual[l + 1], &acts, m->residual[l], &m->blocks[l], B, T, C, m->config.heads,
                      past); // (N, C)
    }
    layernorm_forward(m->lnf, m->lnf_mean, m->lnf_rstd, m->residual[L], m->lnfw.w, m->lnfb.w, N,
                      C); // (N, C)
}

void gpt2_forward(GPT2 *model, const Id *ids, int B, int T) { forward(model, ids, B, T, 0, false); }

void gpt2_loss(GPT2 *m, RowStat *losses, const Id *targets, int B, int T) {
    classifier(losses, NULL, NULL, m->logits, m->lnf, m->wte.w, targets, 0, B * T, m->config.channels,
               m->config.vocab, config_padded_vocab(&m->config), false);
}

/* Reports the bucket of block l as complete, or with l = -1 that of the embeddings. A bucket is a range of the
 * packed gradients whose all-reduce can start at once. The last block's contains ln_f as well. */
static void report_bucket(const GPT2 *m, int l, BucketReady ready, void *context) {
    const Tensor *tensors = m->table.tensors;
    size_t first = l < 0 ? 0 : tensors[2 + l * BLOCK_TENSORS].offset;
    size_t end = l == m->config.layers - 1 ? m->table.elements : tensors[2 + (l + 1) * BLOCK_TENSORS].offset;
    if (ready) ready(context, first, end - first);
}

void gpt2_each_bucket(const GPT2 *m, BucketReady ready, void *context) {
    for (int l = m->config.layers - 1; l >= -1; l--) report_bucket(m, l, ready, context);
}

void gpt2_backward(GPT2 *m, RowStat *losses, const Id *ids, const Id *targets, int B, int T,
                   double scale, bool accumulate, BucketReady ready, void *context) {
    const Config *c = &m->config;
    int C = c->channels, L = c->layers, NH = c->heads, N = B * T;
    // losses = cross_entropy(lnf @ wte.T, targets)
    classifier(losses, m->scratch.scratch_C, m->wte.g, m->logits, m->lnf, m->wte.w, targets, scale,
               N, C, c->vocab, config_padded_vocab(c), accumulate);
    // lnf = ln_f(residual[L])
    layernorm_backward(m->dresidual, m->lnfw.g, m->lnfb.g, m->scratch.scratch_C, NULL,
                       m->residual[L], m->lnf_mean, m->lnf_rstd, m->lnfw.w, N, C, accumulate);
    // residual[l+1] = block(residual[l])
    for (int l = L - 1; l >= 0; l--, activity_tick()) {
        // With --recompute the blocks share one set of activations, and the last block's are in it.
        bool gone = m->recompute && l < L - 1;
        if (gone)
            block_forward(m->residual[l + 1], &m->acts[l], m->residual[l], &m->blocks[l], B, T, C, NH, 0);
        block_backward(m->dresidual, &m->scratch, &m->acts[l], m->residual[l], &m->blocks[l], B, T, C, NH,
                       accumulate);
        report_bucket(m, l, ready, context);
    }
    // residual[0] = wte[ids] + wpe. wte's gradient is complete only now: the classifier wrote the other part.
    embedding_backward(m->wte.g, m->wpe.g, m->dresidual, ids, B, T, C, config_positions(c), accumulate);
    report_bucket(m, -1, ready, context);
}

// ---------------------------------------------------------------------------------------------
// Generation

void gpt2_extend(GPT2 *model, const Id *ids, int n, int past) { forward(model, ids, 1, n, past, true); }

void gpt2_logits(GPT2 *m, float *logits, int n) {
    const Act *last = device_at(m->lnf, OF_ACT, (size_t)(n - 1) * m->config.channels);
    linear_forward(m->logits, last, m->wte.w, NULL, NULL, 1, m->config.channels, m->config.vocab);
    read_floats(logits, m->logits, OF_ACT, m->config.vocab);
    if (first_nonfinite(logits, (size_t)m->config.vocab) < (size_t)m->config.vocab)
        fatal(EXIT_NONFINITE, "the logits are not finite: the weights, though finite, are too large to compute with");
}

/* 6 per weight of the matrix products: multiply and add are 2, and backward is two products for each of
 * forward. A block has 12 C^2 such weights, the classifier V C. Attention adds 6 L C T: its scores and its
 * weighted sum, of which causality needs half (Chowdhery et al. 2022, appendix B, counts the whole). */
double gpt2_flops_per_token(const Config *c) {
    double L = c->layers, C = c->channels, T = c->seq_len, V = c->vocab;
    return 6 * (12 * L * C * C + V * C) + 6 * L * C * T;
}

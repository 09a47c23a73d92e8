/* gpt2.h: the model. Its shape, its tensor table, its memory, forward and backward; written once,
 * for both backends, from the operations of ops.h.
 *
 * GPT-2 (Radford et al. 2019): learned positions, pre-LayerNorm blocks, GELU (tanh form), biases
 * everywhere, output matrix tied to the token embedding. Not here: the update (adamw.h), which rows
 * are trained on (rows.h), checkpoints. Reading order: Config, Tensor, GPT2, then gpt2.c. */
#ifndef LLMC_GPT2_H
#define LLMC_GPT2_H

#include "ops.h"

// ---------------------------------------------------------------------------------------------
// Shape (config.c)

typedef struct {
    int layers;   // L
    int heads;    // NH, divides channels
    int channels; // C
    int seq_len;  // T, tokens a row: how many positions have an embedding
    int vocab;    // V
} Config;

/* The shape called `name` (tiny, gpt2, gpt2-medium, gpt2-large, gpt2-xl) with V and T of its own;
 * returns false, leaving *config alone, when there is none. */
bool config_named(const char *name, Config *config);

/* NULL when the shape can be built, else why not, in words that name the option to change. */
const char *config_problem(const Config *config);

/* V rounded up to a multiple of 128. Rows V.. of wte are 0 and stay 0: never trained, sampled, saved. */
int config_padded_vocab(const Config *config);

// ---------------------------------------------------------------------------------------------
// Tensor table (config.c): the one source for allocation, decay groups, logs and files

typedef enum { INIT_ZERO, INIT_ONE, INIT_NORMAL, INIT_NORMAL_RESIDUAL } Init;

typedef struct {
    char name[32];     // Hugging Face's name, e.g. "h.0.attn.c_attn.weight"
    int dims;          // 1 or 2
    size_t shape[2];   // (out, in), or (n); without padding
    size_t count;      // elements without padding: a prefix of the padded tensor
    size_t offset;     // first element in the packed buffers
    size_t padded;     // elements it occupies there, alignment included
    Init init;
    bool decayed;      // dims >= 2
    bool transposed;   // a Conv1D in Hugging Face's files: stored (in, out) there
} Tensor;

typedef struct {
    Tensor *tensors; // wte, wpe, the 12 tensors of each block, ln_f's two
    int count;
    size_t elements;   // of a packed buffer: params, grads, m or v
    size_t parameters; // the sum of counts
    Span *spans;       // (count): the table as the backend sees it
} TensorTable;

TensorTable tensor_table_new(const Config *config);
void tensor_table_free(TensorTable *table);

/* Tensors and parameters of one decay group. */
typedef struct {
    int tensors;
    size_t parameters;
} DecayGroup;
DecayGroup tensor_table_group(const TensorTable *table, bool decayed);

/* The name of the tensor that holds packed element `index`. */
const char *tensor_table_name_at(const TensorTable *table, size_t index);

// ---------------------------------------------------------------------------------------------
// The model in memory (gpt2.c)

/* A weight and its gradient. */
typedef struct {
    Param *w;
    Grad *g;
} Weight;

/* One transformer block's weights. Shapes: biases and LayerNorm (out); matrices (out, in). */
typedef struct {
    Weight ln1w, ln1b;     // (C)
    Weight qkvw, qkvb;     // (3C, C), (3C)
    Weight projw, projb;   // (C, C), (C)
    Weight ln2w, ln2b;     // (C)
    Weight fcw, fcb;       // (4C, C), (4C)
    Weight fcprojw, fcprojb; // (C, 4C), (C)
} BlockWeights;

/* What backward needs to know of one block's forward. N = B*T rows. */
typedef struct {
    Act *ln1;                  // (N, C)
    Stat *ln1_mean, *ln1_rstd; // (N)
    Act *qkv;                  // (N, 3C)
    Act *att;                  // (N, C)
    Stat *lse;                 // (B, NH, T)
    Act *mid;                  // (N, C) residual stream between attention and MLP
    Act *ln2;                  // (N, C)
    Stat *ln2_mean, *ln2_rstd; // (N)
    Act *fc;                   // (N, 4C) before GELU
    Act *fc_gelu;              // (N, 4C)
} BlockActs;

typedef struct {
    Config config;
    TensorTable table;

    // Packed buffers, table.elements each. Without training only params exist.
    Param *params;
    Grad *grads;
    State *master; // NULL where params are their own master weights (CPU)
    State *m, *v;
    Weight wte, wpe; // (Vp, C), (seq_len, C)
    BlockWeights *blocks; // (L)
    Weight lnfw, lnfb; // (C)

    // Activations for up to max_rows rows of seq_len tokens.
    int max_rows;
    bool recompute;    // keep only each block's input; backward runs the block's forward again
    Act **residual;    // (L+1) of (N, C): what enters block l; the last leaves the model
    BlockActs *acts;   // (L); with recompute all share one block's memory
    Act *lnf;          // (N, C)
    Stat *lnf_mean, *lnf_rstd; // (N)

    // Scratch of backward and classifier.
    Act *dresidual; // (N, C) gradient of the residual stream
    Act *dnormed;   // (N, C)
    Act *dwide;     // (N, 4C)
    Act *logits;    // (classifier_chunk, Vp)

    void *memory; // the arena that all of the above is carved from
    size_t bytes;
} GPT2;

/* Bytes of device memory that a model will take, by purpose: what `plan` prints. */
typedef struct {
    size_t params, grads, optimizer, activations, scratch;
} MemoryPlan;
MemoryPlan gpt2_memory(const Config *config, int max_rows, bool recompute, bool training);

/* Builds the model with zeroed weights for units of up to max_rows rows. training: with gradients,
 * moments and the memory of backward. */
GPT2 *gpt2_new(const Config *config, int max_rows, bool recompute, bool training);
void gpt2_free(GPT2 *model);

/* N(0, 0.02), residual projections N(0, 0.02/sqrt(2L)) (GPT-2 paper, section 2.3), biases 0, LayerNorm
 * scales 1. Each element depends on (seed, tensor, index) alone. */
void gpt2_init(GPT2 *model, uint64_t seed);

/* Packed weights of one tensor, elements first .. first+count, from and to the host. */
void gpt2_write_weights(GPT2 *model, const Tensor *tensor, size_t first, const float *host, size_t count);
void gpt2_read_weights(const GPT2 *model, const Tensor *tensor, size_t first, float *host, size_t count);

/* Activations of ids (B,T), up to the final LayerNorm. B <= max_rows, T <= seq_len. */
void gpt2_forward(GPT2 *model, const Id *ids, int B, int T);

/* After gpt2_forward: losses (B,T) of targets (B,T), without gradients. */
void gpt2_loss(GPT2 *model, Stat *losses, const Id *targets, int B, int T);

/* Called during backward when elements first .. first+count of grads are complete: per bucket, always
 * in the same order (the last block with ln_f, ..., block 0, the embeddings). */
typedef void (*BucketReady)(void *context, size_t first, size_t count);

/* After gpt2_forward: losses (B,T), and grads (+)= the gradient of scale * sum(losses). */
void gpt2_backward(GPT2 *model, Stat *losses, const Id *ids, const Id *targets, int B, int T,
                   double scale, bool accumulate, BucketReady ready, void *context);

/* Calls `ready` for every bucket in backward's order: for a rank without a unit. */
void gpt2_each_bucket(const GPT2 *model, BucketReady ready, void *context);

/* Floating point operations per token of forward and backward: 6 per weight of a matrix (the tied one
 * once), and 12 L C T / 2 for causal attention (Kaplan et al. 2020; PaLM, appendix B). */
double gpt2_flops_per_token(const Config *config);

#endif

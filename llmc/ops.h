/* ops.h: the seam (backend interface). What a device must provide to train GPT-2. Three folders implement all
 * of it, and the linker chooses one: plain loops to read (llmc/plain/), the fast CPU kernels (llmc/cpu/) and CUDA
 * (train_gpt2.cu, llmc/cuda/):
 *
 *                   plain/         cpu/                                       cuda/
 *   device, memory  device.c       device.c                                   ../../train_gpt2.cu
 *   embedding       embedding.c    embedding.c                                embedding.cuh, radix_sort.cuh
 *   LayerNorm       layernorm.c    layernorm.c                                layernorm.cuh
 *   linear, GELU    linear.c       linear.c, gelu.c; gemm.c, microkernel.h    matmul.cuh, gelu.cuh
 *   attention       attention.c    attention_forward.c, attention_backward.c  attention.cuh, flash.cuh
 *   classifier      classifier.c   classifier.c                               classifier.cuh
 *   norm, AdamW     adamw.c        adamw.c                                    adamw.cuh
 *   reduction       reduction.c    reduction.c, exchange.c, fixed_point.h     gradient_reduction.cuh
 *
 * Rules of the seam
 * - Shared code holds device pointers but cannot read through them: here the element types are
 *   incomplete. A backend defines them (and OPS_BACKEND) before it includes this file.
 * - Every call enqueues. Results reach the host only through the read_* functions and
 *   reduction_finish, which wait; shared code never waits otherwise. (The CPU's queue is immediate.)
 * - Each x_forward is beside its x_backward. In a backward call, d_ names the gradient of the
 *   loss with respect to _.
 * - `accumulate` false: the gradient is written. True: it is added. So nothing needs zeroing.
 * - Order within every sum is fixed by the shapes alone: never by threads, blocks or ranks.
 *
 * Letters: B sequences in a micro-batch, T tokens in a sequence, N = B*T token positions, C channels,
 * NH heads, hs = C/NH head size, V vocabulary, Vp vocabulary padded to a multiple of 128, L layers.
 * Matrices are row-major; weights are (out, in), as torch.nn.Linear keeps them.
 * Next: plain/plain.h for the loops behind these declarations; model/gpt2.h for the model built from them. */
#ifndef LLMC_OPS_H
#define LLMC_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) ||     \
    (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "with fast math NaN would pass for a number, and sums would have no order: leave such options out of CFLAGS"
#endif

#ifdef __cplusplus
extern "C" {
#endif

// clang-format off
#ifndef OPS_BACKEND //                                                            CPU     CUDA
typedef struct Param Param;                   // a weight, as kernels read it     real    bf16 or float
typedef struct Act Act;                       // an activation or its gradient    real    bf16 or float
typedef struct Grad Grad;                     // a weight's gradient              real    float
typedef struct RowStat RowStat;               // statistics of a row, losses      real    float
typedef struct OptimizerState OptimizerState; // master weights, Adam's m and v   real    float
typedef struct Id Id;                         // token id; -1: no target          int32   int32
#endif

typedef enum { OF_PARAM, OF_ACT, OF_GRAD, OF_ROW_STAT, OF_OPTIMIZER_STATE, OF_ID, ELEMENT_KINDS } ElementKind;
// clang-format on

// ---------------------------------------------------------------------------------------------
// Device and memory

/* Opens the device for this rank (the local_rank-th rank on this machine). threads: CPU threads to
 * use, 0 for this rank's share of the cores. Fatal (EXIT_RUNTIME) when there is no such device. */
void backend_open(int local_rank, int local_size, int threads);

/* backend_open for `plan`, which computes nothing: it does not call the other ranks. Returns false if this machine
 * has no such device; backend_name then says so, and device_memory has no limit. */
bool backend_open_to_plan(int local_rank, int local_size, int threads);

/* One phrase for the start-up table, such as "CPU, 2 threads, float32, AVX-512". */
const char *backend_name(void);

/* How the backend was compiled, for --version: "AVX-512, float32, OpenMP", "CUDA 12.8, bf16, NCCL". */
const char *backend_build(void);

/* Peak floating point operations a second where known (for MFU), else 0. */
double backend_peak_flops(void);

/* Bytes of one element of a kind. */
size_t element_size(ElementKind kind);

/* Bytes that this rank can still allocate: free memory of its device less what its libraries will take, or its share of
 * the machine's. */
size_t device_memory(void);

/* Zeroed device memory, 256-byte aligned; fatal (EXIT_RUNTIME, naming `what`) if the allocation
 * fails. device_free takes the same number of bytes. */
void *device_alloc(size_t bytes, const char *what);
void device_free(void *device, size_t bytes);

/* The address `elements` elements of `kind` after `device`. */
static inline void *device_at(const void *device, ElementKind kind, size_t elements) {
    return (char *)device + elements * element_size(kind);
}

/* Host to device and back, converted from and to float (double for statistics and losses).
 * Writes have taken the host values when they return; reads wait for all that was enqueued. */
void write_floats(void *device, ElementKind kind, const float *host, size_t count);
void write_ids(Id *device, const int32_t *host, size_t count);
void read_floats(float *host, const void *device, ElementKind kind, size_t count);
void read_stats(double *host, const RowStat *device, size_t count);

// ---------------------------------------------------------------------------------------------
// Embedding (GPT-2, Radford et al. 2019, section 2.3: learned positions, added)

/* out[b,t] = wte[ids[b,t]] + wpe[first + t].
 * out (B,T,C), ids (B,T), wte (Vp,C), wpe (positions,C); first + T <= positions. */
void embedding_forward(Act *out, const Id *ids, const Param *wte, const Param *wpe, int B, int T,
                       int C, int first);

/* dwte[ids[b,t]] += dout[b,t], always added: the classifier has written dwte before (tied weights).
 * dwpe[t] (+)= sum over b of dout[b,t]; without accumulate, rows T.. of dwpe become 0.
 * dwte (Vp,C), dwpe (seq_len,C), dout (B,T,C). Deterministic: rows are added in order. */
void embedding_backward(Grad *dwte, Grad *dwpe, const Act *dout, const Id *ids, int B, int T, int C,
                        int seq_len, bool accumulate);

// ---------------------------------------------------------------------------------------------
// LayerNorm (Ba et al. 2016; torch.nn.LayerNorm with eps 1e-5 and biased variance)

#define LAYERNORM_EPS 1e-5

/* out = (x - mean) * rstd * w + b, row by row. out, x (N,C); mean, rstd (N); w, b (C). */
void layernorm_forward(Act *out, RowStat *mean, RowStat *rstd, const Act *x, const Param *w,
                       const Param *b, int N, int C);

/* dx = dresidual + the gradient through the LayerNorm; dresidual NULL counts as 0 and may be dx
 * itself. Here the gradient of the residual path is added to the branch's.
 * dx, dresidual, dout, x (N,C); dw, db (C) honour accumulate. dx may not be dout. */
void layernorm_backward(Act *dx, Grad *dw, Grad *db, const Act *dout, const Act *dresidual,
                        const Act *x, const RowStat *mean, const RowStat *rstd, const Param *w,
                        int N, int C, bool accumulate);

// ---------------------------------------------------------------------------------------------
// Linear layers, with fused bias, residual and GELU

/* out = x @ w.T + bias + residual; bias and residual may be NULL; residual may be out itself.
 * out, residual (N,O); x (N,K); w (O,K); bias (O). */
void linear_forward(Act *out, const Act *x, const Param *w, const Param *bias, const Act *residual,
                    int N, int K, int O);

/* pre = x @ w.T + bias; out = gelu(pre), the tanh form of Hendrycks and Gimpel 2016 (GPT-2's
 * "gelu_new", torch.nn.GELU(approximate="tanh")). out, pre (N,O); x (N,K); w (O,K); bias (O). */
void linear_gelu_forward(Act *out, Act *pre, const Act *x, const Param *w, const Param *bias, int N,
                         int K, int O);

/* dx = dout @ w, and where pre is not NULL, dx *= gelu'(pre): then x was gelu(pre).
 * dx, pre (N,K); dout (N,O); w (O,K). */
void linear_backward_input(Act *dx, const Act *dout, const Param *w, const Act *pre, int N, int K,
                           int O);

/* dw (+)= dout.T @ x; dbias (+)= sum over rows of dout; dbias may be NULL.
 * dw (O,K); dbias (O); dout (N,O); x (N,K). */
void linear_backward_weight(Grad *dw, Grad *dbias, const Act *dout, const Act *x, int N, int K,
                            int O, bool accumulate);

// ---------------------------------------------------------------------------------------------
// Causal self-attention (Vaswani et al. 2017, eq. 1), flash style (Dao et al. 2022): no (T,T) matrix
// is kept, only each row's log-sum-exp of the scaled scores.

/* out[b,t,h] = sum over s <= t of softmax_s(q_t . k_s / sqrt(hs)) v_s.
 * out (B,T,C); lse (B,NH,T); qkv (B,T,3C): q, k, v beside each other, heads inside each. */
void attention_forward(Act *out, RowStat *lse, const Act *qkv, int B, int T, int C, int NH);

/* dqkv (B,T,3C) is written; dout, out (B,T,C); lse (B,NH,T); qkv (B,T,3C). */
void attention_backward(Act *dqkv, const Act *dout, const Act *out, const RowStat *lse,
                        const Act *qkv, int B, int T, int C, int NH);

/* One new query against its past: the row `position` of attention_forward with B = 1.
 * out (C); qkv (seq_len,3C), of which rows 0..position are filled. The key-value cache of sampling. */
void attention_decode(Act *out, const Act *qkv, int position, int C, int NH);

// ---------------------------------------------------------------------------------------------
// Classifier: the tied output matrix, softmax and cross-entropy, forward and backward at once,
// chunk by chunk of rows, so that logits for the whole batch never exist.

/* How many rows the classifier likes to take at once: sizes its scratch. */
int classifier_chunk(int N, int Vp);

/* losses[n] = -log softmax(x[n] @ wte[:V].T)[targets[n]]; 0 where targets[n] is -1 (no target).
 * With dx not NULL also the gradients of scale * (sum of losses): dx (written) and dwte
 * (honours accumulate; rows V.. get 0). Ignored rows have gradient 0.
 * losses (N); dx, x (N,C); dwte, wte (Vp,C); targets (N); logits: scratch of
 * classifier_chunk(N,Vp) * Vp elements, which are overwritten. */
void classifier(RowStat *losses, Act *dx, Grad *dwte, Act *logits, const Act *x, const Param *wte,
                const Id *targets, double scale, int N, int C, int V, int Vp, bool accumulate);

// ---------------------------------------------------------------------------------------------
// The update: norm and AdamW over the tensor table

/* One tensor of the packed buffers: elements offset .. offset+count of params, grads and moments. */
typedef struct {
    size_t offset;
    size_t count;
    bool decayed; // two or more dimensions: weight decay applies
} Span;

/* sums[i] = sum of squares of gradients over spans[i], in double, NaN and Inf kept. Added in blocks
 * of fixed size, so that the value does not depend on threads or ranks. Waits. */
void gradient_square_sums(double *sums, const Grad *grads, const Span *spans, int count);

/* The scalars of one AdamW step, computed on the host in double (optimizer/adamw.h). */
typedef struct {
    double learning_rate;
    double beta1, beta2, eps;
    double weight_decay; // lambda, for decayed spans
    double correction1;  // 1 - beta1^t
    double correction2;  // 1 - beta2^t
    double grad_scale;   // the clip factor min(1, c / (norm + 1e-6))
} AdamWScalars;

/* One pass over all spans (PyTorch 2.6 torch.optim.AdamW, single-tensor form):
 *   g = grad_scale * grad;  w -= lr * lambda * w (decayed spans);
 *   m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2;
 *   w -= (lr / correction1) * m / (sqrt(v) / sqrt(correction2) + eps)
 * master NULL: params are their own master weights. */
void adamw_update(Param *params, OptimizerState *master, OptimizerState *m, OptimizerState *v,
                  const Grad *grads, const Span *spans, int count, const AdamWScalars *step);

/* grads[0..count) = 0: only for a rank that has no micro-batch in an update. */
void gradient_zero(Grad *grads, size_t count);

// ---------------------------------------------------------------------------------------------
// Reduction: gradients are SUMMED over micro-batches and ranks, bucket by bucket

/* Prepares for gradients of `count` elements. exact: each micro-batch's gradient is rounded to 64-bit fixed
 * point and added as integers (integer addition is associative), so that the result does not depend on which rank
 * or micro-step computed a micro-batch. micro_batches: the most that any rank has in an update. */
void reduction_open(Grad *grads, size_t count, bool exact, int micro_batches);
void reduction_close(void);

/* Bytes that reduction_open will take, for the memory plan. */
size_t reduction_bytes(size_t count, bool exact, int micro_batches, int ranks);

/* Elements first .. first+count are complete for this rank's current micro-batch. first_micro_batch: it is the
 * rank's first of this update (sums restart at 0); last_micro_batch: its last (ranks may now exchange).
 * has_micro_batch false: the rank had no micro-batch in this update and contributes zeros.
 * Every rank makes the same calls with last_micro_batch, in the same order, once per bucket and update. */
void reduction_ready(size_t first, size_t count, bool first_micro_batch, bool last_micro_batch,
                     bool has_micro_batch);

/* Waits until grads hold the sum over all micro-batches and ranks. Returns -1, or the index of the first
 * element of THIS rank's contribution that was not finite or (exact) beyond the fixed-point range. */
int64_t reduction_finish(void);

#ifdef __cplusplus
}
#endif
#endif

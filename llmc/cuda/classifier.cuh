/* classifier.cuh: the tied output matrix, softmax and cross-entropy, forward and backward at once. Logits
 * exist for one chunk of rows at a time; the gradient takes their place. A row of logits is read once, kept in
 * registers, and its gradient is written once: 1024 threads keep 49152 columns of bf16, 98 % of GPT-2's row; what
 * is beyond is read twice, the second time from L2. (More registers would spill on sm_80.) */
#ifndef LLMC_CUDA_CLASSIFIER_CUH
#define LLMC_CUDA_CLASSIFIER_CUH

#include "matmul.cuh"
#include "tensor_core.cuh"

constexpr int CLASSIFIER_THREADS_MAX = 1024;
constexpr int CLASSIFIER_KEPT = 24 / WORDS<Act>; // packs of a row that a thread keeps, in 24 registers
#ifndef CLASSIFIER_ROWS // of logits at a time; the tests take few, for several chunks of small shapes
#define CLASSIFIER_ROWS 16384
#endif

/* exp(x - max). With bf16 logits as 2^(x log2(e) - max log2(e)): for |max| < 100 off by 1e-5 of itself, a
 * hundredth of what the logits are rounded to. */
__device__ inline float exp_below(float x, float max) {
    return sizeof(Act) == 2 ? exp2_approximately(fmaf(x, LOG2_E, -max * LOG2_E)) : expf(x - max);
}

/* words = PACK logits from column c on; minus infinity from column V on. */
__device__ inline void load_logits(uint32_t words[WORDS<Act>], const Act *row, int c, int V) {
    load_words(words, row + c, V - c);
    if (c + PACK <= V) return;
#pragma unroll
    for (int i = 0; i < PACK; i++)
        if (c + i >= V) set_minus_infinity<Act>(words, i);
}

/* Adds PACK logits to a softmax. */
__device__ inline void add_logits(Softmax *to, const uint32_t words[WORDS<Act>]) {
    float max = to->max;
#pragma unroll
    for (int i = 0; i < PACK; i++) max = fmaxf(max, unpack<Act>(words, i));
    float shift = max == -INFINITY ? 0.0f : max; // -inf adds 0 and NaN adds NaN
    to->sum *= exp_below(to->max, shift);
#pragma unroll
    for (int i = 0; i < PACK; i++) to->sum += exp_below(unpack<Act>(words, i), shift);
    to->max = max;
}

/* row[c + i] = factor * exp(logit - max), i < PACK; columns from Vp on are left alone. */
__device__ inline void store_gradient(Act *row, int c, const uint32_t words[WORDS<Act>], float factor,
                                      float max, int Vp) {
    float v[PACK];
#pragma unroll
    for (int i = 0; i < PACK; i++) v[i] = factor * exp_below(unpack<Act>(words, i), max);
    store(row + c, v, Vp - c);
}

/* losses[n] = logsumexp(logits[n]) - logits[n, target]; 0 without a target. With `backward` logits[n]
 * becomes scale * (softmax - onehot(target)), 0 for padding columns and rows without a target.
 * logits (rows,Vp), targets and losses (rows). A block a row; thread t has columns PACK * t, and every
 * PACK * blockDim.x on. */
__global__ void __launch_bounds__(CLASSIFIER_THREADS_MAX)
    classifier_kernel(RowStat *losses, Act *logits, const Id *targets, float scale, int V, int Vp,
                      bool backward) {
    Act *row = logits + (size_t)blockIdx.x * Vp;
    int first = threadIdx.x * PACK, step = blockDim.x * PACK;
    uint32_t kept[CLASSIFIER_KEPT][WORDS<Act>], words[WORDS<Act>];
#pragma unroll
    for (int p = 0; p < CLASSIFIER_KEPT; p++) load_logits(kept[p], row, first + p * step, V);
    int target = targets[blockIdx.x];
    if (target < 0) { // the whole block
        const float zeros[PACK] = {0};
        if (threadIdx.x == 0) losses[blockIdx.x] = 0;
        for (int c = first; c < Vp && backward; c += step) store(row + c, zeros, Vp - c);
        return;
    }
    float target_logit = to_float(row[target]); // before anybody overwrites it: block_merge waits for all
    Softmax all = {-INFINITY, 0};
#pragma unroll
    for (int p = 0; p < CLASSIFIER_KEPT; p++)
        if (first + p * step < V) add_logits(&all, kept[p]);
    for (int c = first + CLASSIFIER_KEPT * step; c < V; c += step) {
        load_logits(words, row, c, V);
        add_logits(&all, words);
    }
    all = block_merge(all);
    if (threadIdx.x == 0) losses[blockIdx.x] = all.max - target_logit + logf(all.sum);
    if (!backward) return;
    float factor = scale / all.sum;
#pragma unroll
    for (int p = 0; p < CLASSIFIER_KEPT; p++)
        if (first + p * step < Vp) store_gradient(row, first + p * step, kept[p], factor, all.max, Vp);
    for (int c = first + CLASSIFIER_KEPT * step; c < Vp; c += step) {
        load_logits(words, row, c, V);
        store_gradient(row, c, words, factor, all.max, Vp);
    }
    if (threadIdx.x == target / PACK % blockDim.x) // this thread has written the target's column
        from_float(row + target, factor * exp_below(target_logit, all.max) - scale);
}

// ---- launchers ----------------------------------------------------------------------------------

/* A fixed number of rows, so that sums over chunks have the same bits on every card. Few rows would make many
 * passes over dwte, and products too small for the GPU: 16384 are four chunks of GPT-2's usual micro-batch, and
 * 1.65 GB of logits. */
int classifier_chunk(int N, int) { return N < CLASSIFIER_ROWS ? N : CLASSIFIER_ROWS; }

/* Threads for rows of Vp logits: a pack each, or as many as a block may have. */
static int classifier_threads(int Vp) {
    int threads = divide_up(divide_up(Vp, PACK), WARP) * WARP;
    return threads < CLASSIFIER_THREADS_MAX ? threads : CLASSIFIER_THREADS_MAX;
}

void classifier(RowStat *losses, Act *dx, Grad *dwte, Act *logits, const Act *x, const Param *wte,
                const Id *targets, double scale, int N, int C, int V, int Vp, bool accumulate) {
    int chunk = classifier_chunk(N, Vp);
    for (int first = 0; first < N; first += chunk) {
        int rows = N - first < chunk ? N - first : chunk;
        const Act *x_rows = x + (size_t)first * C;
        linear_forward(logits, x_rows, wte, NULL, NULL, rows, C, Vp);
        LAUNCH(classifier_kernel, rows, classifier_threads(Vp), 0, losses + first, logits,
               targets + first, (float)scale, V, Vp, dx != NULL);
        if (!dx) continue;
        linear_backward_input(dx + (size_t)first * C, logits, wte, NULL, rows, C, Vp);
        linear_backward_weight(dwte, NULL, logits, x_rows, rows, C, Vp, accumulate || first > 0);
    }
}

#endif

/* classifier.cuh: the tied output matrix, softmax and cross-entropy, forward and backward at once. Logits
 * exist for one chunk of rows at a time; the gradient takes their place. */
#ifndef LLMC_CUDA_CLASSIFIER_CUH
#define LLMC_CUDA_CLASSIFIER_CUH

#include "matmul.cuh"

constexpr int CLASSIFIER_THREADS = 512;
#ifndef CLASSIFIER_BYTES // of logits at a time; the tests take few, for several chunks of small shapes
#define CLASSIFIER_BYTES (256 << 20)
#endif

/* One thread's share of a row's softmax: columns threadIdx.x * PACK, and every blockDim.x * PACK on. */
__device__ inline Softmax softmax_share(const Act *row, int V) {
    Softmax mine = {-INFINITY, 0};
    for (int c = threadIdx.x * PACK; c < V; c += blockDim.x * PACK) {
        float v[PACK];
        load(v, row + c, V - c);
        float max = mine.max;
#pragma unroll
        for (int i = 0; i < PACK; i++)
            if (c + i < V) max = fmaxf(max, v[i]);
        float shift = max == -INFINITY ? 0.0f : max; // -inf adds 0 and NaN adds NaN
        mine.sum *= expf(mine.max - shift);
#pragma unroll
        for (int i = 0; i < PACK; i++)
            if (c + i < V) mine.sum += expf(v[i] - shift);
        mine.max = max;
    }
    return mine;
}

/* losses[n] = logsumexp(logits[n]) - logits[n, target]; 0 without a target. With `backward` logits[n]
 * becomes scale * (softmax - onehot(target)), 0 for padding columns and rows without a target.
 * logits (rows,Vp), targets and losses (rows). A block a row. */
__global__ void __launch_bounds__(CLASSIFIER_THREADS)
    classifier_kernel(RowStat *losses, Act *logits, const Id *targets, float scale, int V, int Vp,
                      bool backward) {
    Act *row = logits + (size_t)blockIdx.x * Vp;
    int target = targets[blockIdx.x];
    Softmax all = {0, 1};
    if (target >= 0)
        all = block_merge(softmax_share(row, V)); // the same branch for the whole block
    if (threadIdx.x == 0)
        losses[blockIdx.x] = target >= 0 ? all.max + logf(all.sum) - to_float(row[target]) : 0.0f;
    if (!backward) return;
    __syncthreads(); // the target's logit has been read
    float factor = target >= 0 ? scale / all.sum : 0.0f;
    for (int c = threadIdx.x * PACK; c < Vp; c += blockDim.x * PACK) {
        float v[PACK];
        load(v, row + c, Vp - c);
#pragma unroll
        for (int i = 0; i < PACK; i++) {
            float gradient = c + i < V && target >= 0 ? factor * expf(v[i] - all.max) : 0.0f;
            v[i] = c + i == target ? gradient - scale : gradient;
        }
        store(row + c, v, Vp - c);
    }
}

// ---- launchers ----------------------------------------------------------------------------------

/* As many rows as fit the scratch that logits may take, in whole tiles of the matmul. */
int classifier_chunk(int N, int Vp) {
    int rows = (int)(CLASSIFIER_BYTES / ((size_t)Vp * sizeof(Act)));
    if (rows > 128) rows -= rows % 128;
    return rows < 1 ? 1 : rows < N ? rows : N;
}

void classifier(RowStat *losses, Act *dx, Grad *dwte, Act *logits, const Act *x, const Param *wte,
                const Id *targets, double scale, int N, int C, int V, int Vp, bool accumulate) {
    int chunk = classifier_chunk(N, Vp);
    for (int first = 0; first < N; first += chunk) {
        int rows = N - first < chunk ? N - first : chunk;
        const Act *x_rows = x + (size_t)first * C;
        linear_forward(logits, x_rows, wte, NULL, NULL, rows, C, Vp);
        LAUNCH(classifier_kernel, rows, CLASSIFIER_THREADS, 0, losses + first, logits,
               targets + first, (float)scale, V, Vp, dx != NULL);
        if (!dx) continue;
        linear_backward_input(dx + (size_t)first * C, logits, wte, NULL, rows, C, Vp);
        linear_backward_weight(dwte, NULL, logits, x_rows, rows, C, Vp, accumulate || first > 0);
    }
}

#endif

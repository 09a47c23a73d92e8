/* embedding.cuh: token plus position embedding. Backward adds each token's rows in the order of the batch,
 * without atomics: tokens are sorted by (id, position) first, then one block sums one id's rows. */
#ifndef LLMC_CUDA_EMBEDDING_CUH
#define LLMC_CUDA_EMBEDDING_CUH

#include "vector_access.cuh"
#include "warp_reduce.cuh"

constexpr int EMBEDDING_THREADS = 128, EMBEDDING_TILE = EMBEDDING_THREADS * PACK;

/* out[b,t] = wte[ids[b,t]] + wpe[first + t]. Grid: (N, tiles of C). Shapes as in ops.h. */
__global__ void embedding_forward_kernel(Act *out, const Id *ids, const Param *wte,
                                         const Param *wpe, int T, int C, int first) {
    int n = blockIdx.x, c = blockIdx.y * EMBEDDING_TILE + threadIdx.x * PACK;
    if (c >= C) return;
    float token[PACK], position[PACK];
    load(token, wte + (size_t)ids[n] * C + c, C - c);
    load(position, wpe + (size_t)(first + n % T) * C + c, C - c);
#pragma unroll
    for (int i = 0; i < PACK; i++) token[i] += position[i];
    store(out + (size_t)n * C + c, token, C - c);
}

/* order (N) becomes the positions 0 .. N-1, sorted by id, equal ids by position: position n's place is the number
 * of (id, position) pairs smaller than its own (a rank sort). N^2 comparisons of numbers in shared memory: for
 * 65536 tokens less than a thousandth of their forward and backward pass. */
__global__ void embedding_sort_kernel(int *order, const Id *ids, int N) {
    __shared__ Id tile[EMBEDDING_THREADS];
    int n = blockIdx.x * EMBEDDING_THREADS + threadIdx.x;
    Id mine = n < N ? ids[n] : 0;
    int before = 0;
    for (int start = 0; start < N; start += EMBEDDING_THREADS) {
        if (start + (int)threadIdx.x < N) tile[threadIdx.x] = ids[start + threadIdx.x];
        __syncthreads();
        int count = min(EMBEDDING_THREADS, N - start);
        for (int i = 0; i < count; i++)
            before += tile[i] < mine || (tile[i] == mine && start + i < n);
        __syncthreads();
    }
    if (n < N) order[before] = n;
}

/* dwte[id] += the sum of dout[n] over all n with ids[n] == id, in order. Grid: (N, tiles of C); the block
 * of an id's first place in `order` does all of its rows, the others have nothing to do. */
__global__ void embedding_backward_tokens_kernel(Grad *dwte, const Act *dout, const Id *ids,
                                                 const int *order, int N, int C) {
    int place = blockIdx.x, lane = threadIdx.x % WARP;
    int c = blockIdx.y * EMBEDDING_TILE + threadIdx.x * PACK;
    Id id = ids[order[place]];
    if (place > 0 && ids[order[place - 1]] == id) return; // the whole block
    float sums[PACK] = {0};
    for (int start = place;; start += WARP) { // a warp looks 32 places ahead
        int n = start + lane < N ? order[start + lane] : -1;
        int count = __popc(__ballot_sync(FULL_WARP, n >= 0 && ids[n] == id));
        for (int i = 0; i < count; i++) {
            int row = __shfl_sync(FULL_WARP, n, i);
            float d[PACK];
            load(d, dout + (size_t)row * C + c, C - c);
#pragma unroll
            for (int k = 0; k < PACK; k++) sums[k] += d[k];
        }
        if (count < WARP) break;
    }
    if (c >= C) return;
    float before[PACK];
    load(before, dwte + (size_t)id * C + c, C - c);
#pragma unroll
    for (int i = 0; i < PACK; i++) before[i] += sums[i];
    store(dwte + (size_t)id * C + c, before, C - c);
}

/* dwpe[t] (+)= sum over b of dout[b,t], and 0 for t >= T. Grid: (seq_len, tiles of C). */
__global__ void embedding_backward_positions_kernel(Grad *dwpe, const Act *dout, int B, int T,
                                                    int C, bool accumulate) {
    int t = blockIdx.x, c = blockIdx.y * EMBEDDING_TILE + threadIdx.x * PACK;
    if (c >= C) return;
    Grad *to = dwpe + (size_t)t * C + c;
    float sums[PACK] = {0};
    for (int b = 0; b < B && t < T; b++) {
        float d[PACK];
        load(d, dout + ((size_t)b * T + t) * C + c, C - c);
#pragma unroll
        for (int i = 0; i < PACK; i++) sums[i] += d[i];
    }
    if (accumulate) {
        float before[PACK];
        load(before, to, C - c);
#pragma unroll
        for (int i = 0; i < PACK; i++) sums[i] += before[i];
    }
    store(to, sums, C - c);
}

// ---- launchers ----------------------------------------------------------------------------------

void embedding_forward(Act *out, const Id *ids, const Param *wte, const Param *wpe, int B, int T,
                       int C, int first) {
    dim3 grid(B * T, divide_up(C, EMBEDDING_TILE));
    LAUNCH(embedding_forward_kernel, grid, EMBEDDING_THREADS, 0, out, ids, wte, wpe, T, C, first);
}

void embedding_backward(Grad *dwte, Grad *dwpe, const Act *dout, const Id *ids, int B, int T, int C,
                        int seq_len, bool accumulate) {
    int N = B * T, tiles = divide_up(C, EMBEDDING_TILE);
    int *order = (int *)scratch_take((size_t)N * sizeof(int));
    LAUNCH(embedding_sort_kernel, divide_up(N, EMBEDDING_THREADS), EMBEDDING_THREADS, 0, order, ids,
           N);
    LAUNCH(embedding_backward_tokens_kernel, dim3(N, tiles), EMBEDDING_THREADS, 0, dwte, dout, ids,
           order, N, C);
    LAUNCH(embedding_backward_positions_kernel, dim3(seq_len, tiles), EMBEDDING_THREADS, 0, dwpe,
           dout, B, T, C, accumulate);
}

#endif

/* embedding.cuh: token plus position embedding. Backward adds each token's rows in the order of the batch,
 * without atomics: positions are sorted by id first (radix_sort.cuh), the sorted order is cut into windows of 32
 * places, and a block adds up one window:
 *
 *   ids in order   1 1 1 4 | 4 4 4 4 | 4 4 9 9      (windows of 4 places, for the drawing)
 *   added to dwte  1     4 |         |     9        what begins in its window
 *   partial sums           | 4       | 4            what began in an earlier window
 *
 * A second pass adds the partial sums of an id in their order: dwte[4] gets its first window's sum, then the sum of
 * the partial sums. However often a token occurs, the work is spread evenly, and the bits depend on the ids alone. */
#ifndef LLMC_CUDA_EMBEDDING_CUH
#define LLMC_CUDA_EMBEDDING_CUH

#include "radix_sort.cuh"
#include "vector_access.cuh"

constexpr int EMBEDDING_THREADS = 128, EMBEDDING_TILE = EMBEDDING_THREADS * PACK;
constexpr int ROWS_AT_ONCE = 4; // as many loads are under way in each thread

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

/* to[i] += sums[i], i < min(PACK, valid). */
__device__ inline void add_to(Grad *to, const float sums[PACK], int valid) {
    float before[PACK];
    load(before, to, valid);
#pragma unroll
    for (int i = 0; i < PACK; i++) before[i] += sums[i];
    store(to, before, valid);
}

/* Whether the id at the window's first place is also that of the place before. */
__device__ inline bool is_continued(const Id *ids, const int *order, int window) {
    return window > 0 && ids[order[window * WARP]] == ids[order[window * WARP - 1]];
}

/* dwte[id] += the sum of dout[n] over the n of one window with ids[n] == id, in order; but for an id that began in an
 * earlier window, partial[window] = that sum. partial (windows, C); order (N) is sorted by id. Grid: (windows, tiles
 * of C). Lane i of each warp knows place i. */
__global__ void embedding_backward_tokens_kernel(Grad *dwte, float *partial, const Act *dout,
                                                 const Id *ids, const int *order, int N, int C) {
    int window = blockIdx.x, lane = threadIdx.x % WARP, place = window * WARP + lane;
    int c = blockIdx.y * EMBEDDING_TILE + threadIdx.x * PACK, valid = max(0, C - c);
    int count = min(WARP, N - window * WARP);
    int my_row = lane < count ? order[place] : 0;
    Id my_id = lane < count ? ids[my_row] : -1, id = __shfl_sync(FULL_WARP, my_id, 0);
    bool continued = is_continued(ids, order, window);
    float sums[PACK] = {0};
    for (int start = 0; start < count; start += ROWS_AT_ONCE) {
        uint32_t words[ROWS_AT_ONCE][WORDS<Act>];
#pragma unroll
        for (int k = 0; k < ROWS_AT_ONCE; k++) {
            size_t row = (size_t)__shfl_sync(FULL_WARP, my_row, start + k);
            load_words(words[k], dout + row * C + c, start + k < count ? valid : 0);
        }
#pragma unroll
        for (int k = 0; k < ROWS_AT_ONCE; k++) {
            int i = start + k;
            Id next = __shfl_sync(FULL_WARP, my_id, (i + 1) % WARP); // of the next place
#pragma unroll
            for (int j = 0; j < PACK; j++) sums[j] += unpack<Act>(words[k], j);
            if ((next == id && i + 1 < count) || i >= count) continue; // the whole block
            if (valid > 0 && continued) store(partial + (size_t)window * C + c, sums, valid);
            if (valid > 0 && !continued) add_to(dwte + (size_t)id * C + c, sums, valid);
#pragma unroll
            for (int j = 0; j < PACK; j++) sums[j] = 0;
            continued = false;
            id = next;
        }
    }
}

/* dwte[id] += the partial sums of an id, in order. The block of an id's first partial sum does it, the others have
 * nothing to do. Grid: (windows, tiles of C). */
__global__ void embedding_backward_windows_kernel(Grad *dwte, const float *partial, const Id *ids,
                                                  const int *order, int N, int C) {
    int window = blockIdx.x, lane = threadIdx.x % WARP;
    int c = blockIdx.y * EMBEDDING_TILE + threadIdx.x * PACK, valid = max(0, C - c);
    if (!is_continued(ids, order, window)) return; // here and below: the whole block
    Id id = ids[order[window * WARP]];
    if (ids[order[(window - 1) * WARP]] == id && is_continued(ids, order, window - 1)) return;
    float sums[PACK] = {0};
    for (;; window += WARP) { // a warp looks 32 windows ahead
        int ahead = window + lane;
        bool same = ahead * WARP < N && ids[order[ahead * WARP]] == id;
        int count = __popc(__ballot_sync(FULL_WARP, same));
#pragma unroll 4
        for (int i = 0; i < count; i++) {
            float d[PACK];
            load(d, partial + (size_t)(window + i) * C + c, valid);
#pragma unroll
            for (int k = 0; k < PACK; k++) sums[k] += d[k];
        }
        if (count < WARP) break;
    }
    if (valid > 0) add_to(dwte + (size_t)id * C + c, sums, valid);
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
    if (accumulate)
        add_to(to, sums, C - c);
    else
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
    int N = B * T, tiles = divide_up(C, EMBEDDING_TILE), windows = divide_up(N, WARP);
    dim3 grid(windows, tiles);
    size_t partial_bytes = (size_t)windows * C * sizeof(float);
    float *partial = (float *)scratch_take(partial_bytes + 2 * (size_t)N * sizeof(int));
    int *order = (int *)(partial + (size_t)windows * C);
    sort_positions(order, order + N, ids, N);
    LAUNCH(embedding_backward_tokens_kernel, grid, EMBEDDING_THREADS, 0, dwte, partial, dout, ids,
           order, N, C);
    LAUNCH(embedding_backward_windows_kernel, grid, EMBEDDING_THREADS, 0, dwte, partial, ids, order,
           N, C);
    LAUNCH(embedding_backward_positions_kernel, dim3(seq_len, tiles), EMBEDDING_THREADS, 0, dwpe,
           dout, B, T, C, accumulate);
}

#endif

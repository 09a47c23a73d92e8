/* flash_backward.cuh: the gradient of flash.cuh, on tensor cores. Two kernels, each the only writer of its results,
 * so that nothing is added atomically: one keeps a tile of keys and walks over the queries that see it (dK, dV),
 * one keeps a tile of queries and walks over the keys it sees (dQ). Both compute the probabilities again, P = exp(S
 * - lse). With D = rowsum(dO * O):
 *   dV = P.T dO;   dS = P * (dO V.T - D) / sqrt(HS);   dQ = dS K;   dK = dS.T Q */
#ifndef LLMC_CUDA_FLASH_BACKWARD_CUH
#define LLMC_CUDA_FLASH_BACKWARD_CUH

#include "flash.cuh"

/* Rows of the tiles that are read in turn: as many as registers and shared memory allow. Two sums of 16 x 128 take
 * half of a thread's registers, which leaves room for 16 queries. */
template <int HS> constexpr int FLASH_QUERIES = HS == 64 ? 64 : 16;
template <int HS> constexpr int FLASH_KEYS = HS == 64 ? 64 : 32;

/* Turns scores and dP = dO V.T of one tile into P and dS, in place. transposed: rows are keys and columns
 * queries. row, column: of the tile's upper left corner; lse, delta: of the head (T). */
template <int COLUMNS, bool TRANSPOSED>
__device__ inline void score_gradient(float s[COLUMNS / 8][4], float dp[COLUMNS / 8][4],
                                      const RowStat *lse, const RowStat *delta, float scale, int row,
                                      int column, int T) {
    int lane = threadIdx.x % WARP;
    row += lane / 4;
    column += lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int r = row + i / 2 * 8, c = column + 8 * n + i % 2;
            int query = TRANSPOSED ? c : r, key = TRANSPOSED ? r : c;
            bool seen = key <= query && query < T;
            float p = seen ? exp2f((s[n][i] * scale - lse[query]) * LOG2_E) : 0.0f;
            dp[n][i] = seen ? p * (dp[n][i] - delta[query]) * scale : 0.0f;
            s[n][i] = p;
        }
}

/* dK and dV of 64 keys. Grid: (B*NH, tiles of 64 keys). dqkv, qkv (B,T,3C); dout (B,T,C). */
template <int HS>
__global__ void __launch_bounds__(FLASH_THREADS)
    flash_backward_keys_kernel(bf16 *dqkv, const bf16 *dout, const RowStat *lse, const RowStat *delta,
                               const bf16 *qkv, int T, int NH, float scale) {
    constexpr int PITCH = FLASH_PITCH<HS>, QUERIES = FLASH_QUERIES<HS>, SIZE = QUERIES * PITCH;
    DYNAMIC_SHARED(memory);
    bf16 *k_tile = (bf16 *)memory, *v_tile = k_tile + FLASH_ROWS * PITCH;
    bf16 *q_tiles = v_tile + FLASH_ROWS * PITCH, *do_tiles = q_tiles + 2 * SIZE;
    Head<const bf16> head = head_of(qkv, blockIdx.x, T, NH, HS);
    const bf16 *dout_rows = head_rows(dout, blockIdx.x, T, NH, HS);
    size_t dout_stride = (size_t)NH * HS;
    int k0 = blockIdx.y * FLASH_ROWS, warp_row = threadIdx.x / WARP * 16;
    int begin = k0 / QUERIES, end = (T + QUERIES - 1) / QUERIES;
    lse += (size_t)blockIdx.x * T;
    delta += (size_t)blockIdx.x * T;

    copy_tile<HS, FLASH_ROWS>(k_tile, head.k + k0 * head.stride, head.stride, T - k0);
    copy_tile<HS, FLASH_ROWS>(v_tile, head.v + k0 * head.stride, head.stride, T - k0);
    float dk[HS / 8][4] = {}, dv[HS / 8][4] = {};
    for (int i = begin - 1; i < end; i++) { // copies tile i + 1, uses tile i
        int next = i + 1, q0 = next * QUERIES;
        if (next < end) {
            copy_tile<HS, QUERIES>(q_tiles + next % 2 * SIZE, head.q + q0 * head.stride,
                                   head.stride, T - q0);
            copy_tile<HS, QUERIES>(do_tiles + next % 2 * SIZE, dout_rows + q0 * dout_stride,
                                   dout_stride, T - q0);
        }
        copy_async_commit();
        if (i < begin) continue;
        copy_async_wait<1>();
        __syncthreads();
        const bf16 *q_tile = q_tiles + i % 2 * SIZE, *do_tile = do_tiles + i % 2 * SIZE;
        float s[QUERIES / 8][4], dp[QUERIES / 8][4];
        multiply_transposed<HS, QUERIES>(s, k_tile + warp_row * PITCH, q_tile);
        multiply_transposed<HS, QUERIES>(dp, v_tile + warp_row * PITCH, do_tile);
        score_gradient<QUERIES, true>(s, dp, lse, delta, scale, k0 + warp_row, i * QUERIES, T);
        multiply_add<HS, QUERIES>(dv, s, do_tile);
        multiply_add<HS, QUERIES>(dk, dp, q_tile);
        __syncthreads(); // the tiles are free to be overwritten
    }
    Head<bf16> gradient = head_of(dqkv, blockIdx.x, T, NH, HS);
    int row = k0 + warp_row;
    store_rows<HS>(gradient.k + row * gradient.stride, gradient.stride, dk,
                   k_tile + warp_row * PITCH, T - row);
    store_rows<HS>(gradient.v + row * gradient.stride, gradient.stride, dv,
                   v_tile + warp_row * PITCH, T - row);
}

/* dQ of 64 queries. Grid: (B*NH, tiles of 64 queries, the longest first). */
template <int HS>
__global__ void __launch_bounds__(FLASH_THREADS)
    flash_backward_queries_kernel(bf16 *dqkv, const bf16 *dout, const RowStat *lse, const RowStat *delta,
                                  const bf16 *qkv, int T, int NH, float scale) {
    constexpr int PITCH = FLASH_PITCH<HS>, KEYS = FLASH_KEYS<HS>, SIZE = KEYS * PITCH;
    DYNAMIC_SHARED(memory);
    bf16 *q_tile = (bf16 *)memory, *do_tile = q_tile + FLASH_ROWS * PITCH;
    bf16 *k_tiles = do_tile + FLASH_ROWS * PITCH, *v_tiles = k_tiles + 2 * SIZE;
    Head<const bf16> head = head_of(qkv, blockIdx.x, T, NH, HS);
    size_t dout_stride = (size_t)NH * HS;
    int q0 = (gridDim.y - 1 - blockIdx.y) * FLASH_ROWS, warp_row = threadIdx.x / WARP * 16;
    int end = (min(T, q0 + FLASH_ROWS) + KEYS - 1) / KEYS;
    lse += (size_t)blockIdx.x * T;
    delta += (size_t)blockIdx.x * T;

    copy_tile<HS, FLASH_ROWS>(q_tile, head.q + q0 * head.stride, head.stride, T - q0);
    copy_tile<HS, FLASH_ROWS>(do_tile, head_rows(dout, blockIdx.x, T, NH, HS) + q0 * dout_stride,
                              dout_stride, T - q0);
    float dq[HS / 8][4] = {};
    for (int j = -1; j < end; j++) { // copies tile j + 1, uses tile j
        int next = j + 1, k0 = next * KEYS;
        if (next < end) {
            copy_tile<HS, KEYS>(k_tiles + next % 2 * SIZE, head.k + k0 * head.stride, head.stride,
                                T - k0);
            copy_tile<HS, KEYS>(v_tiles + next % 2 * SIZE, head.v + k0 * head.stride, head.stride,
                                T - k0);
        }
        copy_async_commit();
        if (j < 0) continue;
        copy_async_wait<1>();
        __syncthreads();
        const bf16 *k_tile = k_tiles + j % 2 * SIZE, *v_tile = v_tiles + j % 2 * SIZE;
        float s[KEYS / 8][4], dp[KEYS / 8][4];
        multiply_transposed<HS, KEYS>(s, q_tile + warp_row * PITCH, k_tile);
        multiply_transposed<HS, KEYS>(dp, do_tile + warp_row * PITCH, v_tile);
        score_gradient<KEYS, false>(s, dp, lse, delta, scale, q0 + warp_row, j * KEYS, T);
        multiply_add<HS, KEYS>(dq, dp, k_tile);
        __syncthreads(); // the tiles are free to be overwritten
    }
    Head<bf16> gradient = head_of(dqkv, blockIdx.x, T, NH, HS);
    int row = q0 + warp_row;
    store_rows<HS>(gradient.q + row * gradient.stride, gradient.stride, dq,
                   q_tile + warp_row * PITCH, T - row);
}

// ---- launcher -----------------------------------------------------------------------------------

/* delta (B,NH,T): the row sums D. */
template <int HS>
static void flash_backward(bf16 *dqkv, const bf16 *dout, const RowStat *lse, const RowStat *delta,
                           const bf16 *qkv, int B, int T, int NH) {
    size_t shared_keys = (2 * FLASH_ROWS + 4 * FLASH_QUERIES<HS>)*FLASH_PITCH<HS> * sizeof(bf16);
    size_t shared_queries = (2 * FLASH_ROWS + 4 * FLASH_KEYS<HS>)*FLASH_PITCH<HS> * sizeof(bf16);
    dim3 grid(B * NH, divide_up(T, FLASH_ROWS));
    float scale = 1.0f / sqrtf((float)HS);
    allow_shared(flash_backward_keys_kernel<HS>, shared_keys);
    allow_shared(flash_backward_queries_kernel<HS>, shared_queries);
    LAUNCH((flash_backward_keys_kernel<HS>), grid, FLASH_THREADS, shared_keys, dqkv, dout, lse,
           delta, qkv, T, NH, scale);
    LAUNCH((flash_backward_queries_kernel<HS>), grid, FLASH_THREADS, shared_queries, dqkv, dout,
           lse, delta, qkv, T, NH, scale);
}

#endif

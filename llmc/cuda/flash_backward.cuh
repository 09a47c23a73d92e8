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

/* What a query's row of P and dS needs beside the products: its log-sum-exp, in log2 units, and its D. */
struct QueryStat {
    float lse2, delta;
};
/* query: beyond T any will do, because what comes of it is masked. lse, delta: of the head (T). */
__device__ inline QueryStat query_stat(const RowStat *lse, const RowStat *delta, int query, int T) {
    int q = min(query, T - 1);
    return {lse[q] * LOG2_E, delta[q]};
}

/* Turns scores and dP = dO V.T of one tile into P and dS * sqrt(HS), in place. TRANSPOSED: rows are keys and columns
 * queries. stats: of this thread's queries: of rows g and g+8, or of its two columns in each eight.
 * row, column: of the tile's upper left corner; scale: 1/sqrt(HS) * log2(e). */
template <int COLUMNS, bool TRANSPOSED>
__device__ inline void score_gradient(float s[COLUMNS / 8][4], float dp[COLUMNS / 8][4], const QueryStat *stats,
                                      float scale, int row, int column, int T) {
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            QueryStat query = stats[TRANSPOSED ? 2 * n + i % 2 : i / 2];
            s[n][i] = exp2_approximately(fmaf(s[n][i], scale, -query.lse2));
            dp[n][i] = s[n][i] * (dp[n][i] - query.delta);
        }
    // In most tiles every query is there and sees every key.
    bool whole = TRANSPOSED ? row + 15 <= column && column + COLUMNS <= T
                            : column + COLUMNS - 1 <= row && row + 16 <= T;
    if (whole) return;
    int lane = threadIdx.x % WARP;
    row += lane / 4;
    column += lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int r = row + i / 2 * 8, c = column + 8 * n + i % 2;
            int query = TRANSPOSED ? c : r, key = TRANSPOSED ? r : c;
            if (key > query || query >= T) s[n][i] = dp[n][i] = 0;
        }
}

/* Multiplies a gradient by 1/sqrt(HS), once instead of each tile's dS. */
template <int HS> __device__ inline void multiply_by_scale(float c[HS / 8][4]) {
    constexpr float scale = HS == 64 ? 0.125f : 0.08838834764831845f;
#pragma unroll
    for (int n = 0; n < HS / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) c[n][i] *= scale;
}

/* dK and dV of 64 keys. Grid: B*NH heads times tiles of 64 keys, of each head the longest first.
 * dqkv, qkv (B,T,3C); dout (B,T,C). */
template <int HS>
__global__ void __launch_bounds__(FLASH_THREADS)
    flash_backward_keys_kernel(bf16 *dqkv, const bf16 *dout, const RowStat *lse, const RowStat *delta,
                               const bf16 *qkv, int T, int NH, float scale) {
    constexpr int QUERIES = FLASH_QUERIES<HS>, SIZE = QUERIES * HS;
    DYNAMIC_SHARED(memory);
    bf16 *k_tile = (bf16 *)memory, *v_tile = k_tile + FLASH_ROWS * HS;
    bf16 *q_tiles = v_tile + FLASH_ROWS * HS, *do_tiles = q_tiles + 2 * SIZE;
    Place at = place_of_block(T, FLASH_ROWS);
    Head<const bf16> head = head_of(qkv, at.head, T, NH, HS);
    const bf16 *dout_rows = head_rows(dout, at.head, T, NH, HS);
    size_t dout_stride = (size_t)NH * HS;
    int k0 = at.tile * FLASH_ROWS, warp_row = threadIdx.x / WARP * 16;
    int begin = k0 / QUERIES, end = (T + QUERIES - 1) / QUERIES;
    lse += (size_t)at.head * T;
    delta += (size_t)at.head * T;

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
        multiply_transposed<HS, QUERIES>(s, k_tile + warp_row * HS, q_tile);
        multiply_transposed<HS, QUERIES>(dp, v_tile + warp_row * HS, do_tile);
        QueryStat stats[QUERIES / 4];
#pragma unroll
        for (int n = 0; n < QUERIES / 4; n++)
            stats[n] = query_stat(lse, delta, i * QUERIES + n / 2 * 8 + int(threadIdx.x) % 4 * 2 + n % 2, T);
        score_gradient<QUERIES, true>(s, dp, stats, scale, k0 + warp_row, i * QUERIES, T);
        multiply_add<HS, QUERIES>(dv, s, do_tile);
        multiply_add<HS, QUERIES>(dk, dp, q_tile);
        __syncthreads(); // the tiles are free to be overwritten
    }
    Head<bf16> gradient = head_of(dqkv, at.head, T, NH, HS);
    int row = k0 + warp_row;
    multiply_by_scale<HS>(dk);
    store_rows<HS>(gradient.k + row * gradient.stride, gradient.stride, dk,
                   k_tile + warp_row * HS, T - row);
    store_rows<HS>(gradient.v + row * gradient.stride, gradient.stride, dv,
                   v_tile + warp_row * HS, T - row);
}

/* dQ of 64 queries. Grid: B*NH heads times tiles of 64 queries, of each head the longest first. */
template <int HS>
__global__ void __launch_bounds__(FLASH_THREADS)
    flash_backward_queries_kernel(bf16 *dqkv, const bf16 *dout, const RowStat *lse, const RowStat *delta,
                                  const bf16 *qkv, int T, int NH, float scale) {
    constexpr int KEYS = FLASH_KEYS<HS>, SIZE = KEYS * HS;
    DYNAMIC_SHARED(memory);
    bf16 *q_tile = (bf16 *)memory, *do_tile = q_tile + FLASH_ROWS * HS;
    bf16 *k_tiles = do_tile + FLASH_ROWS * HS, *v_tiles = k_tiles + 2 * SIZE;
    Place at = place_of_block(T, FLASH_ROWS);
    Head<const bf16> head = head_of(qkv, at.head, T, NH, HS);
    size_t dout_stride = (size_t)NH * HS;
    int q0 = (at.tiles - 1 - at.tile) * FLASH_ROWS, warp_row = threadIdx.x / WARP * 16;
    int end = (min(T, q0 + FLASH_ROWS) + KEYS - 1) / KEYS;
    lse += (size_t)at.head * T;
    delta += (size_t)at.head * T;

    copy_tile<HS, FLASH_ROWS>(q_tile, head.q + q0 * head.stride, head.stride, T - q0);
    copy_tile<HS, FLASH_ROWS>(do_tile, head_rows(dout, at.head, T, NH, HS) + q0 * dout_stride,
                              dout_stride, T - q0);
    float dq[HS / 8][4] = {};
    int query = q0 + warp_row + int(threadIdx.x) % WARP / 4; // this thread's first
    QueryStat stats[2] = {query_stat(lse, delta, query, T), query_stat(lse, delta, query + 8, T)};
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
        multiply_transposed<HS, KEYS>(s, q_tile + warp_row * HS, k_tile);
        multiply_transposed<HS, KEYS>(dp, do_tile + warp_row * HS, v_tile);
        score_gradient<KEYS, false>(s, dp, stats, scale, q0 + warp_row, j * KEYS, T);
        multiply_add<HS, KEYS>(dq, dp, k_tile);
        __syncthreads(); // the tiles are free to be overwritten
    }
    Head<bf16> gradient = head_of(dqkv, at.head, T, NH, HS);
    int row = q0 + warp_row;
    multiply_by_scale<HS>(dq);
    store_rows<HS>(gradient.q + row * gradient.stride, gradient.stride, dq,
                   q_tile + warp_row * HS, T - row);
}

// ---- launcher -----------------------------------------------------------------------------------

/* delta (B,NH,T): the row sums D. */
template <int HS>
static void flash_backward(bf16 *dqkv, const bf16 *dout, const RowStat *lse, const RowStat *delta,
                           const bf16 *qkv, int B, int T, int NH) {
    size_t shared_keys = (2 * FLASH_ROWS + 4 * FLASH_QUERIES<HS>) * HS * sizeof(bf16);
    size_t shared_queries = (2 * FLASH_ROWS + 4 * FLASH_KEYS<HS>) * HS * sizeof(bf16);
    int grid = B * NH * divide_up(T, FLASH_ROWS);
    float scale = LOG2_E / sqrtf((float)HS);
    allow_shared(flash_backward_keys_kernel<HS>, shared_keys);
    allow_shared(flash_backward_queries_kernel<HS>, shared_queries);
    LAUNCH((flash_backward_keys_kernel<HS>), grid, FLASH_THREADS, shared_keys, dqkv, dout, lse,
           delta, qkv, T, NH, scale);
    LAUNCH((flash_backward_queries_kernel<HS>), grid, FLASH_THREADS, shared_queries, dqkv, dout,
           lse, delta, qkv, T, NH, scale);
}

#endif

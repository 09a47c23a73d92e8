/* layernorm.cuh: LayerNorm (Ba et al. 2016). Backward is fused with the addition of the residual stream's gradient.
 * Statistics are float, biased variance, eps 1e-5.
 *
 * Forward takes a warp a row. Backward takes a block a row, each thread always the same eight columns, so that x and
 * dout are read once: for dx, and for the sums of dw and db, which stay in registers over the block's 64 rows. Rows
 * of more than 3072 channels, for which a block has too few threads, are read twice, by two kernels. */
#ifndef LLMC_CUDA_LAYERNORM_CUH
#define LLMC_CUDA_LAYERNORM_CUH

#include "columns.cuh"

constexpr int LAYERNORM_WARPS = 8;
constexpr int LAYERNORM_ROWS = 64, LAYERNORM_THREADS_MAX = 384; // of a block of the backward pass
constexpr int LAYERNORM_AT_ONCE = 8 / sizeof(Act);              // rows: as many loads are under way in each thread

/* out = (x - mean) * rstd * w + b. out, x (N,C); mean, rstd (N); w, b (C). */
__global__ void layernorm_forward_kernel(Act *out, RowStat *mean, RowStat *rstd, const Act *x,
                                         const Param *w, const Param *b, int N, int C) {
    int row = blockIdx.x * LAYERNORM_WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (row >= N) return; // the whole warp
    x += (size_t)row * C;
    float v[PACK], scale[PACK], shift[PACK];
    float sum = 0, square = 0;
    for (int c = lane * PACK; c < C; c += COLUMN_TILE) {
        load(v, x + c, C - c);
#pragma unroll
        for (int i = 0; i < PACK; i++) sum += v[i];
    }
    float m = warp_sum(sum) / (float)C;
    for (int c = lane * PACK; c < C; c += COLUMN_TILE) {
        load(v, x + c, C - c);
#pragma unroll
        for (int i = 0; i < PACK; i++) square += c + i < C ? (v[i] - m) * (v[i] - m) : 0.0f;
    }
    float r = 1.0f / sqrtf(warp_sum(square) / (float)C + (float)LAYERNORM_EPS);
    for (int c = lane * PACK; c < C; c += COLUMN_TILE) {
        load(v, x + c, C - c);
        load(scale, w + c, C - c);
        load(shift, b + c, C - c);
#pragma unroll
        for (int i = 0; i < PACK; i++) v[i] = (v[i] - m) * r * scale[i] + shift[i];
        store(out + (size_t)row * C + c, v, C - c);
    }
    if (lane == 0) mean[row] = m, rstd[row] = r;
}

/* Every thread gets the sums over the block of `count` values. Calls take turns with two buffers, `parity` 0 and 1, so
 * that one barrier a call is enough. Block: one-dimensional, of whole warps. */
template <int count> static __device__ inline void block_sums(float values[count], int parity) {
    __shared__ float partial[2][LAYERNORM_THREADS_MAX / WARP][count];
    int warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
#pragma unroll
    for (int k = 0; k < count; k++) {
        values[k] = warp_sum(values[k]);
        if (threadIdx.x % WARP == 0) partial[parity][warp][k] = values[k];
        values[k] = 0;
    }
    __syncthreads(); // every warp has written its sums
    for (int w = 0; w < warps; w++) {
#pragma unroll
        for (int k = 0; k < count; k++) values[k] += partial[parity][w][k];
    }
}

/* With n = (x - mean) * rstd and dn = dout * w:
 * dx = dresidual + rstd * (dn - mean(dn) - n * mean(dn * n)), and partial sums over the block's rows of
 * dw = sum of dout * n and db = sum of dout. dw, db (blocks, C); shapes else as in ops.h. */
__global__ void __launch_bounds__(LAYERNORM_THREADS_MAX)
    layernorm_backward_kernel(Act *dx, float *dw, float *db, const Act *dout, const Act *dresidual,
                              const Act *x, const RowStat *mean, const RowStat *rstd, const Param *w,
                              int N, int C) {
    constexpr int at_once = LAYERNORM_AT_ONCE;
    int c = threadIdx.x * PACK, valid = C - c; // 0 and less: this thread only takes part in the sums
    int first = blockIdx.x * LAYERNORM_ROWS, end = min(N, first + LAYERNORM_ROWS), parity = 0;
    float one_of_C = 1.0f / (float)C, scale[PACK], dw_sums[PACK] = {0}, db_sums[PACK] = {0};
    load(scale, w + c, valid);
    for (int row = first; row < end; row += at_once, parity ^= 1) {
        uint32_t x_words[at_once][WORDS<Act>], d_words[at_once][WORDS<Act>], before_words[at_once][WORDS<Act>];
        float m[at_once], r[at_once], sums[2 * at_once];
#pragma unroll
        for (int k = 0; k < at_once; k++) {
            int rest = row + k < end ? valid : 0;
            size_t at = (size_t)(row + k) * C + c;
            load_words(x_words[k], x + at, rest);
            load_words(d_words[k], dout + at, rest);
            load_words(before_words[k], dresidual + at, dresidual ? rest : 0);
            m[k] = row + k < end ? mean[row + k] : 0.0f;
            r[k] = row + k < end ? rstd[row + k] : 0.0f;
        }
#pragma unroll
        for (int k = 0; k < at_once; k++) {
            float sum = 0, product = 0;
#pragma unroll
            for (int i = 0; i < PACK; i++) {
                float d = unpack<Act>(d_words[k], i), n = (unpack<Act>(x_words[k], i) - m[k]) * r[k];
                sum += d * scale[i];
                product += d * scale[i] * n;
                dw_sums[i] += d * n;
                db_sums[i] += d;
            }
            sums[2 * k] = sum, sums[2 * k + 1] = product;
        }
        block_sums<2 * at_once>(sums, parity);
#pragma unroll
        for (int k = 0; k < at_once; k++) {
            float mean_dn = sums[2 * k] * one_of_C, mean_product = sums[2 * k + 1] * one_of_C, result[PACK];
#pragma unroll
            for (int i = 0; i < PACK; i++) {
                float d = unpack<Act>(d_words[k], i), n = (unpack<Act>(x_words[k], i) - m[k]) * r[k];
                result[i] = unpack<Act>(before_words[k], i) + r[k] * (d * scale[i] - mean_dn - n * mean_product);
            }
            if (row + k < end) store(dx + (size_t)(row + k) * C + c, result, valid);
        }
    }
    store(dw + (size_t)blockIdx.x * C + c, dw_sums, valid);
    store(db + (size_t)blockIdx.x * C + c, db_sums, valid);
}

/* dx alone, a warp a row, for rows of any length. */
__global__ void layernorm_backward_wide_kernel(Act *dx, const Act *dout, const Act *dresidual,
                                               const Act *x, const RowStat *mean,
                                               const RowStat *rstd, const Param *w, int N, int C) {
    int row = blockIdx.x * LAYERNORM_WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (row >= N) return; // the whole warp
    size_t at = (size_t)row * C;
    float m = mean[row], r = rstd[row];
    float n[PACK], dn[PACK], scale[PACK];
    float sum = 0, product = 0;
    for (int c = lane * PACK; c < C; c += COLUMN_TILE) {
        load(n, x + at + c, C - c);
        load(dn, dout + at + c, C - c);
        load(scale, w + c, C - c);
#pragma unroll
        for (int i = 0; i < PACK; i++) {
            sum += dn[i] * scale[i];
            product += dn[i] * scale[i] * (n[i] - m) * r;
        }
    }
    sum = warp_sum(sum) / (float)C;
    product = warp_sum(product) / (float)C;
    for (int c = lane * PACK; c < C; c += COLUMN_TILE) {
        float before[PACK] = {0};
        load(n, x + at + c, C - c);
        load(dn, dout + at + c, C - c);
        load(scale, w + c, C - c);
        if (dresidual) load(before, dresidual + at + c, C - c);
#pragma unroll
        for (int i = 0; i < PACK; i++)
            before[i] += r * (dn[i] * scale[i] - sum - (n[i] - m) * r * product);
        store(dx + at + c, before, C - c);
    }
}

/* Partial sums of dw and db alone, for rows of any length: dw, db (chunks, C). Grid and block as in
 * column_sums_kernel. */
__global__ void layernorm_weights_wide_kernel(float *dw, float *db, const Act *dout, const Act *x,
                                         const RowStat *mean, const RowStat *rstd, int N, int C) {
    int column = blockIdx.x * COLUMN_TILE + threadIdx.x * PACK;
    int first = blockIdx.y * COLUMN_CHUNK, end = min(N, first + COLUMN_CHUNK);
    int valid = max(0, C - column);
    float scale[PACK] = {0}, shift[PACK] = {0};
    for (int row = first + threadIdx.y; row < end && valid > 0; row += COLUMN_SLICES) {
        float d[PACK], v[PACK], m = mean[row], r = rstd[row];
        load(d, dout + (size_t)row * C + column, valid);
        load(v, x + (size_t)row * C + column, valid);
#pragma unroll
        for (int i = 0; i < PACK; i++) {
            scale[i] += d[i] * (v[i] - m) * r;
            shift[i] += d[i];
        }
    }
    sum_slices(scale);
    sum_slices(shift);
    if (threadIdx.y != 0 || valid == 0) return;
    store(dw + (size_t)blockIdx.y * C + column, scale, valid);
    store(db + (size_t)blockIdx.y * C + column, shift, valid);
}

// ---- launchers ----------------------------------------------------------------------------------

void layernorm_forward(Act *out, RowStat *mean, RowStat *rstd, const Act *x, const Param *w,
                       const Param *b, int N, int C) {
    LAUNCH(layernorm_forward_kernel, divide_up(N, LAYERNORM_WARPS), LAYERNORM_WARPS * WARP, 0, out,
           mean, rstd, x, w, b, N, C);
}

static void layernorm_backward_wide(Act *dx, float *dw, float *db, const Act *dout, const Act *dresidual,
                                    const Act *x, const RowStat *mean, const RowStat *rstd,
                                    const Param *w, int N, int C) {
    dim3 grid(divide_up(C, COLUMN_TILE), divide_up(N, COLUMN_CHUNK));
    LAUNCH(layernorm_weights_wide_kernel, grid, column_block, 0, dw, db, dout, x, mean, rstd, N, C);
    LAUNCH(layernorm_backward_wide_kernel, divide_up(N, LAYERNORM_WARPS), LAYERNORM_WARPS * WARP, 0, dx,
           dout, dresidual, x, mean, rstd, w, N, C);
}

void layernorm_backward(Act *dx, Grad *dw, Grad *db, const Act *dout, const Act *dresidual,
                        const Act *x, const RowStat *mean, const RowStat *rstd, const Param *w, int N,
                        int C, bool accumulate) {
    int threads = divide_up(divide_up(C, PACK), WARP) * WARP;
    bool wide = threads > LAYERNORM_THREADS_MAX;
    int chunks = divide_up(N, wide ? COLUMN_CHUNK : LAYERNORM_ROWS);
    float *partial_dw = (float *)scratch_take(2 * (size_t)chunks * C * sizeof(float));
    float *partial_db = partial_dw + (size_t)chunks * C;
    if (wide)
        layernorm_backward_wide(dx, partial_dw, partial_db, dout, dresidual, x, mean, rstd, w, N, C);
    else
        LAUNCH(layernorm_backward_kernel, chunks, threads, 0, dx, partial_dw, partial_db, dout, dresidual, x,
               mean, rstd, w, N, C);
    column_finish(dw, db, partial_dw, chunks, C, accumulate);
}

#endif

/* layernorm.cuh: LayerNorm (Ba et al. 2016), a warp a row. Backward is fused with the addition of the residual
 * stream's gradient. Statistics are float, biased variance, eps 1e-5. */
#ifndef LLMC_CUDA_LAYERNORM_CUH
#define LLMC_CUDA_LAYERNORM_CUH

#include "columns.cuh"

constexpr int LAYERNORM_WARPS = 8;

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

/* With n = (x - mean) * rstd and dn = dout * w:
 * dx = dresidual + rstd * (dn - mean(dn) - n * mean(dn * n)). Shapes as in ops.h. */
__global__ void layernorm_backward_kernel(Act *dx, const Act *dout, const Act *dresidual,
                                          const Act *x, const RowStat *mean, const RowStat *rstd,
                                          const Param *w, int N, int C) {
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

/* Partial sums of dw = sum of dout * (x - mean) * rstd and db = sum of dout over a chunk of rows.
 * dw, db (chunks, C). Grid and block as in column_sums_kernel. */
__global__ void layernorm_weights_kernel(float *dw, float *db, const Act *dout, const Act *x,
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

void layernorm_backward(Act *dx, Grad *dw, Grad *db, const Act *dout, const Act *dresidual,
                        const Act *x, const RowStat *mean, const RowStat *rstd, const Param *w, int N,
                        int C, bool accumulate) {
    int chunks = column_chunks(N);
    float *partial = (float *)scratch_take(2 * (size_t)chunks * C * sizeof(float));
    float *partial_db = partial + (size_t)chunks * C;
    dim3 grid(divide_up(C, COLUMN_TILE), chunks);
    LAUNCH(layernorm_weights_kernel, grid, column_block, 0, partial, partial_db, dout, x, mean,
           rstd, N, C);
    finish_column_sums(dw, partial, chunks, C, accumulate);
    finish_column_sums(db, partial_db, chunks, C, accumulate);
    LAUNCH(layernorm_backward_kernel, divide_up(N, LAYERNORM_WARPS), LAYERNORM_WARPS * WARP, 0, dx,
           dout, dresidual, x, mean, rstd, w, N, C);
}

#endif

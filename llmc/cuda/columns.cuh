/* columns.cuh: sums over the rows of a matrix, for bias and LayerNorm gradients. Two passes of one
 * kernel: chunks of rows to partial sums, then the partial sums to the result. The chunks depend on the
 * shape alone and everything is added in order: no atomics, the same bits on every run. */
#ifndef LLMC_CUDA_COLUMNS_CUH
#define LLMC_CUDA_COLUMNS_CUH

#include "vector_access.cuh"
#include "warp_reduce.cuh"

constexpr int COLUMN_SLICES = 8, COLUMN_CHUNK = 256, COLUMN_TILE = WARP * PACK;

/* Adds the slices' sums of one tile of columns; slice 0 gets the result.
 * sums (PACK): this thread's columns over this slice's rows. Block: (WARP, COLUMN_SLICES). */
static __device__ inline void sum_slices(float sums[PACK]) {
    __shared__ float partial[COLUMN_SLICES]
                            [COLUMN_TILE + WARP]; // a word more every PACK: no bank twice
    float *mine = &partial[threadIdx.y][threadIdx.x * (PACK + 1)];
#pragma unroll
    for (int i = 0; i < PACK; i++) mine[i] = sums[i];
    __syncthreads(); // every slice has written
    if (threadIdx.y == 0) {
        for (int slice = 1; slice < COLUMN_SLICES; slice++) {
#pragma unroll
            for (int i = 0; i < PACK; i++) sums[i] += partial[slice][threadIdx.x * (PACK + 1) + i];
        }
    }
    __syncthreads();
}

/* out[chunk, column] (+)= sum over the chunk's rows of x. x (rows, columns); out (chunks, columns).
 * Grid: (tiles of columns, chunks of chunk_rows rows). Slice s takes rows s, s + COLUMN_SLICES, ... */
template <typename T>
__global__ void column_sums_kernel(float *out, const T *x, int rows, int columns, int chunk_rows,
                                   bool accumulate) {
    int column = blockIdx.x * COLUMN_TILE + threadIdx.x * PACK;
    int first = blockIdx.y * chunk_rows, end = min(rows, first + chunk_rows);
    int valid = max(0, columns - column);
    float sums[PACK] = {0};
    for (int row = first + threadIdx.y; row < end && valid > 0; row += COLUMN_SLICES) {
        float values[PACK];
        load(values, x + (size_t)row * columns + column, valid);
#pragma unroll
        for (int i = 0; i < PACK; i++) sums[i] += values[i];
    }
    sum_slices(sums);
    if (threadIdx.y != 0 || valid == 0) return;
    float *to = out + (size_t)blockIdx.y * columns + column;
    if (accumulate) {
        float before[PACK];
        load(before, to, valid);
#pragma unroll
        for (int i = 0; i < PACK; i++) sums[i] += before[i];
    }
    store(to, sums, valid);
}

// ---- launchers ----------------------------------------------------------------------------------

static inline int column_chunks(int rows) { return divide_up(rows, COLUMN_CHUNK); }

static const dim3 column_block(WARP, COLUMN_SLICES);

/* out (+)= the sum of partial sums (chunks, columns). */
static void finish_column_sums(float *out, const float *partial, int chunks, int columns,
                               bool accumulate) {
    LAUNCH((column_sums_kernel<float>), divide_up(columns, COLUMN_TILE), column_block, 0, out,
           partial, chunks, columns, chunks, accumulate);
}

/* out (columns) (+)= sum over rows of x (rows, columns). */
static void column_sums(float *out, const Act *x, int rows, int columns, bool accumulate) {
    int chunks = column_chunks(rows);
    float *partial = (float *)scratch_take((size_t)chunks * columns * sizeof(float));
    dim3 grid(divide_up(columns, COLUMN_TILE), chunks);
    LAUNCH((column_sums_kernel<Act>), grid, column_block, 0, partial, x, rows, columns,
           COLUMN_CHUNK, false);
    finish_column_sums(out, partial, chunks, columns, accumulate);
}

#endif

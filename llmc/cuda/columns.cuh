/* columns.cuh: sums over the rows of a matrix, for bias and LayerNorm gradients, in two passes: chunks of rows to
 * partial sums, then the partial sums to the result. The chunks depend on the shape alone and everything is added
 * in order: no atomics, the same bits on every run. */
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

/* partial[chunk, column] = sum over the chunk's rows of x. x (rows, columns); partial (chunks, columns).
 * Grid: (tiles of columns, chunks). Slice s takes the chunk's rows s, s + COLUMN_SLICES, ... */
__global__ void column_sums_kernel(float *partial, const Act *x, int rows, int columns) {
    int column = blockIdx.x * COLUMN_TILE + threadIdx.x * PACK;
    int first = blockIdx.y * COLUMN_CHUNK, end = min(rows, first + COLUMN_CHUNK);
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
    store(partial + (size_t)blockIdx.y * columns + column, sums, valid);
}

/* out[column] (+)= sum over chunks of partial[chunk, column], for one or two outs (columns), whose partial sums
 * (chunks, columns) lie one behind the other. Grid: (tiles of WARP columns, outs); block: (WARP, FINISH_SLICES). A warp
 * reads 128 bytes of a chunk, and few columns a block make many blocks. */
constexpr int FINISH_SLICES = 32;
__global__ void column_finish_kernel(float *out, float *second_out, const float *partial, int chunks,
                                     int columns, bool accumulate) {
    __shared__ float slices[FINISH_SLICES][WARP];
    int column = blockIdx.x * WARP + threadIdx.x;
    float *to = (blockIdx.y == 0 ? out : second_out) + column;
    partial += (size_t)blockIdx.y * chunks * columns + column;
    float sum = 0;
#pragma unroll 4
    for (int chunk = threadIdx.y; chunk < chunks && column < columns; chunk += FINISH_SLICES)
        sum += partial[(size_t)chunk * columns];
    slices[threadIdx.y][threadIdx.x] = sum;
    __syncthreads(); // every slice has its sum
    if (threadIdx.y != 0 || column >= columns) return;
    for (int slice = 1; slice < FINISH_SLICES; slice++) sum += slices[slice][threadIdx.x];
    *to = accumulate ? *to + sum : sum;
}

// ---- launchers ----------------------------------------------------------------------------------

static const dim3 column_block(WARP, COLUMN_SLICES);

/* out (+)= the sum of partial sums (chunks, columns); the same for second_out, unless it is NULL, with those that
 * follow. */
static void column_finish(float *out, float *second_out, const float *partial, int chunks, int columns,
                          bool accumulate) {
    dim3 grid(divide_up(columns, WARP), second_out ? 2 : 1), block(WARP, FINISH_SLICES);
    LAUNCH(column_finish_kernel, grid, block, 0, out, second_out, partial, chunks, columns, accumulate);
}

/* out (columns) (+)= sum over rows of x (rows, columns). */
static void column_sums(float *out, const Act *x, int rows, int columns, bool accumulate) {
    int chunks = divide_up(rows, COLUMN_CHUNK);
    float *partial = (float *)scratch_take((size_t)chunks * columns * sizeof(float));
    dim3 grid(divide_up(columns, COLUMN_TILE), chunks);
    LAUNCH(column_sums_kernel, grid, column_block, 0, partial, x, rows, columns);
    column_finish(out, NULL, partial, chunks, columns, accumulate);
}

#endif

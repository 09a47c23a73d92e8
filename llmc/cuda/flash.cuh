/* flash.cuh: causal attention on tensor cores, forward (Dao et al. 2022; Dao 2023). bf16, head sizes HS of
 * 64 and 128. Four warps a block, each with 16 query rows of a tile of 64; keys and values are read in tiles of 64;
 * the next tile is copied while this one is used. Tiles above the diagonal are never read. Code that the backward
 * kernels share comes first. Next: flash_backward.cuh. */
#ifndef LLMC_CUDA_FLASH_CUH
#define LLMC_CUDA_FLASH_CUH

#include "vector_access.cuh"
#include "warp_reduce.cuh"
#include "tensor_core.cuh"

constexpr int FLASH_WARPS = 4, FLASH_THREADS = FLASH_WARPS * WARP, FLASH_ROWS = 16 * FLASH_WARPS;

#define LOG2_E 1.4426950408889634f

/* Rows of a tile in shared memory are 16 bytes longer than HS elements: the eight rows of a matrix that
 * ldmatrix reads then lie in eight different bank groups. */
template <int HS> constexpr int FLASH_PITCH = HS + 8;

/* One head's queries, keys and values inside qkv (B,T,3C), and where its lse (B,NH,T) begins. */
template <typename T> struct Head {
    T *q, *k, *v;
    size_t stride; // elements from row to row
};
template <typename T>
__device__ inline Head<T> head_of(T *qkv, int batch_head, int rows, int NH, int HS) {
    size_t C = (size_t)NH * HS;
    T *q = qkv + (size_t)(batch_head / NH) * rows * 3 * C + (size_t)(batch_head % NH) * HS;
    return {q, q + C, q + 2 * C, 3 * C};
}
/* The same head inside a matrix (B,T,C). */
template <typename T>
__device__ inline T *head_rows(T *x, int batch_head, int rows, int NH, int HS) {
    return x + ((size_t)(batch_head / NH) * rows * NH + batch_head % NH) * HS;
}

/* Starts to copy ROWS rows; those from `valid` on become zeros. The whole block calls. */
template <int HS, int ROWS>
__device__ inline void copy_tile(bf16 *tile, const bf16 *rows, size_t stride, int valid) {
    constexpr int chunks = HS / PACK; // of a row
    for (int i = threadIdx.x; i < ROWS * chunks; i += FLASH_THREADS) {
        int row = i / chunks, column = i % chunks * PACK;
        const bf16 *from = rows + (row < valid ? row : 0) * stride + column;
        copy_async(tile + row * FLASH_PITCH<HS> + column, from, row < valid);
    }
}

/* Where this lane points for a 16x16 operand: A with k along the row, or B with n along the row (which
 * takes load_matrix_transposed). */
template <int HS> __device__ inline const bf16 *operand(const bf16 *tile, int row, int column) {
    int lane = threadIdx.x % WARP;
    return tile + (row + lane % 16) * FLASH_PITCH<HS> + column + lane / 16 * 8;
}
/* The same for B with k along the row: registers 0, 1 become the first eight columns of B. */
template <int HS> __device__ inline const bf16 *operand_b(const bf16 *tile, int row, int column) {
    int lane = threadIdx.x % WARP;
    return tile + (row + lane % 8 + lane / 16 * 8) * FLASH_PITCH<HS> + column + lane / 8 % 2 * 8;
}

/* c (16 rows, COLUMNS) = a_rows (16, HS) @ b_rows (COLUMNS, HS).T */
template <int HS, int COLUMNS>
__device__ inline void multiply_transposed(float c[COLUMNS / 8][4], const bf16 *a_rows,
                                           const bf16 *b_rows) {
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++) c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
#pragma unroll
    for (int k = 0; k < HS; k += 16) {
        uint32_t a[4], b[4];
        load_matrix(a, operand<HS>(a_rows, 0, k));
#pragma unroll
        for (int n = 0; n < COLUMNS / 16; n++) {
            load_matrix(b, operand_b<HS>(b_rows, 16 * n, k));
            mma(c[2 * n], a, b);
            mma(c[2 * n + 1], a, b + 2);
        }
    }
}

/* c (16, HS) += a (16, K) @ b_rows (K, HS), where a is what multiply_transposed left in registers: its
 * two neighbouring 16x8 results are, rounded to bf16, one 16x16 operand. */
template <int HS, int K>
__device__ inline void multiply_add(float c[HS / 8][4], const float a[K / 8][4],
                                    const bf16 *b_rows) {
#pragma unroll
    for (int k = 0; k < K / 16; k++) {
        const float *left = a[2 * k], *right = a[2 * k + 1];
        uint32_t packed[4] = {pack_bf16(left[0], left[1]), pack_bf16(left[2], left[3]),
                              pack_bf16(right[0], right[1]), pack_bf16(right[2], right[3])};
#pragma unroll
        for (int n = 0; n < HS / 16; n++) {
            uint32_t b[4];
            load_matrix_transposed(b, operand<HS>(b_rows, 16 * k, 16 * n));
            mma(c[2 * n], packed, b);
            mma(c[2 * n + 1], packed, b + 2);
        }
    }
}

/* Writes 16 result rows in 16-byte pieces, by way of `tile`: 16 rows of shared memory that only this
 * warp uses. Rows from `valid` on do not exist. */
template <int HS>
__device__ inline void store_rows(bf16 *rows, size_t stride, const float c[HS / 8][4], bf16 *tile,
                                  int valid) {
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    __syncwarp();
#pragma unroll
    for (int n = 0; n < HS / 8; n++) {
        uint32_t *upper = reinterpret_cast<uint32_t *>(tile + g * FLASH_PITCH<HS> + 8 * n + 2 * t);
        upper[0] = pack_bf16(c[n][0], c[n][1]);
        upper[4 * FLASH_PITCH<HS>] = pack_bf16(c[n][2], c[n][3]); // eight rows down
    }
    __syncwarp(); // all sixteen rows are in the tile
    constexpr int chunks = HS / PACK;
    for (int i = lane; i < 16 * chunks; i += WARP) {
        int row = i / chunks, column = i % chunks * PACK;
        if (row >= valid) continue;
        *reinterpret_cast<Vector<bf16> *>(rows + row * stride + column) =
            *reinterpret_cast<const Vector<bf16> *>(tile + row * FLASH_PITCH<HS> + column);
    }
}

// ---- forward ------------------------------------------------------------------------------------

/* One tile's part of the running softmax of a warp's 16 rows. s (16, 64): scores in, exp2 of them relative
 * to the running maximum out. max, sum and the rows of o (16, HS) follow the new maximum; a thread has
 * rows g and g+8, its quad shares them, and sum is this thread's share. */
template <int HS>
__device__ inline void softmax_tile(float s[FLASH_ROWS / 8][4], float max[2], float sum[2],
                                    float o[HS / 8][4]) {
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float largest = max[row];
#pragma unroll
        for (int n = 0; n < FLASH_ROWS / 8; n++)
            largest = fmaxf(largest, fmaxf(s[n][2 * row], s[n][2 * row + 1]));
        largest = fmaxf(largest, __shfl_xor_sync(FULL_WARP, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(FULL_WARP, largest, 2));
        float correction = exp2f(max[row] - largest);
        max[row] = largest;
        sum[row] *= correction;
#pragma unroll
        for (int n = 0; n < FLASH_ROWS / 8; n++)
#pragma unroll
            for (int i = 2 * row; i < 2 * row + 2; i++) {
                s[n][i] = exp2f(s[n][i] - largest);
                sum[row] += s[n][i];
            }
#pragma unroll
        for (int n = 0; n < HS / 8; n++)
#pragma unroll
            for (int i = 2 * row; i < 2 * row + 2; i++) o[n][i] *= correction;
    }
}

/* Scales scores to log2 units and masks keys after the query. row, column: of c's upper left corner. */
template <int COLUMNS>
__device__ inline void scale_and_mask(float c[COLUMNS / 8][4], float scale, int row, int column) {
    int lane = threadIdx.x % WARP;
    row += lane / 4;
    column += lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            c[n][i] = column + 8 * n + i % 2 <= row + i / 2 * 8 ? c[n][i] * scale : -INFINITY;
}

/* Divides o by the softmax's sums and writes it and the log-sum-exp of rows q0 .. (16). */
template <int HS>
__device__ inline void finish_rows(bf16 *out, RowStat *lse, float o[HS / 8][4], const float max[2],
                                   float sum[2], bf16 *tile, int q0, int T, size_t stride) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int row = 0; row < 2; row++) {
        sum[row] += __shfl_xor_sync(FULL_WARP, sum[row], 1);
        sum[row] += __shfl_xor_sync(FULL_WARP, sum[row], 2);
#pragma unroll
        for (int n = 0; n < HS / 8; n++)
#pragma unroll
            for (int i = 2 * row; i < 2 * row + 2; i++) o[n][i] /= sum[row];
        int q = q0 + lane / 4 + 8 * row;
        if (lane % 4 == 0 && q < T) lse[q] = (max[row] + log2f(sum[row])) / LOG2_E;
    }
    store_rows<HS>(out + q0 * stride, stride, o, tile, T - q0);
}

/* Grid: (B*NH, tiles of 64 queries, the longest first). Shapes as in ops.h. */
template <int HS>
__global__ void __launch_bounds__(FLASH_THREADS)
    flash_forward_kernel(bf16 *out, RowStat *lse, const bf16 *qkv, int T, int NH, float scale) {
    constexpr int SIZE = FLASH_ROWS * FLASH_PITCH<HS>; // of a tile
    DYNAMIC_SHARED(memory);
    bf16 *q_tile = (bf16 *)memory, *k_tiles = q_tile + SIZE, *v_tiles = k_tiles + 2 * SIZE;
    Head<const bf16> head = head_of(qkv, blockIdx.x, T, NH, HS);
    int last = gridDim.y - 1 - blockIdx.y, q0 = last * FLASH_ROWS; // tile `last` is on the diagonal
    int warp_row = threadIdx.x / WARP * 16;

    copy_tile<HS, FLASH_ROWS>(q_tile, head.q + q0 * head.stride, head.stride, T - q0);
    float o[HS / 8][4] = {}, max[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    for (int j = -1; j <= last; j++) { // copies tile j + 1, uses tile j
        int next = j + 1, k0 = next * FLASH_ROWS;
        if (next <= last) {
            copy_tile<HS, FLASH_ROWS>(k_tiles + next % 2 * SIZE, head.k + k0 * head.stride,
                                      head.stride, T - k0);
            copy_tile<HS, FLASH_ROWS>(v_tiles + next % 2 * SIZE, head.v + k0 * head.stride,
                                      head.stride, T - k0);
        }
        copy_async_commit();
        if (j < 0) continue;
        copy_async_wait<1>();
        __syncthreads();
        float s[FLASH_ROWS / 8][4];
        multiply_transposed<HS, FLASH_ROWS>(s, q_tile + warp_row * FLASH_PITCH<HS>,
                                            k_tiles + j % 2 * SIZE);
        scale_and_mask<FLASH_ROWS>(s, scale * LOG2_E, q0 + warp_row, j * FLASH_ROWS);
        softmax_tile<HS>(s, max, sum, o);
        multiply_add<HS, FLASH_ROWS>(o, s, v_tiles + j % 2 * SIZE);
        __syncthreads(); // the tile is free to be overwritten
    }
    finish_rows<HS>(head_rows(out, blockIdx.x, T, NH, HS), lse + (size_t)blockIdx.x * T, o, max,
                    sum, q_tile + warp_row * FLASH_PITCH<HS>, q0 + warp_row, T, (size_t)NH * HS);
}

// ---- launcher -----------------------------------------------------------------------------------

/* Allows a kernel its dynamic shared memory, which is more than the default 48 KB. */
template <typename F> static void allow_shared(F *kernel, size_t bytes) {
    CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
}

template <int HS>
static void flash_forward(bf16 *out, RowStat *lse, const bf16 *qkv, int B, int T, int NH) {
    size_t shared = 5 * FLASH_ROWS * FLASH_PITCH<HS> * sizeof(bf16);
    allow_shared(flash_forward_kernel<HS>, shared);
    LAUNCH((flash_forward_kernel<HS>), dim3(B * NH, divide_up(T, FLASH_ROWS)), FLASH_THREADS,
           shared, out, lse, qkv, T, NH, 1.0f / sqrtf((float)HS));
}

#endif

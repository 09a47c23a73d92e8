/* flash.cuh: causal attention on tensor cores, forward (Dao et al. 2022; Dao 2023). bf16, head sizes HS of
 * 64 and 128. Four warps a block, each with 16 query rows of a tile of 64; keys and values are read in tiles of 64.
 * Tiles above the diagonal are never read. Code that the backward kernels share comes first. Next: flash_backward.cuh.
 *
 *   global memory      shared memory             registers of a warp (16 query rows)
 *
 *   Q tile  --------->  q_tile     --ldmatrix-->  S = Q K.T   (16, 64)   mma
 *   K tile j+1 ------>  k_tiles[2] --ldmatrix-->     |  mask, only in the tile on the diagonal
 *   V tile j+1 ------>  v_tiles[2] --ldmatrix--.     v
 *          cp.async, while tile j is used      |  P = exp2(scale S - max), max and sum of each row go along
 *                                              v     |  rounded to bf16, S's registers are the operand A as they are
 *   out, lse  <-------  (q_tile)   <-----------  O += P V     (16, HS)   mma
 *
 * What a tile of 64 x 64 costs each warp at HS = 64, and how many blocks a multiprocessor holds (nvcc 13, sm_90;
 * the last number of instructions is without those that only the diagonal needs):
 *                 instructions   mma   ldmatrix   registers   shared    sm_90   sm_80   sm_86, 89
 *   forward         530, 466      64      36         128       40 KB      4       4         2
 *   dK and dV       860, 730     128      72         240       48 KB      2       2         2
 *   dQ              560, 480      96      56         133       48 KB      3       3         2
 * A multiprocessor issues one instruction of each of four warps a cycle, and reads one ldmatrix in four cycles: forward
 * takes 530 cycles to issue a block's tile, 4 * 36 * 4 = 576 to read, and some 410 in the tensor cores. */
#ifndef LLMC_CUDA_FLASH_CUH
#define LLMC_CUDA_FLASH_CUH

#include "vector_access.cuh"
#include "warp_reduce.cuh"
#include "tensor_core.cuh"

constexpr int FLASH_WARPS = 4, FLASH_THREADS = FLASH_WARPS * WARP, FLASH_ROWS = 16 * FLASH_WARPS;

/* Tiles in shared memory have rows of HS elements, in pieces of 16 bytes. Piece p of row r lies in place p ^ (r % 8):
 *
 *   row 0   0 1 2 3 4 5 6 7        The eight rows of a matrix that ldmatrix reads have the same p, and so lie in eight
 *   row 1   1 0 3 2 5 4 7 6        different groups of banks: one access instead of eight. Longer rows would do it
 *   row 2   2 3 0 1 6 7 4 5        too, but with 48 KB a block of the backward pass, sm_86 and sm_89 hold two.
 *   ...
 * Returns where element (row, column) of a tile lies. */
template <int HS> __device__ inline unsigned tile_at(unsigned row, unsigned column) {
    return row * HS + (column / PACK ^ row % 8) * PACK + column % PACK;
}

/* What a block works on. Tiles of a head are neighbours in the one-dimensional grid. So they run at about the same
 * time, and all but the first find the head's keys and values in the L2 cache. */
struct Place {
    int head, tile, tiles; // head: of B*NH
};
__device__ inline Place place_of_block(int rows, int rows_of_a_tile) {
    int tiles = (rows + rows_of_a_tile - 1) / rows_of_a_tile;
    return {int(blockIdx.x) / tiles, int(blockIdx.x) % tiles, tiles};
}

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
    constexpr int pieces = HS / PACK, step = FLASH_THREADS / pieces; // of a row; rows that the block copies at a time
    static_assert(step % 8 == 0 && ROWS % step == 0, "tile_at must be the same for all rows of a thread");
    int row = threadIdx.x / pieces, column = threadIdx.x % pieces * PACK;
    const bf16 *from = rows + row * stride + column;
    bf16 *to = tile + tile_at<HS>(row, column);
#pragma unroll
    for (int r = 0; r < ROWS; r += step)
        copy_async(to + r * HS, row + r < valid ? from + r * stride : rows, row + r < valid);
}

/* Where this lane points for a 16x16 operand: A with k along the row, or B with n along the row (which
 * takes load_matrix_transposed). row and column are multiples of 16, so that ^ does to the lane's place what tile_at
 * does, and is one instruction. */
template <int HS> __device__ inline const bf16 *operand(const bf16 *tile, int row, int column) {
    unsigned lane = threadIdx.x % WARP;
    return tile + row * HS + (tile_at<HS>(lane % 16, lane / 16 * 8) ^ column);
}
/* The same for B with k along the row: registers 0, 1 become the first eight columns of B. */
template <int HS> __device__ inline const bf16 *operand_b(const bf16 *tile, int row, int column) {
    unsigned lane = threadIdx.x % WARP;
    return tile + row * HS + (tile_at<HS>(lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8) ^ column);
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
        uint32_t *upper = reinterpret_cast<uint32_t *>(tile + tile_at<HS>(g, 8 * n + 2 * t));
        upper[0] = pack_bf16(c[n][0], c[n][1]);
        upper[4 * HS] = pack_bf16(c[n][2], c[n][3]); // eight rows down, where r % 8 is the same
    }
    __syncwarp(); // all sixteen rows are in the tile
    constexpr int chunks = HS / PACK;
    for (int i = lane; i < 16 * chunks; i += WARP) {
        int row = i / chunks, column = i % chunks * PACK;
        if (row >= valid) continue;
        *reinterpret_cast<Vector<bf16> *>(rows + row * stride + column) =
            *reinterpret_cast<const Vector<bf16> *>(tile + tile_at<HS>(row, column));
    }
}

// ---- forward ------------------------------------------------------------------------------------

/* One tile's part of the running softmax of a warp's 16 rows. s (16, 64): scores in; out, exp of what each is above
 * the running maximum, times scale. max, sum and the rows of o (16, HS) follow the new maximum; a thread has
 * rows g and g+8, its quad shares them, and sum is this thread's share. scale: 1/sqrt(HS) * log2(e), for exp2: the
 * multiplication and the subtraction are one instruction a score. */
template <int HS>
__device__ inline void softmax_tile(float s[FLASH_ROWS / 8][4], float max[2], float sum[2],
                                    float o[HS / 8][4], float scale) {
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float largest = max[row];
#pragma unroll
        for (int n = 0; n < FLASH_ROWS / 8; n++)
            largest = fmaxf(largest, fmaxf(s[n][2 * row], s[n][2 * row + 1]));
        largest = fmaxf(largest, __shfl_xor_sync(FULL_WARP, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(FULL_WARP, largest, 2));
        float correction = exp2_approximately((max[row] - largest) * scale), shift = largest * scale;
        max[row] = largest;
        sum[row] *= correction;
#pragma unroll
        for (int n = 0; n < FLASH_ROWS / 8; n++)
#pragma unroll
            for (int i = 2 * row; i < 2 * row + 2; i++) {
                s[n][i] = exp2_approximately(fmaf(s[n][i], scale, -shift));
                sum[row] += s[n][i];
            }
#pragma unroll
        for (int n = 0; n < HS / 8; n++)
#pragma unroll
            for (int i = 2 * row; i < 2 * row + 2; i++) o[n][i] *= correction;
    }
}

/* Masks keys after the query. row, column: of c's upper left corner. */
template <int COLUMNS>
__device__ inline void mask_later_keys(float c[COLUMNS / 8][4], int row, int column) {
    if (column + COLUMNS - 1 <= row) return; // below the diagonal all keys are seen, by most tiles
    int lane = threadIdx.x % WARP;
    row += lane / 4;
    column += lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            c[n][i] = column + 8 * n + i % 2 <= row + i / 2 * 8 ? c[n][i] : -INFINITY;
}

/* Divides o by the softmax's sums and writes it and the log-sum-exp of rows q0 .. (16). scale: as in softmax_tile. */
template <int HS>
__device__ inline void finish_rows(bf16 *out, RowStat *lse, float o[HS / 8][4], const float max[2], float sum[2],
                                   float scale, bf16 *tile, int q0, int T, size_t stride) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int row = 0; row < 2; row++) {
        sum[row] += __shfl_xor_sync(FULL_WARP, sum[row], 1);
        sum[row] += __shfl_xor_sync(FULL_WARP, sum[row], 2);
        float factor = 1 / sum[row];
#pragma unroll
        for (int n = 0; n < HS / 8; n++)
#pragma unroll
            for (int i = 2 * row; i < 2 * row + 2; i++) o[n][i] *= factor;
        int q = q0 + lane / 4 + 8 * row;
        if (lane % 4 == 0 && q < T) lse[q] = (max[row] * scale + log2f(sum[row])) / LOG2_E;
    }
    store_rows<HS>(out + q0 * stride, stride, o, tile, T - q0);
}

/* Grid: B*NH heads times tiles of 64 queries, of each head the longest first. Shapes as in ops.h.
 * scale: 1/sqrt(HS) * log2(e). */
template <int HS>
__global__ void __launch_bounds__(FLASH_THREADS)
    flash_forward_kernel(bf16 *out, RowStat *lse, const bf16 *qkv, int T, int NH, float scale) {
    constexpr int SIZE = FLASH_ROWS * HS; // of a tile
    DYNAMIC_SHARED(memory);
    bf16 *q_tile = (bf16 *)memory, *k_tiles = q_tile + SIZE, *v_tiles = k_tiles + 2 * SIZE;
    Place at = place_of_block(T, FLASH_ROWS);
    Head<const bf16> head = head_of(qkv, at.head, T, NH, HS);
    int last = at.tiles - 1 - at.tile, q0 = last * FLASH_ROWS; // tile `last` is on the diagonal
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
        multiply_transposed<HS, FLASH_ROWS>(s, q_tile + warp_row * HS, k_tiles + j % 2 * SIZE);
        mask_later_keys<FLASH_ROWS>(s, q0 + warp_row, j * FLASH_ROWS);
        softmax_tile<HS>(s, max, sum, o, scale);
        multiply_add<HS, FLASH_ROWS>(o, s, v_tiles + j % 2 * SIZE);
        __syncthreads(); // the tile is free to be overwritten
    }
    finish_rows<HS>(head_rows(out, at.head, T, NH, HS), lse + (size_t)at.head * T, o, max, sum, scale,
                    q_tile + warp_row * HS, q0 + warp_row, T, (size_t)NH * HS);
}

// ---- launcher -----------------------------------------------------------------------------------

/* Allows a kernel its dynamic shared memory, which is more than the default 48 KB. */
template <typename F> static void allow_shared(F *kernel, size_t bytes) {
    CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
}

template <int HS>
static void flash_forward(bf16 *out, RowStat *lse, const bf16 *qkv, int B, int T, int NH) {
    size_t shared = 5 * FLASH_ROWS * HS * sizeof(bf16);
    allow_shared(flash_forward_kernel<HS>, shared);
    LAUNCH((flash_forward_kernel<HS>), B * NH * divide_up(T, FLASH_ROWS), FLASH_THREADS, shared, out, lse, qkv, T,
           NH, LOG2_E / sqrtf((float)HS));
}

#endif

/* attention.cuh: causal self-attention. Tensor cores do it for bf16 and head sizes 64 and 128 (flash.cuh);
 * the plain kernels here for everything else: FP32, other head sizes, and the one new query of sampling.
 * A warp takes one query (or key); keys and values (or queries and gradients) pass by in tiles in shared
 * memory, a lane for each row of the tile. */
#ifndef LLMC_CUDA_ATTENTION_CUH
#define LLMC_CUDA_ATTENTION_CUH

#include "flash_backward.cuh"

constexpr int PLAIN_WARPS = 4, PLAIN_THREADS = PLAIN_WARPS * WARP, PLAIN_SHARED_MAX = 99 << 10;

/* The problem's sizes, as the plain kernels need them. */
typedef struct {
    int T, NH, hs;
    int tile; // rows that pass by at a time, up to WARP
    float scale;
} PlainShape;

/* rows (count, hs) become floats in shared memory, hs + 1 apart. Threads i of n take part. */
__device__ inline void plain_copy(float *to, const Act *rows, size_t stride, int count, int hs,
                                  int i, int n) {
    for (; i < count * hs; i += n)
        to[i / hs * (hs + 1) + i % hs] = to_float(rows[i / hs * stride + i % hs]);
}

/* Copies the next `count` rows of two matrices to shared memory. For all threads of a block. */
__device__ inline void plain_next(float *a_tile, const Act *a, size_t a_stride, float *b_tile,
                                  const Act *b, size_t b_stride, int count, int hs) {
    __syncthreads(); // the tiles are free to be overwritten
    plain_copy(a_tile, a, a_stride, count, hs, threadIdx.x, PLAIN_THREADS);
    plain_copy(b_tile, b, b_stride, count, hs, threadIdx.x, PLAIN_THREADS);
    __syncthreads();
}

__device__ inline float dot(const float *a, const float *b, int n) {
    float sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* sums[d] = factor * sums[d] + sum over j < count of weights[j] * rows[j][d], for a lane's share of d. */
__device__ inline void add_weighted(float *sums, float factor, const float *weights,
                                    const float *rows, int count, int hs, int lane) {
    for (int d = lane; d < hs; d += WARP) {
        float sum = sums[d] * factor;
        for (int j = 0; j < count; j++) sum += weights[j] * rows[j * (hs + 1) + d];
        sums[d] = sum;
    }
}

/* Queries `first` .. T-1 of every head. out (B, T - first, C); lse (B,NH,T) or NULL; qkv (B,T,3C).
 * Grid: B*NH heads times groups of PLAIN_WARPS queries. Shared: two tiles; a query, a sum and weights a warp. */
__global__ void attention_forward_kernel(Act *out, RowStat *lse, const Act *qkv, PlainShape shape,
                                         int first) {
    DYNAMIC_SHARED(memory);
    int T = shape.T, hs = shape.hs, tile = shape.tile, pitch = hs + 1;
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    float *k_tile = (float *)memory, *v_tile = k_tile + tile * pitch;
    float *q = v_tile + tile * pitch + warp * (2 * pitch + WARP), *sums = q + pitch,
          *weights = sums + pitch;
    Place at = place_of_block(T - first, PLAIN_WARPS);
    Head<const Act> head = head_of(qkv, at.head, T, shape.NH, hs);
    int group = first + at.tile * PLAIN_WARPS, query = group + warp;
    int keys = min(T, group + PLAIN_WARPS); // that any query of the block sees
    if (query < T) plain_copy(q, head.q + query * head.stride, head.stride, 1, hs, lane, WARP);
    for (int d = lane; d < hs; d += WARP) sums[d] = 0;
    Softmax all = {-INFINITY, 0};
    for (int k0 = 0; k0 < keys; k0 += tile) {
        int count = min(tile, keys - k0);
        plain_next(k_tile, head.k + k0 * head.stride, head.stride, v_tile,
                   head.v + k0 * head.stride, head.stride, count, hs);
        if (query >= T) continue; // the whole warp
        bool seen = lane < count && k0 + lane <= query;
        float s = seen ? dot(q, k_tile + lane * pitch, hs) * shape.scale : -INFINITY;
        float max = fmaxf(all.max, warp_max(s)), correction = expf(all.max - max);
        weights[lane] = seen ? expf(s - max) : 0.0f;
        all = {max, all.sum * correction + warp_sum(weights[lane])};
        __syncwarp();
        add_weighted(sums, correction, weights, v_tile, count, hs, lane);
        __syncwarp();
    }
    if (query >= T) return;
    size_t stride = (size_t)shape.NH * hs;
    Act *row = head_rows(out, at.head, T - first, shape.NH, hs) + (query - first) * stride;
    for (int d = lane; d < hs; d += WARP) from_float(&row[d], sums[d] / all.sum);
    if (lse && lane == 0) lse[(size_t)at.head * T + query] = all.max + logf(all.sum);
}

/* delta (B,NH,T) = the sum over a head's channels of dout * out. A row has `lanes` lanes of a warp, a power of two:
 * with heads of 64 channels, 8 lanes of 8 channels each, so that a warp has four rows. */
__global__ void attention_delta_kernel(RowStat *delta, const Act *dout, const Act *out, int rows,
                                       int T, int NH, int hs, int lanes) {
    int lane = threadIdx.x % lanes, row = blockIdx.x * (PLAIN_THREADS / lanes) + threadIdx.x / lanes; // of (B,NH,T)
    bool is_there = row < rows;
    if (!is_there) row = rows - 1; // all lanes take part in the sums below
    size_t at = (size_t)(row % T) * NH * hs;
    const Act *d = head_rows(dout, row / T, T, NH, hs) + at,
              *o = head_rows(out, row / T, T, NH, hs) + at;
    float sum = 0;
    for (int c = lane * PACK; c < hs; c += lanes * PACK) {
        float a[PACK], b[PACK];
        load(a, d + c, hs - c);
        load(b, o + c, hs - c);
#pragma unroll
        for (int i = 0; i < PACK; i++) sum += a[i] * b[i];
    }
    for (int bits = lanes / 2; bits > 0; bits /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, bits);
    if (lane == 0 && is_there) delta[row] = sum;
}

/* dQ, a warp a query: flash_backward.cuh has the formulas. Grid: B*NH heads times groups of queries. Shared: two
 * tiles; a query, its dout, its gradient and weights a warp. */
__global__ void attention_backward_queries_kernel(Act *dqkv, const Act *dout, const RowStat *lse,
                                                  const RowStat *delta, const Act *qkv,
                                                  PlainShape shape) {
    DYNAMIC_SHARED(memory);
    int T = shape.T, hs = shape.hs, tile = shape.tile, pitch = hs + 1;
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    float *k_tile = (float *)memory, *v_tile = k_tile + tile * pitch;
    float *q = v_tile + tile * pitch + warp * (3 * pitch + WARP), *d = q + pitch, *dq = d + pitch;
    float *weights = dq + pitch;
    Place place = place_of_block(T, PLAIN_WARPS);
    Head<const Act> head = head_of(qkv, place.head, T, shape.NH, hs);
    size_t stride = (size_t)shape.NH * hs, at = (size_t)place.head * T;
    int group = place.tile * PLAIN_WARPS, query = group + warp, keys = min(T, group + PLAIN_WARPS);
    if (query < T) {
        plain_copy(q, head.q + query * head.stride, head.stride, 1, hs, lane, WARP);
        plain_copy(d, head_rows(dout, place.head, T, shape.NH, hs) + query * stride, stride, 1, hs,
                   lane, WARP);
    }
    for (int c = lane; c < hs; c += WARP) dq[c] = 0;
    for (int k0 = 0; k0 < keys; k0 += tile) {
        int count = min(tile, keys - k0);
        plain_next(k_tile, head.k + k0 * head.stride, head.stride, v_tile,
                   head.v + k0 * head.stride, head.stride, count, hs);
        if (query >= T) continue; // the whole warp
        weights[lane] = 0;
        if (lane < count && k0 + lane <= query) {
            float p = expf(dot(q, k_tile + lane * pitch, hs) * shape.scale - lse[at + query]);
            weights[lane] =
                p * (dot(d, v_tile + lane * pitch, hs) - delta[at + query]) * shape.scale;
        }
        __syncwarp();
        add_weighted(dq, 1, weights, k_tile, count, hs, lane);
        __syncwarp();
    }
    if (query >= T) return;
    Head<Act> gradient = head_of(dqkv, place.head, T, shape.NH, hs);
    for (int c = lane; c < hs; c += WARP)
        from_float(&gradient.q[query * gradient.stride + c], dq[c]);
}

/* dK and dV, a warp a key. Grid: B*NH heads times groups of keys. Shared: two tiles; a key, its value, the gradients of
 * both and two sets of weights a warp. */
__global__ void attention_backward_keys_kernel(Act *dqkv, const Act *dout, const RowStat *lse,
                                               const RowStat *delta, const Act *qkv,
                                               PlainShape shape) {
    DYNAMIC_SHARED(memory);
    int T = shape.T, hs = shape.hs, tile = shape.tile, pitch = hs + 1;
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    float *q_tile = (float *)memory, *d_tile = q_tile + tile * pitch;
    float *k = d_tile + tile * pitch + warp * (4 * pitch + 2 * WARP), *v = k + pitch;
    float *dk = v + pitch, *dv = dk + pitch, *p_weights = dv + pitch, *s_weights = p_weights + WARP;
    Place place = place_of_block(T, PLAIN_WARPS);
    Head<const Act> head = head_of(qkv, place.head, T, shape.NH, hs);
    const Act *dout_rows = head_rows(dout, place.head, T, shape.NH, hs);
    size_t stride = (size_t)shape.NH * hs, at = (size_t)place.head * T;
    int group = place.tile * PLAIN_WARPS, key = group + warp;
    if (key < T) {
        plain_copy(k, head.k + key * head.stride, head.stride, 1, hs, lane, WARP);
        plain_copy(v, head.v + key * head.stride, head.stride, 1, hs, lane, WARP);
    }
    for (int c = lane; c < hs; c += WARP) dk[c] = dv[c] = 0;
    for (int q0 = group; q0 < T; q0 += tile) {
        int count = min(tile, T - q0);
        plain_next(q_tile, head.q + q0 * head.stride, head.stride, d_tile, dout_rows + q0 * stride,
                   stride, count, hs);
        if (key >= T) continue; // the whole warp
        int query = q0 + lane;
        p_weights[lane] = s_weights[lane] = 0;
        if (lane < count && key <= query) {
            float p = expf(dot(k, q_tile + lane * pitch, hs) * shape.scale - lse[at + query]);
            p_weights[lane] = p;
            s_weights[lane] =
                p * (dot(v, d_tile + lane * pitch, hs) - delta[at + query]) * shape.scale;
        }
        __syncwarp();
        add_weighted(dv, 1, p_weights, d_tile, count, hs, lane);
        add_weighted(dk, 1, s_weights, q_tile, count, hs, lane);
        __syncwarp();
    }
    if (key >= T) return;
    Head<Act> gradient = head_of(dqkv, place.head, T, shape.NH, hs);
    for (int c = lane; c < hs; c += WARP) {
        from_float(&gradient.k[key * gradient.stride + c], dk[c]);
        from_float(&gradient.v[key * gradient.stride + c], dv[c]);
    }
}

// ---- launchers ----------------------------------------------------------------------------------

/* Shared bytes of a plain kernel that keeps `vectors` rows and `weights` sets of weights a warp. */
static size_t plain_shared(int tile, int hs, int vectors, int weights) {
    return sizeof(float) * (2 * (size_t)tile * (hs + 1) +
                            PLAIN_WARPS * ((size_t)vectors * (hs + 1) + (size_t)weights * WARP));
}

/* The largest tile that fits beside the shared memory of the kernel that needs the most. */
static PlainShape plain_shape(int T, int NH, int hs) {
    int tile = WARP;
    while (tile > 1 && plain_shared(tile, hs, 4, 2) > PLAIN_SHARED_MAX) tile /= 2;
    if (plain_shared(tile, hs, 4, 2) > PLAIN_SHARED_MAX)
        fatal(EXIT_USAGE,
              "heads of %d channels are more than attention on this device can take; use more "
              "--heads",
              hs);
    return {T, NH, hs, tile, 1.0f / sqrtf((float)hs)};
}

static void plain_forward(Act *out, RowStat *lse, const Act *qkv, int B, int T, int C, int NH,
                          int first) {
    PlainShape shape = plain_shape(T, NH, C / NH);
    size_t shared = plain_shared(shape.tile, shape.hs, 2, 1);
    allow_shared(attention_forward_kernel, shared);
    LAUNCH(attention_forward_kernel, B * NH * divide_up(T - first, PLAIN_WARPS), PLAIN_THREADS, shared, out, lse, qkv,
           shape, first);
}

static void plain_backward(Act *dqkv, const Act *dout, const RowStat *lse, const RowStat *delta,
                           const Act *qkv, int B, int T, int C, int NH) {
    PlainShape shape = plain_shape(T, NH, C / NH);
    int grid = B * NH * divide_up(T, PLAIN_WARPS);
    size_t shared_queries = plain_shared(shape.tile, shape.hs, 3, 1);
    size_t shared_keys = plain_shared(shape.tile, shape.hs, 4, 2);
    allow_shared(attention_backward_queries_kernel, shared_queries);
    allow_shared(attention_backward_keys_kernel, shared_keys);
    LAUNCH(attention_backward_queries_kernel, grid, PLAIN_THREADS, shared_queries, dqkv, dout, lse,
           delta, qkv, shape);
    LAUNCH(attention_backward_keys_kernel, grid, PLAIN_THREADS, shared_keys, dqkv, dout, lse, delta,
           qkv, shape);
}

#ifndef PRECISION_FP32
/* Whether tensor cores can do it: cp.async and the 16-byte stores want aligned rows. */
static bool is_aligned(const void *a, const void *b) {
    return ((uintptr_t)a | (uintptr_t)b) % 16 == 0;
}
#endif

void attention_forward(Act *out, RowStat *lse, const Act *qkv, int B, int T, int C, int NH) {
#ifndef PRECISION_FP32
    int hs = C / NH;
    if (hs == 64 && is_aligned(out, qkv)) return flash_forward<64>(out, lse, qkv, B, T, NH);
    if (hs == 128 && is_aligned(out, qkv)) return flash_forward<128>(out, lse, qkv, B, T, NH);
#endif
    plain_forward(out, lse, qkv, B, T, C, NH, 0);
}

void attention_backward(Act *dqkv, const Act *dout, const Act *out, const RowStat *lse, const Act *qkv,
                        int B, int T, int C, int NH) {
    int rows = B * NH * T, hs = C / NH;
    RowStat *delta = (RowStat *)scratch_take((size_t)rows * sizeof(RowStat));
    int lanes = 1;
    while (lanes < WARP && lanes * PACK < hs) lanes *= 2;
    LAUNCH(attention_delta_kernel, divide_up(rows, PLAIN_THREADS / lanes), PLAIN_THREADS, 0, delta, dout, out,
           rows, T, NH, hs, lanes);
#ifndef PRECISION_FP32
    bool aligned = is_aligned(dqkv, dout) && is_aligned(qkv, NULL);
    if (hs == 64 && aligned) return flash_backward<64>(dqkv, dout, lse, delta, qkv, B, T, NH);
    if (hs == 128 && aligned) return flash_backward<128>(dqkv, dout, lse, delta, qkv, B, T, NH);
#endif
    plain_backward(dqkv, dout, lse, delta, qkv, B, T, C, NH);
}

/* Query `position` of a row whose keys and values are in qkv: attention_forward's last row. */
void attention_decode(Act *out, const Act *qkv, int position, int C, int NH) {
    plain_forward(out, NULL, qkv, 1, position + 1, C, NH, position);
}

#endif

/* warp_reduce.cuh: sums and maxima over a warp or a block. The order is fixed by lane numbers, so the same
 * numbers give the same bits on every run. */
#ifndef LLMC_CUDA_REDUCE_CUH
#define LLMC_CUDA_REDUCE_CUH

#include "cuda.cuh"

constexpr int WARP = 32;
constexpr unsigned FULL_WARP = 0xffffffff;

/* Every lane gets the sum, or the maximum, over the warp. All lanes must call. */
template <typename T> __device__ inline T warp_sum(T value) {
#pragma unroll
    for (int bits = WARP / 2; bits > 0; bits /= 2) value += __shfl_xor_sync(FULL_WARP, value, bits);
    return value;
}
__device__ inline float warp_max(float value) {
#pragma unroll
    for (int bits = WARP / 2; bits > 0; bits /= 2)
        value = fmaxf(value, __shfl_xor_sync(FULL_WARP, value, bits));
    return value;
}

__device__ inline int warp_max_int(int value) {
#pragma unroll
    for (int bits = WARP / 2; bits > 0; bits /= 2)
        value = max(value, __shfl_xor_sync(FULL_WARP, value, bits));
    return value;
}

/* Every thread gets the sum over a one-dimensional block of whole warps. */
static __device__ inline double block_sum(double value) {
    __shared__ double partial[WARP]; // one a warp
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    value = warp_sum(value);
    if (lane == 0) partial[warp] = value;
    __syncthreads(); // every warp has written its sum
    value = warp_sum(lane < warps ? partial[lane] : 0.0);
    __syncthreads(); // no warp may write `partial` for a next sum while it is still read
    return value;
}

/* The maximum of a running softmax and the sum of exponentials relative to it. */
struct Softmax {
    float max, sum;
};

/* Both softmaxes' terms together. Empty ones have max -inf and sum 0; NaN stays NaN. */
__device__ inline Softmax merge(Softmax a, Softmax b) {
    if (a.sum == 0) return b;
    if (b.sum == 0) return a;
    float max = fmaxf(a.max, b.max);
    return {max, a.sum * expf(a.max - max) + b.sum * expf(b.max - max)};
}

__device__ inline Softmax warp_merge(Softmax mine) {
#pragma unroll
    for (int bits = WARP / 2; bits > 0; bits /= 2) {
        Softmax other = {__shfl_xor_sync(FULL_WARP, mine.max, bits),
                         __shfl_xor_sync(FULL_WARP, mine.sum, bits)};
        mine = merge(mine, other);
    }
    return mine;
}

/* Every thread gets the merged softmax of a one-dimensional block of whole warps. */
static __device__ inline Softmax block_merge(Softmax mine) {
    __shared__ float partial_max[WARP], partial_sum[WARP]; // one a warp
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    mine = warp_merge(mine);
    if (lane == 0) partial_max[warp] = mine.max, partial_sum[warp] = mine.sum;
    __syncthreads(); // every warp has written its share
    mine = lane < warps ? Softmax{partial_max[lane], partial_sum[lane]} : Softmax{-INFINITY, 0};
    mine = warp_merge(mine);
    __syncthreads();
    return mine;
}

#endif

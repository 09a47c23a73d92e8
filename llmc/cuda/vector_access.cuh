/* vector_access.cuh: how kernels touch memory: eight elements at a time, as floats, in 16-byte accesses where the
 * address allows, one by one where it does not or where fewer are left. So every kernel is correct for every shape,
 * and fast for those whose rows are multiples of 16 bytes. */
#ifndef LLMC_CUDA_PACK_CUH
#define LLMC_CUDA_PACK_CUH

#include "cuda.cuh"

constexpr int PACK = 8;

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(bf16 x) { return __bfloat162float(x); }
__device__ inline void from_float(float *to, float x) { *to = x; }
__device__ inline void from_float(bf16 *to, float x) { *to = __float2bfloat16(x); }

/* 16 bytes of T. */
template <typename T> struct __align__(16) Vector { T item[16 / sizeof(T)]; };

/* out[i] = p[i], i < PACK; 0 for i >= valid. */
template <typename T> __device__ inline void load(float out[PACK], const T *p, int valid) {
    constexpr int n = 16 / sizeof(T);
    if (valid >= PACK && (uintptr_t)p % 16 == 0) {
#pragma unroll
        for (int v = 0; v < PACK / n; v++) {
            Vector<T> vector = reinterpret_cast<const Vector<T> *>(p)[v];
#pragma unroll
            for (int i = 0; i < n; i++) out[v * n + i] = to_float(vector.item[i]);
        }
    } else {
#pragma unroll
        for (int i = 0; i < PACK; i++) out[i] = i < valid ? to_float(p[i]) : 0.0f;
    }
}

/* p[i] = in[i], i < min(PACK, valid). */
template <typename T> __device__ inline void store(T *p, const float in[PACK], int valid) {
    constexpr int n = 16 / sizeof(T);
    if (valid >= PACK && (uintptr_t)p % 16 == 0) {
#pragma unroll
        for (int v = 0; v < PACK / n; v++) {
            Vector<T> vector;
#pragma unroll
            for (int i = 0; i < n; i++) from_float(&vector.item[i], in[v * n + i]);
            reinterpret_cast<Vector<T> *>(p)[v] = vector;
        }
    } else {
#pragma unroll
        for (int i = 0; i < PACK; i++)
            if (i < valid) from_float(&p[i], in[i]);
    }
}

#endif

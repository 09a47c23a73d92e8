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

/* Elements as they lie in memory, in 4-byte words: one float a word, or two bf16, the first one in the lower half.
 * bits_at: the element at p, in the low bits. unpack: element i of an array of words. */
struct __align__(16) Words { uint32_t word[4]; };
template <typename T> constexpr int WORDS = PACK * sizeof(T) / 4; // of PACK elements

__device__ inline uint32_t bits_at(const float *p) { return *reinterpret_cast<const uint32_t *>(p); }
__device__ inline uint32_t bits_at(const bf16 *p) { return *reinterpret_cast<const uint16_t *>(p); }
template <typename T> __device__ inline float unpack(const uint32_t *words, int i) {
    if (sizeof(T) == 4) return __uint_as_float(words[i]);
    return __uint_as_float(i % 2 ? words[i / 2] & 0xffff0000u : words[i / 2] << 16); // bf16: a float's upper half
}

/* Element i of an array of words becomes minus infinity. */
template <typename T> __device__ inline void set_minus_infinity(uint32_t *words, int i) {
    if (sizeof(T) == 4)
        words[i] = 0xff800000u;
    else
        words[i / 2] = i % 2 ? (words[i / 2] & 0xffffu) | 0xff800000u : (words[i / 2] & ~0xffffu) | 0xff80u;
}

/* words = the bits of p[0 .. PACK); zeros from p[valid] on. */
template <typename T> __device__ inline void load_words(uint32_t words[WORDS<T>], const T *p, int valid) {
    constexpr int each = 4 / sizeof(T); // elements a word
    if (valid >= PACK && (uintptr_t)p % 16 == 0) {
#pragma unroll
        for (int v = 0; v < WORDS<T> / 4; v++) {
            Words vector = reinterpret_cast<const Words *>(p)[v];
#pragma unroll
            for (int i = 0; i < 4; i++) words[4 * v + i] = vector.word[i];
        }
    } else {
#pragma unroll
        for (int i = 0; i < WORDS<T>; i++) words[i] = 0;
#pragma unroll
        for (int i = 0; i < PACK; i++)
            if (i < valid) words[i / each] |= bits_at(p + i) << (8 * sizeof(T) * (i % each));
    }
}

/* out[i] = p[i], i < PACK; 0 for i >= valid. Nothing is computed from what was loaded before both branches have met:
 * so the loads of a kernel that calls this several times are all issued before the first is waited for. */
template <typename T> __device__ inline void load(float out[PACK], const T *p, int valid) {
    uint32_t words[WORDS<T>];
    load_words(words, p, valid);
#pragma unroll
    for (int i = 0; i < PACK; i++) out[i] = unpack<T>(words, i);
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

/* vec.h: vectors of `real`, as wide as the target's registers, on the vector extensions that gcc
 * and clang share: one source for AVX-512, AVX, SSE2 and NEON, float and double. Arithmetic is
 * written with the operators of C; here are the operations that C lacks: loads and stores, fused
 * multiply-add, reductions, selection, exp.
 *
 * The same bits on every machine that has fused multiply-add. Three rules give them:
 *   - a * b + c is rounded twice (make compiles with -ffp-contract=off), vec_fma(a, b, c) once.
 *     A compiler that could choose would choose differently for another processor, or in the
 *     same loop for another tile.
 *   - Operations work lane by lane, so an element's result does not depend on its neighbours, nor
 *     on whether it was in a full vector or in a row's tail.
 *   - Where lanes are added (vec_row_sum and the like), there are LANES of them, whatever the vector's width.
 * No C library call, no global state.
 * Next: gelu.c for a small user, attention_tiles.h for a demanding one. */
#ifndef LLMC_VEC_H
#define LLMC_VEC_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
#define VEC_BYTES 64
#elif defined(__AVX__)
#define VEC_BYTES 32
#else
#define VEC_BYTES 16
#endif

/* An unsigned integer as wide as a real, and the number of lanes. */
typedef __typeof__(_Generic((real)0, float : (uint32_t)0, double : (uint64_t)0)) real_bits;
enum { VEC = VEC_BYTES / sizeof(real) };

typedef real vec __attribute__((vector_size(VEC_BYTES)));
typedef real_bits vec_bits __attribute__((vector_size(VEC_BYTES))); // masks: each lane 0 or ~0
typedef real vec_memory __attribute__((vector_size(VEC_BYTES), aligned(sizeof(real)), may_alias));

/* A constant that depends on the precision. */
#define REAL_PICK(for_float, for_double) ((real)(sizeof(real) == 4 ? (for_float) : (for_double)))

/* ---- memory: any address of a real works -------------------------------------------------- */
static inline vec vec_load(const real *p) { return *(const vec_memory *)p; }

static inline void vec_store(real *p, vec v) { *(vec_memory *)p = v; }

/* The first min(n, VEC) lanes from and to memory; the other lanes are 0, and nothing beyond is
 * touched. A loop over a row of n needs no other tail:
 *     for (size_t i = 0; i < n; i += VEC)
 *         vec_store_n(out + i, f(vec_load_n(in + i, n - i)), n - i); */
static inline vec vec_load_n(const real *p, size_t n) {
    if (n >= VEC) return vec_load(p);
    real lane[VEC] = {0};
    memcpy(lane, p, n * sizeof(real));
    return vec_load(lane);
}

static inline void vec_store_n(real *p, vec v, size_t n) {
    if (n >= VEC) {
        vec_store(p, v);
        return;
    }
    real lane[VEC];
    vec_store(lane, v);
    memcpy(p, lane, n * sizeof(real));
}

static inline vec vec_set1(real x) {
    return x - (vec){0}; // x - 0 is x, whatever x
}

/* Before a loop of constant length, so that arrays of vectors indexed in it become registers. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* Forces a value into a register here. Otherwise compilers fold the load of a vector into each
 * multiply-add that uses it, loading it many times; that costs a quarter of the speed. */
#if defined(__x86_64__)
#define IN_REGISTER(v) __asm__("" : "+v"(v))
#elif defined(__aarch64__)
#define IN_REGISTER(v) __asm__("" : "+w"(v))
#else
#define IN_REGISTER(v) ((void)0)
#endif

/* ---- a * b + c, rounded once ---------------------------------------------------------------- */
/* Without the instruction (SSE2) it is rounded twice: a call of the C library for each lane would
 * take a hundred times as long. Only there the bits are others. */
static inline vec vec_fma(vec a, vec b, vec c) {
#if defined(__AVX512F__)
    return sizeof(real) == 4 ? (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c)
                             : (vec)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__AVX__) && defined(__FMA__)
    return sizeof(real) == 4 ? (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c)
                             : (vec)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__aarch64__)
    return sizeof(real) == 4
               ? (vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b)
               : (vec)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#elif defined(__FP_FAST_FMA) && defined(__FP_FAST_FMAF) // other machines that have it
    UNROLL for (int i = 0; i < VEC; i++) c[i] =
        sizeof(real) == 4 ? __builtin_fmaf(a[i], b[i], c[i]) : __builtin_fma(a[i], b[i], c[i]);
    return c;
#else
    return a * b + c;
#endif
}

/* ---- lanes ---------------------------------------------------------------------------------- */
/* where ? a : b, lane by lane. */
static inline vec vec_select(vec_bits where, vec a, vec b) {
    return (vec)((where & (vec_bits)a) | (~where & (vec_bits)b));
}

/* The larger of each pair of lanes. It may drop a NaN; a caller that must detect NaN needs another check. */
static inline vec vec_larger(vec a, vec b) { return vec_select((vec_bits)(a > b), a, b); }

/* The sum over the lanes, halves first: ((0+4)+(2+6))+((1+5)+(3+7)) for eight. */
static inline real vec_sum(vec v) {
    real lane[VEC];
    vec_store(lane, v);
    for (int half = VEC / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

/* The largest lane; NaN as in vec_larger. */
static inline real vec_max(vec v) {
    real max = v[0];
    for (int i = 1; i < VEC; i++) max = v[i] > max ? v[i] : max;
    return max;
}

/* ---- rows of n elements, summed in an order that n alone fixes ---------------------------------
 * Element i is added to sum i mod LANES; at the end halves are added: sum l and sum l + 16, then l
 * and l + 8, and so on, as in vec_sum. Several vectors of sums also hide the latency of the
 * additions. The row's last LANES are filled up with zeros. */
enum { LANES = 32, LANE_VECS = LANES / VEC };

typedef struct {
    vec part[LANE_VECS];
} Lanes;

/* What is left of a row of n at element i, for vec_load_n: 0 beyond the end. */
static inline size_t vec_left(size_t n, size_t i) { return i < n ? n - i : 0; }

static inline real lanes_sum(Lanes lanes) {
    UNROLL for (int half = LANE_VECS / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lanes.part[i] += lanes.part[i + half];
    return vec_sum(lanes.part[0]);
}

static inline real vec_row_sum(const real *a, size_t n) {
    Lanes sum = {{{0}}};
    for (size_t i = 0; i < n; i += LANES)
        UNROLL for (size_t p = 0; p < LANE_VECS; p++) {
            size_t at = i + p * VEC;
            sum.part[p] += vec_load_n(a + at, vec_left(n, at));
        }
    return lanes_sum(sum);
}

static inline real vec_row_dot(const real *a, const real *b, size_t n) {
    Lanes sum = {{{0}}};
    for (size_t i = 0; i < n; i += LANES)
        UNROLL for (size_t p = 0; p < LANE_VECS; p++) {
            size_t at = i + p * VEC, left = vec_left(n, at);
            sum.part[p] =
                vec_fma(vec_load_n(a + at, left), vec_load_n(b + at, left), sum.part[p]);
        }
    return lanes_sum(sum);
}

/* ---- exp ------------------------------------------------------------------------------------ */
/* e^x within 2 ulp. Underflow is abrupt: below ln of the smallest normal number (about -87 in
 * float, -708 in double) the result is 0, which keeps denormal numbers, and their slowness, out of
 * softmax. Above ln of the largest it is Inf. NaN gives NaN.
 *
 * x = n ln 2 + r, |r| <= ln 2 / 2; e^r by Taylor's series up to the term below half an ulp; then n
 * is added to the exponent. Adding 1.5 * 2^(mantissa bits) rounds to an integer and leaves that
 * integer in the low bits. ln 2 comes in two parts, the first with zeros at its end, so that its
 * product with n is exact. */
static inline vec vec_exp(vec x) {
    static const double taylor[] = {1.0 / 6227020800,
                                    1.0 / 479001600,
                                    1.0 / 39916800,
                                    1.0 / 3628800,
                                    1.0 / 362880,
                                    1.0 / 40320,
                                    1.0 / 5040,
                                    1.0 / 720,
                                    1.0 / 120,
                                    1.0 / 24,
                                    1.0 / 6,
                                    1.0 / 2,
                                    1.0,
                                    1.0};
    enum { TERMS = sizeof taylor / sizeof *taylor, MANTISSA = sizeof(real) == 4 ? 23 : 52 };
    const real rounder = REAL_PICK(0x1.8p23, 0x1.8p52);
    const real ln2_high = REAL_PICK(0x1.62ep-1, 0x1.62e42fefap-1);
    const real ln2_low = REAL_PICK(0x1.0bfbe8e7bcd5ep-15, 0x1.cf79abc9e3b3ap-40);
    const real lowest = REAL_PICK(-87.33, -708.39);
    const real highest = REAL_PICK(88.722839, 709.782712893383996);

    vec shifted = vec_fma(x, vec_set1((real)M_LOG2E), vec_set1(rounder));
    vec n = shifted - rounder;
    vec r = vec_fma(n, vec_set1(-ln2_low), vec_fma(n, vec_set1(-ln2_high), x));
    vec power = vec_set1(0);
    UNROLL for (int i = REAL_PICK(6, 0); i < TERMS; i++) power =
        vec_fma(power, r, vec_set1((real)taylor[i]));
    vec e = (vec)((vec_bits)power + ((vec_bits)shifted << MANTISSA));

    vec beyond = vec_select((vec_bits)(x > highest), vec_set1((real)INFINITY), x); // or NaN
    beyond = vec_select((vec_bits)(x < lowest), vec_set1(0), beyond);
    return vec_select((vec_bits)(x >= lowest) & (vec_bits)(x <= highest), e, beyond);
}

#endif

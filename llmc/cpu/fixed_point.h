/* fixed_point.h: numbers whose sum does not depend on the order of adding. A real is rounded once,
 * to the nearest multiple of 2^-48 (ties to even), and kept as a 64-bit integer; integers add
 * associatively. Values lie in -2^15 .. 2^15, ample for gradients that are already divided by the
 * number of targets; resolution is 3.6e-15. Callers check the range first. */
#ifndef LLMC_CPU_FIXED_POINT_H
#define LLMC_CPU_FIXED_POINT_H

#include "cpu.h"

#include <math.h>

#define FIXED_LIMIT 0x1p15 // |x| < FIXED_LIMIT fits

/* Scaling by a power of two is exact, and so the only rounding is rint's. */
static inline int64_t fixed_from(real x) { return (int64_t)rint((double)x * 0x1p48); }

/* Rounded once (an integer may have more digits than a real). */
static inline real fixed_to(int64_t sum) { return (real)sum * (real)0x1p-48; }

/* fixed_to(fixed_from(x)) without leaving the vector unit: the rounded value has no more digits
 * than x had, so the way back is exact. */
static inline real fixed_round(real x) { return (real)(rint((double)x * 0x1p48) * 0x1p-48); }

/* Whole vectors of n. Rounding and conversion are separate loops because only then do all compilers vectorise both. */
enum { FIXED_CHUNK = 256 };

static inline void fixed_whole(double whole[FIXED_CHUNK], const real *x, size_t n) {
    SIMD_FOR
    for (size_t i = 0; i < n; i++) whole[i] = rint((double)x[i] * 0x1p48);
}

/* sum = x, or sum += x. Addition is modulo 2^64: callers bound the sum or refuse it afterwards. */
static inline void fixed_add_vector(int64_t *restrict sum, const real *restrict x, size_t n,
                                    bool write) {
    double whole[FIXED_CHUNK];
    for (size_t at = 0; at < n; at += FIXED_CHUNK) {
        size_t left = n - at < FIXED_CHUNK ? n - at : FIXED_CHUNK;
        fixed_whole(whole, x + at, left);
        if (write) {
            SIMD_FOR
            for (size_t i = 0; i < left; i++) sum[at + i] = (int64_t)whole[i];
        } else {
            SIMD_FOR
            for (size_t i = 0; i < left; i++)
                sum[at + i] = (int64_t)((uint64_t)sum[at + i] + (uint64_t)(int64_t)whole[i]);
        }
    }
}

/* x = sum + x, rounded once: the last addend takes the result. */
static inline void fixed_close_vector(real *restrict x, const int64_t *restrict sum, size_t n) {
    double whole[FIXED_CHUNK];
    for (size_t at = 0; at < n; at += FIXED_CHUNK) {
        size_t left = n - at < FIXED_CHUNK ? n - at : FIXED_CHUNK;
        fixed_whole(whole, x + at, left);
        SIMD_FOR
        for (size_t i = 0; i < left; i++)
            x[at + i] = fixed_to((int64_t)((uint64_t)sum[at + i] + (uint64_t)(int64_t)whole[i]));
    }
}

static inline void fixed_to_vector(real *restrict x, const int64_t *restrict sum, size_t n) {
    SIMD_FOR
    for (size_t i = 0; i < n; i++) x[i] = fixed_to(sum[i]);
}

static inline void fixed_round_vector(real *x, size_t n) {
    SIMD_FOR
    for (size_t i = 0; i < n; i++) x[i] = fixed_round(x[i]);
}

#endif

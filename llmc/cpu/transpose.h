/* transpose.h: a square of VEC x VEC elements, transposed in registers.
 *
 * Round d exchanges, within each pair of rows (i, i + d), the off-diagonal blocks of d elements:
 *     a: A0 A1     A0 B0
 *     b: B0 B1  →  A1 B1
 * log2(VEC) rounds transpose the square. Counted in words of 4 bytes, the same code serves float and double.
 */
#ifndef LLMC_CPU_TRANSPOSE_H
#define LLMC_CPU_TRANSPOSE_H

#include "vec.h"

#define WORDS (VEC_BYTES / 4)
typedef int32_t Words __attribute__((vector_size(VEC_BYTES)));

#define UPPER(i, d) ((i) & (d) ? WORDS + (i) - (d) : (i))
#define LOWER(i, d) ((i) & (d) ? WORDS + (i) : ((i) + (d)) % WORDS)
#define FOUR(f, i, d) f(i, d), f(i + 1, d), f(i + 2, d), f(i + 3, d)
#if defined(__AVX512F__)
#define ALL(f, d) FOUR(f, 0, d), FOUR(f, 4, d), FOUR(f, 8, d), FOUR(f, 12, d)
#elif defined(__AVX__)
#define ALL(f, d) FOUR(f, 0, d), FOUR(f, 4, d)
#else
#define ALL(f, d) FOUR(f, 0, d)
#endif
#ifdef __clang__
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (Words){__VA_ARGS__})
#endif

#define TRANSPOSE_ROUND(v, d)                                                                      \
    if (4 * (d) >= (int)sizeof(real) && (d) < WORDS) {                                             \
        const int step = 4 * (d) / (int)sizeof(real);                                              \
        UNROLL for (int i = 0; i < VEC; i++) {                                                     \
            if (i & step) continue;                                                                \
            Words a = (Words)v[i], b = (Words)v[i + step];                                         \
            v[i] = (vec)SHUFFLE(a, b, ALL(UPPER, d));                                              \
            v[i + step] = (vec)SHUFFLE(a, b, ALL(LOWER, d));                                       \
        }                                                                                          \
    }

static inline __attribute__((always_inline)) void transpose(vec v[VEC]) {
    TRANSPOSE_ROUND(v, 8)
    TRANSPOSE_ROUND(v, 4)
    TRANSPOSE_ROUND(v, 2)
    TRANSPOSE_ROUND(v, 1)
}

#endif

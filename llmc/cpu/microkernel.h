// clang-format off
/* microkernel.h: the innermost loop of every matrix product: a tile of c, held in registers, takes the outer
 * product of a column of a and a row of b at each step k of the depth.
 *
 * Why this is fast: a step loads TILE_ROWS elements and TILE_VECS vectors, and does TILE_ROWS * TILE_VECS
 * multiply-adds with them. A core starts two vector loads and two multiply-adds in a cycle, and a multiply-add
 * takes about four cycles, so at least 2 x 4 independent sums keep it busy. The registers limit the tile: they
 * hold the sums, one row of b and one element of a.
 *
 *     32 registers (AVX-512, NEON)    8 x 3 sums + 3 of b + 1 of a = 28
 *     16 registers (AVX2, SSE2)       4 x 3 sums + 3 of b + 1 of a = 16
 *
 * Three vectors are 48, 24 or 12 floats, which divide all sizes of GPT-2. Next: pack.h. */
// clang-format on
#ifndef LLMC_CPU_MICROKERNEL_H
#define LLMC_CPU_MICROKERNEL_H

#include "cpu.h"
#include "vec.h"

#if defined(__AVX512F__) || defined(__aarch64__)
#define TILE_ROWS 8
#else
#define TILE_ROWS 4
#endif
#define TILE_VECS 3
#define TILE_COLUMNS (TILE_VECS * VEC)

/* Every CHUNK steps the kernel asks for TILE_VECS cache lines of c and TILE_VECS lines that will soon
 * be packed, so that memory delivers while the units multiply. A few at a time: a core waits for at
 * most a dozen lines or so at once, and the loads of a and b must get through between them. */
#define CHUNK 16
typedef struct {
    const real *at;
    size_t step, apart; // from a chunk's first line to the next chunk's; between lines of a chunk
} Prefetch;

/* The first m rows and n vectors of a tile: c = start + the sum over k < depth of a[k] b[k], where a
 * and b are panels (pack.h) of TILE_ROWS and TILE_COLUMNS. start NULL counts as 0; it may be c. */
#define TILE_ARGUMENTS                                                                             \
    size_t depth, const real *a, const real *b, real *c, const real *start, size_t stride,         \
        const Prefetch *prefetch
static inline __attribute__((always_inline)) void tile(const int m, const int n, TILE_ARGUMENTS) {
    vec sum[TILE_ROWS][TILE_VECS];
    UNROLL for (int i = 0; i < m; i++) { UNROLL for (int j = 0; j < n; j++) sum[i][j] = (vec){0}; }
    const real *fetch_c = c, *fetch = prefetch->at, *end = a + depth * TILE_ROWS;
    const real *end_c = c + (size_t)m * stride;
    while (a < end) {
        for (int j = 0; fetch_c < end_c && j < n; j++) __builtin_prefetch(fetch_c + j * VEC, 1);
        UNROLL for (int j = 0; j < TILE_VECS; j++)
            __builtin_prefetch(fetch + (size_t)j * prefetch->apart, 0, 2); // to L2
        fetch_c += stride;
        fetch += prefetch->step;
        const real *chunk_end = end - a < CHUNK * TILE_ROWS ? end : a + CHUNK * TILE_ROWS;
        for (; a < chunk_end; a += TILE_ROWS, b += TILE_COLUMNS) {
            vec row[TILE_VECS];
            UNROLL for (int j = 0; j < n; j++) {
                row[j] = vec_load(b + (size_t)j * VEC);
                IN_REGISTER(row[j]);
            }
            UNROLL for (int i = 0; i < m; i++) {
                vec element = vec_set1(a[i]);
                IN_REGISTER(element);
                UNROLL for (int j = 0; j < n; j++) sum[i][j] = vec_fma(element, row[j], sum[i][j]);
            }
        }
    }
    // All of start before any of c: rows of c may lie a multiple of 4096 bytes apart, and then a load
    // after a store to the row above waits for it.
    if (start) {
        UNROLL for (int i = 0; i < m; i++) {
            const real *from = start + (size_t)i * stride;
            UNROLL for (int j = 0; j < n; j++) sum[i][j] += vec_load(from + j * VEC);
        }
    }
    UNROLL for (int i = 0; i < m; i++) {
        UNROLL for (int j = 0; j < n; j++) vec_store(c + (size_t)i * stride + j * VEC, sum[i][j]);
    }
}

// clang-format off
/* One function for each size, so that the compiler sees constants. */
typedef void Tile(TILE_ARGUMENTS);
#define TILE(m, n)                                                                                 \
    static void tile_##m##x##n(TILE_ARGUMENTS) {                                         \
        tile(m, n, depth, a, b, c, start, stride, prefetch);                                          \
    }
#define TILES(m) TILE(m, 1) TILE(m, 2) TILE(m, 3)
TILES(1) TILES(2) TILES(3) TILES(4)
#if TILE_ROWS == 8
TILES(5) TILES(6) TILES(7) TILES(8)
#endif

#define NAMES(m) {tile_##m##x1, tile_##m##x2, tile_##m##x3}
static Tile *const tiles[TILE_ROWS][TILE_VECS] = {
    NAMES(1), NAMES(2), NAMES(3), NAMES(4),
#if TILE_ROWS == 8
    NAMES(5), NAMES(6), NAMES(7), NAMES(8),
#endif
};
// clang-format on

#endif

/* attention_tiles.h: the small matrix products that attention is made of, for one head of one sequence.
 *
 * Queries come in blocks of BLOCK. The scores or weights of a block of queries and some keys lie in a strip (keys,
 * BLOCK): a key's row, and in it the queries side by side. So softmax runs down the strip with a query in each lane
 * and never across lanes; and the strip is at once the operand of the products that follow, in either direction.
 *
 * Every product goes through one register tile. Rows of keys, values, queries are packed before,
 * one head's beside each other, and padded with zeros to whole tiles, so the loops here have no edges.
 * Causality is exact: no element of the strip above the diagonal (key > query) is ever used, so not
 * even a NaN at a later token can reach an earlier one. Next: attention_forward.c. */
#ifndef LLMC_ATTENTION_TILES_H
#define LLMC_ATTENTION_TILES_H

#include "../base/arithmetic.h"
#include "transpose.h"

/* The tile's accumulators, TILE_ROWS * TILE_VECS registers: enough to hide the latency of the
 * multiply-add, few enough to leave room for its operands. BLOCK is a multiple of both sides. */
enum {
#if defined(__AVX512F__) || defined(__aarch64__) // 32 registers
    TILE_ROWS = 12,
#else // 16
    TILE_ROWS = 6,
#endif
    TILE_VECS = 2,
    TILE_COLS = TILE_VECS * VEC,
    BLOCK = 96,  // queries
    PANEL = 192, // keys per pass: few enough to stay in cache while all queries of a block use them
};
_Static_assert(BLOCK % TILE_ROWS == 0 && BLOCK % TILE_COLS == 0 && PANEL % BLOCK == 0,
               "blocks consist of whole tiles");

typedef struct {
    vec at[TILE_ROWS][TILE_VECS];
} Tile;

#define TILE_FUNCTION static inline __attribute__((always_inline))
#define EACH(i, n) UNROLL for (int i = 0; i < (n); i++)

/* The factor of all scores. */
static inline real attention_scale(int hs) { return (real)(1 / sqrt(hs)); }

TILE_FUNCTION void tile_load(Tile *tile, const real *from, int stride) {
    EACH(r, TILE_ROWS) EACH(v, TILE_VECS) tile->at[r][v] = vec_load(from + r * stride + v * VEC);
}

TILE_FUNCTION void tile_store(real *to, int stride, const Tile *tile) {
    EACH(r, TILE_ROWS) EACH(v, TILE_VECS) vec_store(to + r * stride + v * VEC, tile->at[r][v]);
}

/* Rows first .. end of the tile += a[r * a_row] * b: one step of a product. */
TILE_FUNCTION void tile_step(Tile *tile, const real *a, int a_row, const real *b, int first,
                             int end) {
    vec row[TILE_VECS];
    EACH(v, TILE_VECS) {
        row[v] = vec_load(b + v * VEC);
        IN_REGISTER(row[v]);
    }
    EACH(r, TILE_ROWS) {
        if (r < first || r >= end) continue;
        vec element = vec_set1(a[r * a_row]);
        EACH(v, TILE_VECS) tile->at[r][v] = vec_fma(element, row[v], tile->at[r][v]);
    }
}

/* tile[r] += sum over i < count of a[r * a_row + i * a_step] * b[i * b_stride ..] */
TILE_FUNCTION void tile_multiply(Tile *tile, const real *a, int a_row, int a_step, const real *b,
                                 int b_stride, int count) {
    for (int i = 0; i < count; i++, a += a_step, b += b_stride)
        tile_step(tile, a, a_row, b, 0, TILE_ROWS);
}

/* strip[s][t] = k_s . q_t for the keys first .. end, of which k points to the first, and the
 * `queries` first queries of the block that begins at query t0; where s > t only by whole tiles.
 * strip (keys,BLOCK); k (keys,width); q (width,BLOCK), of which hs rows count. */
static inline void products_of_pairs(real *strip, const real *k, const real *q, int first, int end,
                                     int t0, int queries, int hs, int width) {
    for (int t = 0; t < queries; t += TILE_COLS) {
        int last = int_min(end, t0 + t + TILE_COLS); // later keys follow all queries of the tile
        for (int s = 0; s < last - first; s += TILE_ROWS) {
            Tile tile = {0};
            tile_multiply(&tile, k + (size_t)s * width, width, 1, q + t, BLOCK, hs);
            tile_store(strip + s * BLOCK + t, BLOCK, &tile);
        }
    }
}

/* sum[t] += sum over the keys first <= s < end, s <= t, of strip[s][t] * row[s], for the `queries`
 * first queries of the block at t0. sum (BLOCK,width); strip (keys,BLOCK) and row (keys,width)
 * begin at key `first`. first <= t0; both are whole tiles, and so is end, or beyond the queries. */
static inline void sum_over_keys(real *sum, const real *strip, const real *row, int first, int end,
                                 int t0, int queries, int width) {
    for (int c = 0; c < width; c += TILE_COLS)
        for (int t = 0; t < queries; t += TILE_ROWS) {
            int diagonal = t0 + t - first; // the key that is the tile's first query itself
            Tile tile;
            tile_load(&tile, sum + t * width + c, width);
            int common = int_min(diagonal + 1, end - first);
            tile_multiply(&tile, strip + t, 1, BLOCK, row + c, width, common);
            if (diagonal < end - first) // each key after it is used by one query less
                EACH(r, TILE_ROWS) {
                    size_t s = (size_t)diagonal + r;
                    if (r > 0)
                        tile_step(&tile, strip + s * BLOCK + t, 1, row + s * width + c, r,
                                  TILE_ROWS);
                }
            tile_store(sum + t * width + c, width, &tile);
        }
}

/* sum[s] += sum over the `queries` first queries t >= s of the block at t0 of strip[s][t] * row[t],
 * for the keys first .. end. sum (keys,width) and strip (keys,BLOCK) begin at key `first`, a whole
 * number of tiles; row (BLOCK,width). */
static inline void sum_over_queries(real *sum, const real *strip, const real *row, int first,
                                    int end, int t0, int queries, int width) {
    end = int_min(end, t0 + queries); // later keys follow all queries
    for (int c = 0; c < width; c += TILE_COLS)
        for (int s = first; s < end; s += TILE_ROWS) {
            Tile tile;
            real *at = sum + (size_t)(s - first) * width + c;
            const real *weights = strip + (s - first) * BLOCK;
            tile_load(&tile, at, width);
            int t = 0;
            if (s >= t0) { // query by query, one more of the tile's keys precedes it
                EACH(r, TILE_ROWS) {
                    t = s - t0 + r;
                    if (t < queries)
                        tile_step(&tile, weights + t, BLOCK, row + t * width + c, 0, r + 1);
                }
                t++;
            }
            tile_multiply(&tile, weights + t, BLOCK, 1, row + t * width + c, width, queries - t);
            tile_store(at, width, &tile);
        }
}

/* to[i] = scale * from[i], hs elements each; zeros up to `width` elements and `padded` rows. */
static inline void pack_rows(real *to, const real *from, size_t stride, int rows, int padded,
                             int hs, int width, real scale) {
    for (int i = 0; i < padded; i++, to += width)
        for (int c = 0; c < width; c += VEC) {
            bool there = i < rows && c < hs;
            vec v = there ? vec_load_n(from + (size_t)i * stride + c, (size_t)(hs - c)) : (vec){0};
            vec_store(to + c, v * scale);
        }
}

/* The way back: to[i] = scale * from[i], hs elements each; from (rows,width). */
static inline void unpack_rows(real *to, size_t stride, const real *from, int rows, int hs,
                               int width, real scale) {
    for (int i = 0; i < rows; i++, from += width)
        for (int c = 0; c < hs; c += VEC)
            vec_store_n(to + (size_t)i * stride + c, vec_load(from + c) * scale, (size_t)(hs - c));
}

/* to[c][i] = scale * from[i][c]: the same, transposed. to (width,BLOCK). */
static inline void pack_columns(real *to, const real *from, size_t stride, int rows, int padded,
                                int hs, real scale) {
    for (int c = 0; c < hs; c += VEC)
        for (int i = 0; i < padded; i += VEC) {
            vec square[VEC];
            UNROLL for (int j = 0; j < VEC; j++) {
                const real *at = from + (size_t)(i + j) * stride + c;
                square[j] = i + j < rows ? vec_load_n(at, (size_t)(hs - c)) * scale : (vec){0};
            }
            transpose(square);
            UNROLL for (int j = 0; j < VEC; j++) vec_store(to + (c + j) * BLOCK + i, square[j]);
        }
}

#endif

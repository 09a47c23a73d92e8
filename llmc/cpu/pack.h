/* pack.h: copies part of a matrix into panels, the form in which the micro-kernel reads it.
 *
 * A panel holds `width` rows side by side: out[k * width + i] is element k of row i. The kernel reads it from end
 * to end, so that every load is contiguous, aligned and prefetched, whatever the matrix's layout. Rows that do not
 * exist are 0: what is computed with them is not stored. Panels follow each other: row r is row r % width of panel
 * r / width. (For the right operand, "rows" are the columns of the product.) Read after gemm.c. */
#ifndef LLMC_CPU_PACK_H
#define LLMC_CPU_PACK_H

#include "transpose.h"

/* Rows up to this multiple are written by pack_panels. */
static inline size_t pack_rounded(size_t rows, size_t width) {
    size_t group = width > VEC ? width : VEC;
    return (rows + group - 1) / group * group;
}

/* One element of VEC rows: a vector of a panel's row, or where panels are narrower than a vector, pieces that go to
 * panels width * depth apart. */
static inline __attribute__((always_inline)) void pack_pieces(real *to, const size_t width, const real *from,
                                                              size_t depth) {
    if (width >= VEC) {
        vec_store(to, vec_load(from));
        return;
    }
    UNROLL for (size_t p = 0; p < VEC; p += width) memcpy(to + p * depth, from + p, width * sizeof(real));
}

/* A square of VEC rows and VEC elements of each, of which `rows` exist, transposed into panels. */
static inline __attribute__((always_inline)) void pack_square(real *to, const size_t width, const real *in,
                                                              size_t stride, const size_t rows, size_t depth) {
    vec square[VEC];
    UNROLL for (size_t i = 0; i < VEC; i++) square[i] = i < rows ? vec_load(in + i * stride) : (vec){0};
    transpose(square);
    UNROLL for (size_t i = 0; i < VEC; i++) pack_pieces(to + i * width, width, (const real *)&square[i], depth);
}

/* Packs rows whose elements are contiguous (row i begins at in + i * stride): squares are read row
 * by row, transposed, and written as pieces of a panel's row. */
static inline __attribute__((always_inline)) void pack_transposed(real *out, const size_t width,
                                                                  const real *in, size_t stride,
                                                                  size_t rows, size_t depth) {
    const size_t rounded = pack_rounded(rows, width);
    for (size_t r = 0; r < rounded; r += VEC) {
        real *to = out + r / width * width * depth + r % width;
        const real *from = in + r * stride;
        size_t there = r < rows ? rows - r : 0, k = 0;
        if (there >= VEC) // the compiler then sees that no row is missing
            for (; k + VEC <= depth; k += VEC) pack_square(to + k * width, width, from + k, stride, VEC, depth);
        else
            for (; k + VEC <= depth; k += VEC) pack_square(to + k * width, width, from + k, stride, there, depth);
        for (; k < depth; k++) {
            real lane[VEC] = {0};
            for (size_t i = 0; i < VEC && i < there; i++) lane[i] = from[i * stride + k];
            pack_pieces(to + k * width, width, lane, depth);
        }
    }
}

/* Packs rows that lie side by side (element k of all rows begins at in + k * stride): copies of a panel's row, or
 * where panels are narrower than a vector, and so than a cache line, of several at once. */
static inline __attribute__((always_inline)) void pack_copied(real *out, const size_t width,
                                                              const real *in, size_t stride,
                                                              size_t rows, size_t depth) {
    enum { AHEAD = 16 }; // a step is often more than a page: no processor fetches it by itself
    const size_t group = width > VEC ? width : VEC;
    for (size_t r = 0; r < rows; r += group, out += group * depth) {
        size_t there = rows - r;
        for (size_t k = 0; k < depth; k++) {
            const real *from = in + k * stride + r;
            real *to = out + k * width;
            if (width < VEC) __builtin_prefetch(from + AHEAD * stride);
            if (there >= group)
                UNROLL for (size_t i = 0; i < group; i += VEC) pack_pieces(to + i, width, from + i, depth);
            else
                for (size_t i = 0; i < group; i += VEC) {
                    vec lanes = i < there ? vec_load_n(from + i, there - i) : (vec){0};
                    pack_pieces(to + i, width, (const real *)&lanes, depth);
                }
        }
    }
}

/* Packs `rows` x `depth` elements in panels of `width` rows: row i's element k is
 * in[i * row_stride + k * depth_stride], one of the strides being 1. */
static inline __attribute__((always_inline)) void pack_panels(real *out, const size_t width,
                                                              const real *in, size_t row_stride,
                                                              size_t depth_stride, size_t rows,
                                                              size_t depth) {
    if (depth_stride == 1)
        pack_transposed(out, width, in, row_stride, rows, depth);
    else
        pack_copied(out, width, in, depth_stride, rows, depth);
}

#endif

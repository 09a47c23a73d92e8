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

/* Packs rows whose elements are contiguous (row i begins at in + i * stride): squares are read row
 * by row, transposed, and written as pieces of a panel's row. */
static inline __attribute__((always_inline)) void pack_transposed(real *out, const size_t width,
                                                                  const real *in, size_t stride,
                                                                  size_t rows, size_t depth) {
    const size_t piece = width < VEC ? width : VEC;
    const size_t rounded = pack_rounded(rows, width);
    for (size_t r = 0; r < rounded; r += VEC) {
        real *to = out + r / width * width * depth + r % width;
        size_t k = 0;
        for (; k + VEC <= depth; k += VEC) {
            vec square[VEC];
            UNROLL for (size_t i = 0; i < VEC; i++) square[i] =
                r + i < rows ? vec_load(in + (r + i) * stride + k) : (vec){0};
            transpose(square);
            UNROLL for (size_t i = 0; i < VEC; i++) for (size_t p = 0; p < VEC; p += piece)
                memcpy(to + p * depth + (k + i) * width, (const real *)&square[i] + p,
                       piece * sizeof(real));
        }
        for (; k < depth; k++)
            for (size_t i = 0; i < VEC; i++)
                to[i / piece * piece * depth + k * width + i % piece] =
                    r + i < rows ? in[(r + i) * stride + k] : 0;
    }
}

/* Packs rows that lie side by side (element k of all rows begins at in + k * stride): copies. */
static inline __attribute__((always_inline)) void pack_copied(real *out, const size_t width,
                                                              const real *in, size_t stride,
                                                              size_t rows, size_t depth) {
    for (size_t r = 0; r < rows; r += width)
        for (size_t k = 0; k < depth; k++, out += width) {
            const real *from = in + k * stride + r;
            if (r + width <= rows)
                memcpy(out, from, width * sizeof(real));
            else
                for (size_t i = 0; i < width; i++) out[i] = r + i < rows ? from[i] : 0;
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

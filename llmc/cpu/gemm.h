/* gemm.h: the matrix product under all linear layers and the classifier, with its neighbours (bias,
 * residual, GELU) applied while a result is still in cache. One function serves all orientations: an operand's
 * strides describe its layout in memory, and packing removes the difference.
 *
 * The order of every sum is fixed by the depth alone: c[i][j] is built from blocks of GEMM_DEPTH
 * products, each summed in order from 0 and added to the element in order. Rows, columns, threads
 * and tiles do not enter, so a row of c has the same bits whatever other rows are computed with it.
 * Next: gemm.c (blocking), then microkernel.h (the innermost loop) and pack.h. */
#ifndef LLMC_CPU_GEMM_H
#define LLMC_CPU_GEMM_H

#include "cpu.h"

/* Element (i, j) is at[i * row + j * column]; one of the two strides is 1. */
typedef struct {
    const real *at;
    size_t row, column;
} Matrix;

/* c = start + a @ b + bias, then perhaps a GELU. */
typedef struct {
    size_t rows, columns, depth; // all at least 1
    Matrix a;                    // (rows, depth)
    Matrix b;                    // (depth, columns)
    real *c;                     // (rows, columns)
    size_t c_stride;        // elements from a row of c (and of the other (rows, columns) matrices) to the next
    const real *start;      // (rows, columns) or NULL for 0; c itself: the product is added to it
    const real *bias;       // (columns) or NULL
    real *gelu;             // (rows, columns) or NULL: gelu(c) goes here
    const real *gelu_input; // (rows, columns) or NULL: c is multiplied by gelu'(gelu_input)
} Product;

/* Products summed before they are added to c: the depth of a packed block. */
#define GEMM_DEPTH 256

void gemm(const Product *product);

#endif

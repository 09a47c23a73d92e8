/* transpose_columns.h: columns of a matrix as rows, for files that keep a matrix the other way round. */
#ifndef LLMC_TRANSPOSE_COLUMNS_H
#define LLMC_TRANSPOSE_COLUMNS_H

#include <stddef.h>

/* out (count, rows) = columns first .. first+count of matrix (rows, columns). */
void transpose_columns(float *out, const float *matrix, size_t rows, size_t columns, size_t first,
                       size_t count);

#endif

/* tensor_copy.h: tensors move between files, memory and device in pieces of rows, so that no second copy
 * of a model is ever held. A tensor (out, in) has `out` rows of `in` floats; a tensor (n) has n rows of
 * one. */
#ifndef LLMC_TENSOR_COPY_H
#define LLMC_TENSOR_COPY_H

#include "../model/config.h"

/* Reads or writes rows row .. row+rows of a tensor, (rows, in) floats. A writer may overwrite them. */
typedef void (*RowReader)(void *from, const Tensor *tensor, size_t row, size_t rows, float *values);
typedef void (*RowWriter)(void *to, const Tensor *tensor, size_t row, size_t rows, float *values);

static inline size_t tensor_columns(const Tensor *tensor) {
    return tensor->dims == 2 ? tensor->shape[1] : 1;
}

/* Copies a tensor from its first row to its last, about 1 MB at a time. */
void tensor_copy(const Tensor *tensor, RowReader read, void *from, RowWriter write, void *to);

#endif

/* tensor_copy.c: the loop over a tensor's rows. A piece has whole multiples of STRIP rows, so that a reader that
 * transposes touches whole cache lines. */
#include "tensor_copy.h"

#include "../base/memory.h"

#include <stdlib.h>

enum {
    PIECE = 1 << 18, // floats
    STRIP = 16,      // rows: a piece of a matrix that is transposed reads whole cache lines
};

void tensor_copy(const Tensor *tensor, RowReader read, void *from, RowWriter write, void *to) {
    size_t columns = tensor_columns(tensor), all = tensor->shape[0];
    // Rows of a piece: a multiple of STRIP, and at least STRIP however long a row is. For C = 768 the 2^18 floats have
    // room for 341 rows, so 336 are taken: 21 strips.
    size_t most = PIECE / columns > STRIP ? PIECE / columns / STRIP * STRIP : STRIP;
    if (most > all) most = all;
    float *values = memory_new(most * columns, sizeof(float), "a piece of a tensor");
    for (size_t row = 0, rows; row < all; row += rows) {
        // the last piece has the rows that are left
        rows = all - row < most ? all - row : most;
        read(from, tensor, row, rows, values);
        write(to, tensor, row, rows, values);
    }
    free(values);
}

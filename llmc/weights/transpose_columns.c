/* transpose_columns.c: tile by tile, so that the lines read and the lines written are both used whole. */
#include "transpose_columns.h"

#include "../base/arithmetic.h"
#include "../base/parallel.h"

enum {
    TILE = 16,       // a side: 16 floats are a cache line, and a tile stays in the nearest cache
    WORTH = 1 << 16, // floats from which it pays to wake the other threads
};

void transpose_columns(float *out, const float *matrix, size_t rows, size_t columns, size_t first,
                       size_t count) {
    // A band is TILE rows of `out`. No two bands write to one row, so threads share them without locks.
    size_t bands = (count + TILE - 1) / TILE;
    PARALLEL_FOR_IF(rows * count > WORTH)
    for (size_t band = 0; band < bands; band++) {
        size_t left = band * TILE, right = size_min(left + TILE, count);
        for (size_t top = 0; top < rows; top += TILE) {
            size_t bottom = size_min(top + TILE, rows);
            // The inner loop writes one line of `out`, and reads a float from each line of the tile. For the next
            // column these lines are still in the cache.
            for (size_t c = left; c < right; c++)
                for (size_t r = top; r < bottom; r++)
                    out[c * rows + r] = matrix[r * columns + first + c];
        }
    }
}

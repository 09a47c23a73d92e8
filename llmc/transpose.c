/* transpose.c: see transpose.h. */
#include "transpose.h"

#include "parallel.h"

enum {
    TILE = 16,       // a side: 16 floats are a cache line, and a tile stays in the nearest cache
    WORTH = 1 << 16, // floats for which threads meet
};

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

void transpose_columns(float *out, const float *matrix, size_t rows, size_t columns, size_t first,
                       size_t count) {
    size_t bands = (rows + TILE - 1) / TILE;
    PARALLEL_FOR_IF(rows * count > WORTH)
    for (size_t band = 0; band < bands; band++) {
        size_t top = band * TILE, bottom = least(top + TILE, rows);
        for (size_t left = 0; left < count; left += TILE) {
            size_t right = least(left + TILE, count);
            for (size_t c = left; c < right; c++)
                for (size_t r = top; r < bottom; r++)
                    out[c * rows + r] = matrix[r * columns + first + c];
        }
    }
}

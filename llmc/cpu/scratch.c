/* scratch.c: one block for all kernels, which only grows. */
#include "scratch.h"

#include "../base/memory.h"

static real *block;
static size_t block_bytes;

real *scratch_reserve(size_t parts, size_t reals, const char *what) {
    size_t bytes = size_mul(size_mul(parts, reals, what), sizeof(real), what);
    if (bytes > block_bytes) {
        memory_unmap(block, block_bytes);
        block = memory_map(bytes, what);
        block_bytes = bytes;
    }
    return block;
}

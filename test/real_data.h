/* real_data.h: arrays of `real` for the tests of the CPU kernels: reproducible values in [-1, 1) at
 * an address that is aligned to one element only, between sentinels that must survive. */
#ifndef REAL_DATA_H
#define REAL_DATA_H

#include "../llmc/cpu/cpu.h"
#include "test.h"

#include <float.h>

#define REAL_EPSILON (sizeof(real) == 4 ? (double)FLT_EPSILON : DBL_EPSILON)

typedef struct {
    real *at;
    int count;
} Data;

enum { SENTINELS = 67 }; // odd: memory from the system is aligned, `at` is not
#define SENTINEL ((real)-12345.5)

static Data data_new(int count, uint64_t seed) {
    real *block = malloc(((size_t)count + 2 * SENTINELS) * sizeof(real));
    if (!block) abort();
    for (int i = 0; i < count + 2 * SENTINELS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bool inside = i >= SENTINELS && i < SENTINELS + count;
        block[i] = inside ? (real)((double)(seed >> 40) / (1 << 23) - 1) : SENTINEL;
    }
    return (Data){block + SENTINELS, count};
}

/* Frees the array and checks that nothing was written around it. */
static void data_free(Data *data) {
    for (int i = 1; i <= SENTINELS; i++)
        CHECK(data->at[-i] == SENTINEL && data->at[data->count - 1 + i] == SENTINEL,
              "written outside of an array of %d", data->count);
    free(data->at - SENTINELS);
    data->at = NULL;
}

#endif

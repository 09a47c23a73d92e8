/* real_data.h: arrays for the tests of the CPU kernels, and the comparison with the plain loops (oracle.h).
 *
 * An array holds reproducible values in [-1, 1), at an address that is aligned to one element only,
 * between sentinels that must survive. Beside it stands the same array in double: a test calls the
 * kernel with the `at` of its arrays and the plain loops with their `want`, and then compares both. */
#ifndef REAL_DATA_H
#define REAL_DATA_H

#include "../llmc/cpu/cpu.h"
#include "oracle.h"
#include "test.h"

#include <float.h>

#define REAL_EPSILON (sizeof(real) == 4 ? (double)FLT_EPSILON : DBL_EPSILON)

typedef struct {
    real *at;     // (count) for the kernel
    double *want; // (count) for the plain loops: at first the same values
    int count;
} Data;

enum { SENTINELS = 67 }; // odd: memory from the system is aligned, `at` is not
#define SENTINEL ((real)-12345.5)

/* A copy in double. */
static inline double *doubles(const real *x, size_t count) {
    double *copy = malloc((count + 1) * sizeof *copy);
    if (!copy) abort();
    for (size_t i = 0; i < count; i++) copy[i] = (double)x[i];
    return copy;
}

static inline Data data_new(int count, uint64_t seed) {
    real *block = malloc(((size_t)count + 2 * SENTINELS) * sizeof(real));
    if (!block) abort();
    for (int i = 0; i < count + 2 * SENTINELS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bool inside = i >= SENTINELS && i < SENTINELS + count;
        block[i] = inside ? (real)((double)(seed >> 40) / (1 << 23) - 1) : SENTINEL;
    }
    return (Data){block + SENTINELS, doubles(block + SENTINELS, (size_t)count), count};
}

/* An array to be written: NaN, so that an element that is left out is seen. */
static inline Data data_result(int count) {
    Data data = data_new(count, 0);
    for (int i = 0; i < count; i++) data.at[i] = (real)NAN, data.want[i] = NAN;
    return data;
}

/* Frees the array and checks that nothing was written around it. */
static inline void data_free(Data *data) {
    for (int i = 1; i <= SENTINELS; i++)
        CHECK(data->at[-i] == SENTINEL && data->at[data->count - 1 + i] == SENTINEL,
              "written outside of an array of %d", data->count);
    free(data->at - SENTINELS);
    free(data->want);
    data->at = NULL;
}

/* Each of `count` elements is what the plain loops say, within tolerance * (1 + its magnitude). */
static inline void check_near(const char *what, const real *got, const double *want, size_t count,
                              double tolerance) {
    for (size_t i = 0; i < count; i++) {
        double error = fabs((double)got[i] - want[i]), allowed = tolerance * (1 + fabs(want[i]));
        CHECK(error <= allowed, "%s[%zu of %zu]: got %.9g, wanted %.9g, error %.3g > %.3g", what, i,
              count, (double)got[i], want[i], error, allowed);
    }
}

static inline void data_check(const char *what, const Data *data, double tolerance) {
    check_near(what, data->at, data->want, (size_t)data->count, tolerance);
}

#endif

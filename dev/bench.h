/* bench.h: the yardstick of the benchmarks: the peak of fused multiply-adds of all threads, in
 * the same run, because machines differ and are shared. Compare shares of it, and medians. */
#ifndef BENCH_H
#define BENCH_H

#include "../llmc/base/clock.h"
#include "../llmc/cpu/microkernel.h"

#include <stdlib.h>

enum { PEAK_SUMS = 12, PEAK_STEPS = 1000000, PEAK_MOST_THREADS = 1024 };

/* Independent multiply-adds that never leave the registers. */
static real peak_loop(void) {
    vec sum[PEAK_SUMS];
    vec a = vec_set1((real)0.999), b = vec_set1((real)0.001);
    UNROLL for (int i = 0; i < PEAK_SUMS; i++) sum[i] = vec_set1((real)i);
    for (int k = 0; k < PEAK_STEPS; k++) {
        UNROLL for (int i = 0; i < PEAK_SUMS; i++) {
            sum[i] = vec_fma(sum[i], a, b);
            IN_REGISTER(sum[i]);
        }
    }
    vec total = sum[0];
    UNROLL for (int i = 1; i < PEAK_SUMS; i++) total += sum[i];
    return vec_sum(total);
}

volatile real peak_kept[PEAK_MOST_THREADS]; // a result that is never read would not be computed

/* Floating point operations a second. */
static inline double peak_flops(void) {
    int threads = omp_get_max_threads();
    double start = clock_seconds();
    PARALLEL_FOR for (int t = 0; t < threads; t++) peak_kept[t % PEAK_MOST_THREADS] = peak_loop();
    return 2.0 * PEAK_SUMS * VEC * PEAK_STEPS * threads / (clock_seconds() - start);
}

enum { TILE_DEPTH = 64, TILE_STEPS = 4000 };

/* The micro-kernel on panels that stay in L1. */
static void tile_loop(void) {
    static _Thread_local real a[TILE_DEPTH * TILE_ROWS], b[TILE_DEPTH * TILE_COLUMNS],
        c[TILE_ROWS * TILE_COLUMNS];
    const Prefetch nothing = {b, 0, 0};
    for (int k = 0; k < TILE_STEPS; k++)
        tiles[TILE_ROWS - 1][TILE_VECS - 1](TILE_DEPTH, a, b, c, c, TILE_COLUMNS, &nothing);
}

/* Floating point operations a second when every operand is in the cache: another job on the machine may take a
 * third of that while registers alone still reach their peak. */
static inline double tile_flops(void) {
    int threads = omp_get_max_threads();
    double start = clock_seconds();
    PARALLEL_FOR for (int t = 0; t < threads; t++) tile_loop();
    return 2.0 * TILE_ROWS * TILE_COLUMNS * TILE_DEPTH * TILE_STEPS * threads / (clock_seconds() - start);
}

static int compare(const void *a, const void *b) {
    double x1 = *(const double *)a, x2 = *(const double *)b;
    return (x1 > x2) - (x1 < x2);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

#endif

/* parallel.h: a parallel loop where OpenMP is present; the same loop, in order, where it is not.
 * Iterations must be independent: each result element is computed by exactly one iteration, in a fixed
 * order, which is why the number of threads cannot change a bit. SIMD_FOR asks for vector
 * instructions; its iterations are independent too (no sum is reordered). */
#ifndef LLMC_PARALLEL_H
#define LLMC_PARALLEL_H

#ifdef _OPENMP
#include <omp.h>
#define PARALLEL_FOR _Pragma("omp parallel for schedule(static)")
#define SIMD_FOR _Pragma("omp simd")
/* The same, shared out only where it is worth waking the threads (some microseconds, more on a busy
 * machine); and one for iterations of unequal cost, in shrinking pieces. */
#define PRAGMA(text) _Pragma(#text)
#define PARALLEL_FOR_IF(worth) PRAGMA(omp parallel for schedule(static) if (worth))
#define PARALLEL_SIMD_FOR_IF(worth) PRAGMA(omp parallel for simd schedule(static) if (worth))
#define PARALLEL_TASKS_IF(worth) PRAGMA(omp parallel for schedule(guided) if (worth))
/* For a few iterations, each of them long: every thread takes the next one. */
#define PARALLEL_EACH _Pragma("omp parallel for schedule(dynamic, 1)")
#define PARALLEL_EACH_IF(worth) PRAGMA(omp parallel for schedule(dynamic, 1) if (worth))
#define PARALLEL_EACH_OF(threads) PRAGMA(omp parallel for schedule(dynamic, 1) num_threads(threads))
#else
static inline int omp_get_max_threads(void) { return 1; }
static inline int omp_get_thread_num(void) { return 0; }
static inline int omp_get_num_threads(void) { return 1; }
#define PARALLEL_FOR
#define PARALLEL_FOR_IF(worth)
#define PARALLEL_SIMD_FOR_IF(worth)
#define PARALLEL_TASKS_IF(worth)
#define PARALLEL_EACH
#define PARALLEL_EACH_IF(worth)
#define PARALLEL_EACH_OF(threads)
#define SIMD_FOR
#endif

#endif

/* parallel.h: a parallel loop where OpenMP is present; the same loop, in order, where it is not.
 * Iterations must be independent: each result element is computed by exactly one iteration, in a fixed
 * order, which is why the number of threads cannot change a bit. */
#ifndef LLMC_PARALLEL_H
#define LLMC_PARALLEL_H

#ifdef _OPENMP
#include <omp.h>
#define PARALLEL_FOR _Pragma("omp parallel for schedule(static)")
#else
static inline int omp_get_max_threads(void) { return 1; }
static inline int omp_get_thread_num(void) { return 0; }
static inline int omp_get_num_threads(void) { return 1; }
#define PARALLEL_FOR
#endif

#endif

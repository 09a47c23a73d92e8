/* cpu.h: what every CPU kernel includes first. It gives the seam's element types their meaning here:
 * all of them are `real`, float in the program and double in the tests that compare with recorded
 * float64 values (make compiles every file of llmc/cpu/ twice, -DREAL=float and -DREAL=double). */
#ifndef LLMC_CPU_H
#define LLMC_CPU_H

#include <stdint.h>

#ifndef REAL
#define REAL float
#endif
typedef REAL real;
typedef real Param, Act, Grad, Stat, State;
typedef int32_t Id;
#define OPS_BACKEND
#include "../ops.h"

/* A parallel loop where OpenMP is present; the same loop, in order, where it is not. Iterations must
 * be independent: each result element is computed by exactly one iteration, in a fixed order, which
 * is why the number of threads cannot change a bit. */
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

/* cpu.h: what every CPU kernel includes first. It gives the seam's element types their meaning here:
 * all of them are `real`, float in the program and double in the tests that compare with recorded
 * float64 values (make compiles every file of llmc/cpu/ twice, -DREAL=float and -DREAL=double).
 * Next: vec.h for vectors, transpose.h for squares of them, scratch.h for working memory, then layernorm.c
 * as a first kernel. */
#ifndef LLMC_CPU_H
#define LLMC_CPU_H

#include <stdint.h>

#ifndef REAL
#define REAL float
#endif
typedef REAL real;
typedef real Param, Act, Grad, RowStat, OptimizerState;
typedef int32_t Id;
#define OPS_BACKEND
#include "../base/parallel.h"
#include "../ops.h"

#endif

/* scratch.h: working memory of the CPU kernels, kept between calls. */
#ifndef LLMC_SCRATCH_H
#define LLMC_SCRATCH_H

#include "cpu.h"

/* `parts` times `reals` elements, page aligned, not cleared; often a part for each thread. Call it
 * outside of parallel loops; the next call, by whichever kernel, may move or overwrite the memory.
 */
real *scratch_reserve(size_t parts, size_t reals, const char *what);

#endif

/* gelu.h: GELU in its tanh form, row by row, for the linear layers to fuse. Next: gelu.c. */
#ifndef LLMC_GELU_H
#define LLMC_GELU_H

#include "cpu.h"

/* out = gelu(pre), n elements; out may be pre. */
void gelu_row(real *out, const real *pre, size_t n);

/* dx *= gelu'(pre), n elements. Finite wherever pre and its square are. */
void gelu_grad_row(real *dx, const real *pre, size_t n);

#endif

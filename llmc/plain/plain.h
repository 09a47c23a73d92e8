/* plain.h: GPT-2's operations in plain loops, and what each file of this folder includes first.
 *
 * This folder implements all of ../ops.h with one loop for each index of the formula. It is the code to read, and
 * the reference: every test of a fast kernel, on the CPU and with CUDA, compares with these loops in double. `make
 * train_gpt2 KERNELS=plain` builds the whole program on them. It is slow: a small model is enough to see it learn,
 * for example with
 *     ./train_gpt2 --layers 1 --heads 2 --channels 32 --seq-len 32 --total-batch 256 --steps 200
 *                  --val-tokens 1000
 *
 * How to read it. Arrays are row-major; the comment after a pointer gives its shape, and a pointer to
 * one row of a matrix has the shape of that row. Each backward function is below its forward
 * function and quotes the line that it differentiates. In it, dx is the gradient of the loss with
 * respect to x; the chain rule says: if y depends on x, then dx is the sum over all such y of dy
 * times the derivative of y with respect to x. Where one x reaches several y, gradients add up (+=).
 *
 * All numbers are `real`: float in the program, double in the tests. Sums are kept in double, so that
 * their rounding does not matter. PARALLEL_FOR shares the iterations of the loop below it among
 * threads. Each element is computed by one iteration, so the number of threads changes no bit.
 *
 * Next, in the order in which data passes: embedding.c, layernorm.c, linear.c, attention.c,
 * classifier.c; then the update: reduction.c, adamw.c; and device.c for memory. After
 * them ../cpu/cpu.h leads into the fast kernels. */
#ifndef LLMC_PLAIN_H
#define LLMC_PLAIN_H

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

/* Where element (row, column) of a matrix lies: x[at(n, k, K)] for x (N, K). */
static inline size_t at(size_t row, int column, int columns) {
    return row * (size_t)columns + (size_t)column;
}

#endif

/* expect.h: recorded float64 values to compare with. It reads test/expectations/NAME.txt (written
 * by dev/record_expectations.py), evaluates the formula that gives both sides their weights and
 * inputs, and compares tensors: NaN never passes, and no tensor of a file is skipped silently.
 *
 * The kernels under test see `real`: float or double, as this file is compiled. Next:
 * gpt2_operations.c, which shows it at work. */
#ifndef EXPECT_H
#define EXPECT_H

#include "../llmc/cpu/cpu.h"
#include "test.h"

enum { IN_DOUBLE = sizeof(real) == sizeof(double) };

// ---------------------------------------------------------------------------------------------
// The formula: hashed integers of few bits, so that both sides and every type hold the same numbers

/* Element i of the stream `name`: base + scale * k / 2^(bits-1), k a signed integer of `bits` bits.
 */
typedef struct {
    int bits;
    double scale, base;
} Range;
extern const Range plain; // 16 bits in [-1, 1)
void formula_fill(real *out, const char *name, size_t count, Range range);

/* The weights of the tensor `name` in models that are compared whole: 8 bits, which bf16 holds too; LayerNorm
 * scales about 1. */
void formula_weights(float *out, const char *name, size_t count);

/* Element i of the token stream `name`, in 0 .. vocab-1. */
int32_t formula_token(const char *name, int vocab, size_t i);
void formula_tokens(Id *out, const char *name, int vocab, size_t count);

/* Makes those targets -1 (ignored) whose hash in stream `name` divides by 3. */
void formula_ignore(Id *targets, const char *name, size_t count);

// ---------------------------------------------------------------------------------------------
// Memory for what kernels write: poisoned with NaN, fenced on both sides

/* count elements, all NaN, so that what a kernel forgets to write is seen. */
real *fresh(size_t count);
/* The same, from the formula. */
real *fresh_formula(const char *name, size_t count);
Id *fresh_tokens(const char *name, int vocab, size_t count);
/* Releases all of the above, and fails the test where something was written beyond an end. */
void release_fresh(void);

// ---------------------------------------------------------------------------------------------
// Comparing

/* What is compared; each has its tolerances (with reasons) in expect.c, relative to the largest
 * value of the tensor. */
typedef enum {
    EMBEDDING,
    LAYERNORM,
    LINEAR,
    GELU,
    ATTENTION,
    CLASSIFIER,
    MODEL_LOSS,
    MODEL_GRADIENT,
    CLIP,
    ADAMW,
    TRAINING,
    SCHEDULE,
    OPERATIONS
} Operation;

typedef struct Expectations Expectations;

/* Reads test/expectations/NAME.txt; ends the program when it cannot. */
Expectations *expect_open(const char *name);
/* The recorded values of a tensor, which must have `count` of them. Marks it as used. */
const double *expect_values(Expectations *e, const char *tensor, size_t count);
/* The number of elements recorded for a tensor. Does not mark it. */
size_t expect_count(const Expectations *e, const char *tensor);
/* Fails the test unless `factor` times the recorded tensor is what was got. */
void expect_tensor(Expectations *e, const char *tensor, const real *got, size_t count,
                   Operation operation, double factor);
void expect_doubles(Expectations *e, const char *tensor, const double *got, size_t count,
                    Operation operation);
/* Marks the rest of the file as used: for a test that needs only part of what another compares. */
void expect_rest(Expectations *e);
/* Fails the test when a tensor of the file was not used. */
void expect_close(Expectations *e);

/* Whether a file (NAME.txt) was opened. */
bool expect_was_opened(const char *file);

/* A name put together from parts, valid for the next 31 calls. */
const char *named(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints, for every operation, the worst error seen and its tolerance. */
void expect_report(void);

#endif

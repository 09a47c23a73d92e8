/* backend.h: tests of a backend through llmc/ops.h alone, so that the same program tests the CPU, CUDA on
 * the emulator and CUDA on a GPU. Arrays live on the device between guards; beside each stands what the oracle
 * (oracle.h: the plain loops in double) computes from the same values. */
#ifndef BACKEND_H
#define BACKEND_H

#include "oracle.h"
#include "test.h"

typedef struct {
    void *at;    // the first element, on the device
    void *block; // the allocation, guards included
    ElementKind kind;
    size_t count;
    double *values; // what is, or was before the operation, on the device, as the oracle reads it
    double *want;   // what the oracle says it becomes
} Array;

/* Reproducible values in (-scale, scale), rounded to the kind's precision. */
Array *input(ElementKind kind, size_t count, double scale);
/* NaN everywhere: whatever an operation leaves out shows. */
Array *output(ElementKind kind, size_t count);
/* As input, for operations that add to it: want begins with the same values. */
Array *in_out(ElementKind kind, size_t count, double scale);
/* Ids in 0 .. below-1; want is not used. */
Array *ids_of(const int32_t *ids, size_t count);

/* From now on arrays begin this many elements after an aligned address: 0, or e.g. 1. */
void arrays_shift(size_t elements);

/* What is on the device now. */
double *contents(const Array *array);

/* One table (backend.c) says how far each operation may be from the oracle in each precision. */
typedef enum {
    EMBEDDING,
    LAYERNORM,
    LINEAR,
    GELU,
    ATTENTION,
    CLASSIFIER,
    SQUARES,
    ADAMW,
    FAMILIES
} Family;
void check(const Array *array, Family family, const char *name);

/* Checks every guard, frees every array, and restarts the values. */
void release(void);

bool low_precision(void); // bf16

/* Runs the block once for each order in which the emulator can run threads and blocks. */
#define EACH_ORDER                                                                                 \
    for (int order_ = 0; order_ < 3; order_++, release())                                          \
        if (set_order(order_))
bool set_order(int order);

#endif

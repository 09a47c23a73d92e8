/* memory.h: the one place that allocates. Every size is a checked product, every block is zeroed,
 * and allocation never returns NULL: a failure ends the program with a message that names the purpose of the memory
 * and its size. Next, the small tools: arithmetic.h, clock.h, parallel.h, number.h, rng.h, edit_distance.h. */
#ifndef LLMC_MEMORY_H
#define LLMC_MEMORY_H

#include <stddef.h>

/* a * b and a + b; fatal (EXIT_USAGE, naming `what`) where they do not fit a size_t. */
size_t size_mul(size_t a, size_t b, const char *what);
size_t size_add(size_t a, size_t b, const char *what);

/* count objects of `size` bytes, zeroed; free() releases them. */
void *memory_new(size_t count, size_t size, const char *what);

/* `block` (from memory_new or NULL) grown to count objects; the new part is not zeroed. */
void *memory_grow(void *block, size_t count, size_t size, const char *what);

/* A copy of a string; free() releases it. */
char *memory_string(const char *text);

/* Large zeroed memory, page aligned, on huge pages where the system has them: gradients and packed
 * matrices are a tenth faster there, for the sake of the TLB. memory_unmap releases it. */
void *memory_map(size_t bytes, const char *what);
void memory_unmap(void *block, size_t bytes);

/* The most physical memory this process has held so far, in bytes; 0 where the system has no such figure. */
size_t memory_peak(void);

#endif

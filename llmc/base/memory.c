/* memory.c: checked allocation. Sizes are products and sums of what users give, so each is checked for overflow
 * before memory is asked for. No caller sees NULL: a failed allocation ends the program with its purpose and
 * size. */
#define _GNU_SOURCE // MAP_ANONYMOUS, madvise
#include "memory.h"

#include "error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

size_t size_mul(size_t a, size_t b, const char *what) {
    size_t product;
    if (__builtin_mul_overflow(a, b, &product))
        fatal(EXIT_USAGE, "%s: %zu times %zu does not fit in memory; choose a smaller shape", what, a,
              b);
    return product;
}

size_t size_add(size_t a, size_t b, const char *what) {
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        fatal(EXIT_USAGE, "%s: %zu plus %zu does not fit in memory; choose a smaller shape", what, a,
              b);
    return sum;
}

/* Passes a block on; fatal where there is none. */
static void *check_allocated(void *block, size_t bytes, const char *what) {
    if (!block)
        fatal(EXIT_RUNTIME, "%s: no memory for %zu bytes (%.2f GB); use a smaller model or batch", what,
              bytes, (double)bytes / 1e9);
    return block;
}

void *memory_new(size_t count, size_t size, const char *what) {
    size_t bytes = size_mul(count, size, what);
    return check_allocated(calloc(bytes ? bytes : 1, 1), bytes, what); // calloc(0) might return NULL
}

/* What is new in a grown block is not set to zero, unlike memory_new's. */
void *memory_grow(void *block, size_t count, size_t size, const char *what) {
    size_t bytes = size_mul(count, size, what);
    return check_allocated(realloc(block, bytes ? bytes : 1), bytes, what);
}

char *memory_string(const char *text) {
    size_t bytes = strlen(text) + 1;
    return memcpy(memory_new(bytes, 1, "a string"), text, bytes);
}

void *memory_map(size_t bytes, const char *what) {
    // mmap and not calloc: pages aligned and zeroed, and huge pages can be asked for
    void *block = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0);
    check_allocated(block == MAP_FAILED ? NULL : block, bytes, what);
#ifdef MADV_HUGEPAGE
    madvise(block, bytes, MADV_HUGEPAGE); // a hint: correctness does not depend on it
#endif
    return block;
}

void memory_unmap(void *block, size_t bytes) {
    if (block) munmap(block, bytes ? bytes : 1);
}

/* The most memory that was ever resident; 0 where the system does not say. */
size_t memory_peak(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
#ifdef __APPLE__
    return (size_t)usage.ru_maxrss;
#else
    return (size_t)usage.ru_maxrss * 1024; // counted in KiB
#endif
}

/* seed_files.h: small files that are right, for each reader of readers.h at least one. */
#ifndef FUZZ_SEED_FILES_H
#define FUZZ_SEED_FILES_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *reader;
    size_t (*make)(uint8_t *out); // writes the bytes (at most 32 KiB) and returns how many
} Seed;

extern const Seed seeds[];
extern const int seed_count;

#endif

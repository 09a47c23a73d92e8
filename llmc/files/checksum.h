/* checksum.h: XXH64 (the xxHash specification, seed 0), from which file_checksum.h makes the checksum that guards a
 * checkpoint's files.
 *
 * It finds accidents, not forgery; at several GB/s it costs little beside the disk. The tool
 * `xxh64sum` prints the same 16 digits. */
#ifndef LLMC_CHECKSUM_H
#define LLMC_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t lanes[4];
    uint64_t bytes;
    unsigned char pending[32]; // the last bytes % 32 that were added
} Checksum;

void checksum_begin(Checksum *sum);
void checksum_add(Checksum *sum, const void *data, size_t bytes);

/* The checksum of all bytes added so far; more may follow. */
uint64_t checksum_value(const Checksum *sum);

/* The checksum of one block. */
uint64_t checksum_of(const void *data, size_t bytes);

#endif

/* shard_scan.h: one pass over every token of a data file: a checksum that shows whether two files hold the same
 * tokens, and the largest id, so that an id beyond the vocabulary is found at the start of a run. */
#ifndef LLMC_SHARD_SCAN_H
#define LLMC_SHARD_SCAN_H

#include "shard.h"

typedef struct {
    uint64_t checksum; // of the bytes of all tokens
    uint64_t largest;  // id; a negative id counts as the largest; 0 if there are no tokens
} ShardScan;

/* Reads the shard on all threads (several GB/s from the page cache). Fatal (EXIT_INPUT) where it cannot be
 * read, or was cut since it was opened. */
ShardScan shard_scan(const Shard *shard);

#endif

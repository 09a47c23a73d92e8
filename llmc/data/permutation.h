/* permutation.h: a keyed bijection of 0 .. n-1 that needs no table (a Feistel network with cycle
 * walking; Luby and Rackoff 1988, Black and Rogaway 2002). Shuffling a billion sequences takes no memory. */
#ifndef LLMC_PERMUTATION_H
#define LLMC_PERMUTATION_H

#include <stdint.h>

/* The image of index (< n). For fixed (n, key) a bijection; different keys give unrelated ones. 1 <= n < 2^63.
 */
uint64_t permute(uint64_t index, uint64_t n, uint64_t key);

#endif

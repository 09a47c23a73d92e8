/* siphash.h: SipHash-2-4 (Aumasson and Bernstein 2012), a 64-bit authentication code. Who does not know
 * the key cannot make the code of a message that he has not seen, which checksum.h does not promise. */
#ifndef LLMC_SIPHASH_H
#define LLMC_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t k0, k1;
} SipKey;

/* The code of `bytes` bytes under a key. */
uint64_t siphash(const SipKey *key, const void *data, size_t bytes);

/* A key that nobody can guess, from the system's random numbers. Returns 0 or an errno. */
int siphash_new_key(SipKey *key);

#endif

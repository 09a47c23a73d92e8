/* siphash.h: SipHash-2-4 (Aumasson and Bernstein 2012), a 64-bit authentication code. Without the key nobody can
 * compute the code of a new message; checksum.h does not promise that. */
#ifndef LLMC_SIPHASH_H
#define LLMC_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t k0, k1;
} SipKey;

/* The code of `bytes` bytes under a key. */
uint64_t siphash(const SipKey *key, const void *data, size_t bytes);

/* A secret key, from the system's random numbers. Returns 0 or an errno. */
int siphash_new_key(SipKey *key);

#endif

/* rng.h: random numbers without a state. Each is a function of a key and a counter, so that it does
 * not depend on the order of calls or on threads (Philox4x32-10, Salmon et al. 2011). */
#ifndef LLMC_RNG_H
#define LLMC_RNG_H

#include <stdint.h>

/* 128 random bits for (key, counter, stream). */
void philox(uint32_t out[4], uint64_t key, uint64_t counter, uint64_t stream);

/* Uniform in [0, 1) with 53 bits. */
double rng_uniform(uint64_t key, uint64_t counter, uint64_t stream);

/* Two independent N(0, 1) (Box and Muller 1958). */
void rng_normal_pair(double out[2], uint64_t key, uint64_t counter, uint64_t stream);

/* A good 64-bit mix (SplitMix64's finaliser, Steele et al. 2014), and a running hash made from it. */
uint64_t hash_mix(uint64_t x);
static inline uint64_t hash_add(uint64_t hash, uint64_t value) {
    return hash_mix(hash ^ hash_mix(value + 0x9e3779b97f4a7c15ULL));
}

#endif

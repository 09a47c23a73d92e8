/* rng.c: random numbers from counters. Philox (Salmon et al. 2011) mixes a counter under a key in ten rounds. A
 * number depends on key, counter and stream alone, not on earlier draws: threads, chunks and ranks may draw in
 * any order, and resuming needs no state of a generator. */
#include "rng.h"

#include "elementary.h"

#include <math.h>

void philox(uint32_t out[4], uint64_t key, uint64_t counter, uint64_t stream) {
    uint32_t x0 = (uint32_t)counter, x1 = (uint32_t)(counter >> 32);
    uint32_t x2 = (uint32_t)stream, x3 = (uint32_t)(stream >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * x0;
        uint64_t b = (uint64_t)0xCD9E8D57u * x2;
        x0 = (uint32_t)(b >> 32) ^ x1 ^ k0;
        x1 = (uint32_t)b;
        x2 = (uint32_t)(a >> 32) ^ x3 ^ k1;
        x3 = (uint32_t)a;
        k0 += 0x9E3779B9u; // Weyl sequences: the golden ratio and sqrt(3) - 1
        k1 += 0xBB67AE85u;
    }
    out[0] = x0, out[1] = x1, out[2] = x2, out[3] = x3;
}

/* 64 bits to [0, 1): the upper 53 are a double's significand. */
static double unit_interval(uint32_t low, uint32_t high) {
    uint64_t bits = ((uint64_t)high << 32 | low) >> 11;
    return (double)bits * 0x1p-53;
}

double rng_uniform(uint64_t key, uint64_t counter, uint64_t stream) {
    uint32_t bits[4];
    philox(bits, key, counter, stream);
    return unit_interval(bits[0], bits[1]);
}

/* Box and Muller 1958: a radius and an angle that are uniform in the right sense make two normal numbers. */
void rng_normal_pair(double out[2], uint64_t key, uint64_t counter, uint64_t stream) {
    uint32_t bits[4];
    philox(bits, key, counter, stream);
    double radius = sqrt(-2.0 * elementary_log(1.0 - unit_interval(bits[0], bits[1]))); // 1 - u is never 0
    double sine, cosine;
    elementary_sine_cosine(unit_interval(bits[2], bits[3]), &sine, &cosine);
    out[0] = radius * cosine;
    out[1] = radius * sine;
}

/* The finalizer of splitmix64 (Steele et al. 2014): every bit of x reaches every bit of the result. */
uint64_t hash_mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/* permutation.c: see permutation.h.
 *
 * A number below 2^bits is cut into a low and a high half (the low one may be a bit longer). Each
 * round changes one half by a function of the other, which can be undone whatever the function is:
 * so all rounds together are a bijection of 0 .. 2^bits - 1. Cycle walking restricts it to 0 ..
 * n-1: results >= n are permuted again. As 2^bits < 2n, that takes less than two passes on
 * average (50 to 120 ns); only fewer than 33 numbers, which a domain of their size would mix badly,
 * get a larger one. */
#include "permutation.h"

#include "../base/rng.h"

enum {
    ROUNDS = 8, // four changes of each half
    FEWEST = 6, // bits: with them, pairs of images are uniform over keys for every n
};

/* 2^64 / the golden ratio: its multiples lie far apart, and so do the rounds' keys. */
static const uint64_t weyl = 0x9e3779b97f4a7c15ULL;

/* A number whose lowest bits are 1. */
static uint64_t ones(int bits) { return (1ULL << bits) - 1; }

uint64_t permute(uint64_t index, uint64_t n, uint64_t key) {
    // Example: n = 1000 gives 10 bits, two halves of 5. Of the 1024 results 24 are 1000 or more; they are permuted
    // again.
    int bits = n > 1 ? 64 - __builtin_clzll(n - 1) : 0; // the fewest with n <= 2^bits
    if (bits < FEWEST) bits = FEWEST;
    int low_bits = bits - bits / 2;
    uint64_t low_mask = ones(low_bits), high_mask = ones(bits / 2);
    uint64_t keys = hash_mix(key); // round r has the key keys + r * weyl
    do {
        // Each line changes one half by an xor with a function of the other half. The same xor again would undo it.
        uint64_t low = index & low_mask, high = index >> low_bits, round_key = keys;
        for (int round = 0; round < ROUNDS; round += 2) {
            low ^= hash_mix(high + (round_key += weyl)) & low_mask;
            high ^= hash_mix(low + (round_key += weyl)) & high_mask;
        }
        index = high << low_bits | low;
    } while (index >= n);
    return index;
}

/* checksum.c: see checksum.h. Four independent lanes of 8 bytes take 32 bytes at a time; the names
 * and the order of the mixing steps are those of the xxHash specification. */
#include "checksum.h"

#include <string.h>

// The five constants of the specification. They are odd, so to multiply by one modulo 2^64 loses no information.
static const uint64_t PRIME1 = 0x9E3779B185EBCA87ULL;
static const uint64_t PRIME2 = 0xC2B2AE3D27D4EB4FULL;
static const uint64_t PRIME3 = 0x165667B19E3779F9ULL;
static const uint64_t PRIME4 = 0x85EBCA77C2B2AE63ULL;
static const uint64_t PRIME5 = 0x27D4EB2F165667C5ULL;

static inline uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

/* Eight bytes at any alignment, little-endian (as on every machine that this program supports). */
static inline uint64_t load64(const unsigned char *p) {
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline uint64_t load32(const unsigned char *p) {
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* One lane takes 8 bytes. */
static inline uint64_t round64(uint64_t lane, uint64_t input) {
    // A multiplication carries a bit only upwards; the rotation brings high bits down, so that the second one spreads
    // them.
    return rotate(lane + input * PRIME2, 31) * PRIME1;
}

/* A lane into the final checksum. */
static inline uint64_t merge(uint64_t sum, uint64_t lane) {
    return (sum ^ round64(0, lane)) * PRIME1 + PRIME4;
}

/* The hot loop: four lanes in registers, 32 bytes at each step. */
static void take_stripes(uint64_t lanes[4], const unsigned char *p, size_t stripes) {
    // No lane depends on another one, so a processor computes the four chains of multiplications at the same time.
    uint64_t a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
    for (; stripes > 0; stripes--, p += 32) {
        a = round64(a, load64(p));
        b = round64(b, load64(p + 8));
        c = round64(c, load64(p + 16));
        d = round64(d, load64(p + 24));
    }
    lanes[0] = a, lanes[1] = b, lanes[2] = c, lanes[3] = d;
}

void checksum_begin(Checksum *sum) {
    *sum = (Checksum){.lanes = {PRIME1 + PRIME2, PRIME2, 0, 0 - PRIME1}};
}

void checksum_add(Checksum *sum, const void *data, size_t bytes) {
    const unsigned char *p = data;
    // `pending` holds the bytes after the last full stripe of 32: 0 .. 31 of them
    size_t held = sum->bytes % 32;
    sum->bytes += bytes;
    // first complete the 32 bytes that the call before has begun
    if (held) {
        size_t n = bytes < 32 - held ? bytes : 32 - held;
        memcpy(sum->pending + held, p, n);
        p += n, bytes -= n;
        if (held + n < 32) return;
        take_stripes(sum->lanes, sum->pending, 1);
    }
    // the stripes in the middle are read where they are, without a copy
    take_stripes(sum->lanes, p, bytes / 32);
    // fewer than 32 bytes remain for the next call
    if (bytes % 32) memcpy(sum->pending, p + bytes / 32 * 32, bytes % 32);
}

uint64_t checksum_value(const Checksum *sum) {
    const uint64_t *l = sum->lanes;
    uint64_t x = PRIME5; // seed + PRIME5, for fewer than 32 bytes
    // the lanes are rotated by different amounts, so that their order matters
    if (sum->bytes >= 32) {
        x = rotate(l[0], 1) + rotate(l[1], 7) + rotate(l[2], 12) + rotate(l[3], 18);
        for (int i = 0; i < 4; i++) x = merge(x, l[i]);
    }
    x += sum->bytes;

    // The last 0 .. 31 bytes: 8 at a time, then 4, then 1. 23 bytes are 2 steps of 8, 1 of 4 and 3 of 1.
    const unsigned char *p = sum->pending;
    size_t left = sum->bytes % 32;
    for (; left >= 8; left -= 8, p += 8)
        x = rotate(x ^ round64(0, load64(p)), 27) * PRIME1 + PRIME4;
    for (; left >= 4; left -= 4, p += 4) x = rotate(x ^ load32(p) * PRIME1, 23) * PRIME2 + PRIME3;
    for (; left > 0; left--, p++) x = rotate(x ^ *p * PRIME5, 11) * PRIME1;

    // the finalizer: every bit of the input affects every bit of the checksum
    x = (x ^ x >> 33) * PRIME2;
    x = (x ^ x >> 29) * PRIME3;
    return x ^ x >> 32;
}

uint64_t checksum_of(const void *data, size_t bytes) {
    Checksum sum;
    checksum_begin(&sum);
    checksum_add(&sum, data, bytes);
    return checksum_value(&sum);
}

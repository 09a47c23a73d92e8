/* siphash.c: see siphash.h. The names v0 .. v3, k0 and k1 are those of the paper. Two rounds for each
 * 8 bytes of the message, the last of which hold its length; four rounds at the end. */
#include "siphash.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Rotates to the left. */
static uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

/* `bytes` (at most 8) bytes as a little-endian number. */
static uint64_t load(const unsigned char *p, size_t bytes) {
    uint64_t x = 0;
    for (size_t i = 0; i < bytes; i++) x |= (uint64_t)p[i] << 8 * i;
    return x;
}

/* SipRound, `count` times. */
static void rounds(uint64_t v[4], int count) {
    for (; count > 0; count--) {
        v[0] += v[1], v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0], v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1], v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2], v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

/* 8 bytes of the message. */
static void take_word(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    rounds(v, 2);
    v[0] ^= word;
}

uint64_t siphash(const SipKey *key, const void *data, size_t bytes) {
    const unsigned char *p = data;
    uint64_t v[4] = {key->k0 ^ 0x736f6d6570736575, key->k1 ^ 0x646f72616e646f6d,
                     key->k0 ^ 0x6c7967656e657261, key->k1 ^ 0x7465646279746573};
    for (size_t word = 0; word < bytes / 8; word++, p += 8) take_word(v, load(p, 8));
    take_word(v, load(p, bytes % 8) | (uint64_t)bytes << 56);
    v[2] ^= 0xff;
    rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

int siphash_new_key(SipKey *key) {
    int source = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (source < 0) return errno;
    size_t done = 0;
    int failure = 0;
    while (done < sizeof *key && !failure) {
        ssize_t n = read(source, (unsigned char *)key + done, sizeof *key - done);
        if (n > 0) done += (size_t)n;
        if (n == 0 || (n < 0 && errno != EINTR)) failure = n == 0 ? EIO : errno;
    }
    close(source);
    return failure;
}

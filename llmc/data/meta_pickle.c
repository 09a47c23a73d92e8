/* meta_pickle.c: see meta_pickle.h. What is looked for (pickletools of Python, protocols 2 to 5):
 *
 *   8c 0a       SHORT_BINUNICODE of 10 bytes, or 58 0a 00 00 00 BINUNICODE
 *   vocab_size
 *   94          MEMOIZE, or 71 xx BINPUT, or 72 xx xx xx xx LONG_BINPUT, or nothing
 *   4b xx       BININT1, or 4d xx xx BININT2, or 4a xx xx xx xx BININT
 */
#include "meta_pickle.h"

#include "../files/path.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 20, MOST_VOCAB = 1 << 24 };

static const char key[] = "vocab_size";
enum { KEY = sizeof key - 1 };

typedef struct {
    const unsigned char *bytes;
    size_t count;
} Bytes;

/* Whether the key at `at` has the opcode of a string before it, not just its letters. */
static bool is_string(Bytes pickle, size_t at) {
    // The letters alone may be a part of a longer string. With its opcode and its length, 10 (0a), the string is the
    // key and nothing more.
    const unsigned char *p = pickle.bytes + at;
    return (at >= 2 && memcmp(p - 2, "\x8c\x0a", 2) == 0) ||
           (at >= 5 && memcmp(p - 5, "X\x0a\0\0\0", 5) == 0);
}

/* The number whose opcode is at `at`, after the opcode that stores the key; -1: there is none. */
static int64_t number_at(Bytes pickle, size_t at) {
    // stored: bytes of the opcode that stores the key, with its argument; 0 for any other opcode. width: bytes of the
    // number after its opcode.
    static const size_t stored[256] = {[0x94] = 1, ['q'] = 2, ['r'] = 5};
    static const size_t width[256] = {['K'] = 1, ['M'] = 2, ['J'] = 4};
    if (at < pickle.count) at += stored[pickle.bytes[at]];
    if (at >= pickle.count) return -1;
    size_t bytes = width[pickle.bytes[at]];
    // another opcode, or a file that ends within the number
    if (bytes == 0 || pickle.count - at - 1 < bytes) return -1;
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; i++) value |= (uint32_t)pickle.bytes[at + 1 + i] << 8 * i;
    return value;
}

/* The number beside the key, where the key is there once. */
static int find(Bytes pickle) {
    int64_t found = 0;
    for (size_t at = 0; at + KEY <= pickle.count; at++) {
        if (memcmp(pickle.bytes + at, key, KEY) != 0 || !is_string(pickle, at)) continue;
        // The key is there twice: it is not known which number counts.
        if (found) return 0;
        found = number_at(pickle, at + KEY);
    }
    // A negative BININT was read as 2^31 or more, so it is refused together with what is too large.
    return found >= 1 && found <= MOST_VOCAB ? (int)found : 0;
}

int meta_pickle_vocab(const char *path) {
    size_t count;
    unsigned char *bytes = path_read(path, MOST_BYTES, &count);
    if (!bytes) return 0;
    Bytes pickle = {bytes, count};
    // A pickle of protocol 2 or later begins with 80 PROTO and the protocol's number.
    bool is_pickle = pickle.count >= 2 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5;
    int vocab = is_pickle ? find(pickle) : 0;
    free(bytes);
    return vocab;
}

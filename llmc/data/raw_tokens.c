/* raw_tokens.c: see raw_tokens.h. What little-endian integers look like when they are read as uint16:
 *
 *   uint32, int32   id 0 id 0 id 0 ...           every second value is below 4 (ids below 262,144)
 *   int64, uint64   id 0 0 0 id 0 0 0 ...
 *   uint8           two ids in a value: no byte reaches 128, though values go beyond 255 */
#include "raw_tokens.h"

#include "../base/error.h"

#include <stdbool.h>

enum {
    LEAST = 32,      // with fewer values nothing is suspected
    HEAD = 1 << 12,  // values looked at
    MANY = 1 << 10,  // so many uint16 tokens almost surely have a byte of 128 or more
    HIGH_HALF = 4,   // the high half of a wider id is below this
    ZEROS = 1 << 20, // values of zeros that are read at a time
};

/* The largest values at positions 0, 1, 2, 3 modulo 4, and the largest byte, of a file's first values. */
typedef struct {
    unsigned most[4], most_byte;
    size_t values;
} Looks;

/* The largest values at each place of four, and the largest byte, over the beginning of the file. */
static Looks look(File *file) {
    size_t values = file_size(file) / 2;
    Looks looks = {.values = values < HEAD ? values : HEAD};
    const unsigned char *bytes = file_at(file, 0, 2 * looks.values);
    for (size_t i = 0; i < looks.values; i++) {
        unsigned value = load_u16(bytes + 2 * i), low = value & 255, high = value >> 8;
        if (value > looks.most[i % 4]) looks.most[i % 4] = value;
        if (low > looks.most_byte) looks.most_byte = low;
        if (high > looks.most_byte) looks.most_byte = high;
    }
    return looks;
}

/* Whether the whole file is zeros: a download that reserved its space, or a disk that lost it. */
static bool all_zero(File *file) {
    size_t size = file_size(file);
    for (size_t at = 0, n; at < size; at += n) {
        n = size - at < ZEROS ? size - at : ZEROS;
        const unsigned char *bytes = file_at(file, at, n);
        for (size_t i = 0; i < n; i++)
            if (bytes[i]) return false;
    }
    return true;
}

static unsigned larger(unsigned a, unsigned b) { return a > b ? a : b; }

void raw_tokens_check(File *file) {
    Looks looks = look(file);
    const unsigned *most = looks.most;
    // a few values prove nothing
    if (looks.values < LEAST) return;
    unsigned even = larger(most[0], most[2]), odd = larger(most[1], most[3]);
    const char *problem = NULL, *type = NULL;
    if (even == 0 && odd == 0) {
        // The first 8 KiB are 0. A real file may begin with many tokens 0, so it is refused only where
        // all of it is 0.
        if (!all_zero(file)) return;
        fatal(EXIT_INPUT,
              "%s: all of its %zu bytes are 0: a sparse or unfinished file? Fetch or write it "
              "again (--data-type "
              "uint16 takes it as it is)",
              file_path(file), file_size(file));
    }
    // uint8 last, and only where a value goes beyond 255: ids of characters in uint16 stay below.
    // int64 first: its data fit the pattern of uint32, too. Wide integers fill the file, so the size is a multiple of
    // theirs.
    if (file_size(file) % 8 == 0 && most[0] >= HIGH_HALF && most[1] < HIGH_HALF && most[2] == 0 &&
        most[3] == 0)
        problem = "three of each four values are 0", type = "int64";
    else if (file_size(file) % 4 == 0 && even >= HIGH_HALF && odd < HIGH_HALF)
        problem = odd ? "every second value is below 4" : "every second value is 0",
        type = "uint32";
    else if (looks.values >= MANY && looks.most_byte < 128 && larger(even, odd) > 255)
        problem = "no byte reaches 128", type = "uint8";
    if (problem)
        fatal(EXIT_INPUT,
              "%s: %s: looks like %s tokens, but a raw .bin holds uint16; --data-type %s reads it "
              "so, --data-type "
              "uint16 as it is",
              file_path(file), problem, type, type);
}

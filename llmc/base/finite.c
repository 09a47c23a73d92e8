/* finite.c: see finite.h. The exponent of NaN and infinity has all bits set. Whole blocks are tested without a
 * branch inside, which the compiler vectorises. */
#include "finite.h"

#include <stdint.h>
#include <string.h>

enum { BLOCK = 1024 };

static uint32_t is_nonfinite(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x7f800000u) == 0x7f800000u;
}

size_t first_nonfinite(const float *values, size_t count) {
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = count - begin < BLOCK ? count : begin + BLOCK;
        uint32_t any = 0;
        for (size_t i = begin; i < end; i++) any |= is_nonfinite(values[i]);
        for (size_t i = begin; any && i < end; i++)
            if (is_nonfinite(values[i])) return i;
    }
    return count;
}

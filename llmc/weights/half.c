/* half.c: 16-bit floats to 32 bits and back. f16 has 5 bits of exponent and 10 of fraction (IEEE 754 binary16);
 * bf16 is the upper half of a float. */
#include "half.h"

#include <math.h>
#include <string.h>

static float float_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

float float_of_f16(uint16_t bits) {
    // 0x3C00 is 0 01111 0000000000: sign 0, exponent 15 - 15 = 0, fraction 0, so 1.0
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    int exponent = bits >> 10 & 31;
    uint32_t fraction = bits & 0x3FF;
    if (exponent == 31) return float_of_bits(sign | 0x7F800000 | fraction << 13); // Inf, NaN
    if (exponent == 0) { // zero and the subnormals: fraction * 2^-24
        float x = ldexpf((float)fraction, -24);
        return sign ? -x : x;
    }
    // the exponent's bias is 15 in F16 and 127 in a float; the fraction's 10 bits become the upper ones of 23
    return float_of_bits(sign | (uint32_t)(exponent - 15 + 127) << 23 | fraction << 13);
}

float float_of_bf16(uint16_t bits) { return float_of_bits((uint32_t)bits << 16); }

uint16_t bf16_of_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x)) return (uint16_t)(bits >> 16 | 0x40); // quiet, and never rounded to infinity
    // The lower half is compared with its middle, 0x8000: above it the addition carries into the upper half. At the
    // middle itself the lowest bit of the upper half decides: 0x3F808000 becomes 0x3F80, and 0x3F818000 becomes 0x3F82.
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16); // to nearest, ties to even
}

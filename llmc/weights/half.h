/* half.h: the two 16-bit floating point formats that weight files use, to and from float.
 *
 * F16 is IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits. BF16 is the upper half of a
 * float: 1, 8 and 7 bits. Each 16-bit value is a float exactly. */
#ifndef LLMC_HALF_H
#define LLMC_HALF_H

#include <stdint.h>

float float_of_f16(uint16_t bits);
float float_of_bf16(uint16_t bits);

/* The nearest BF16, ties to even, as torch rounds; NaN stays NaN. */
uint16_t bf16_of_float(float x);

#endif

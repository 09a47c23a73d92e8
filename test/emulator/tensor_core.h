/* tensor_core.h: how tensor cores add, for the emulated mma and cuBLASLt. Products are exact; the terms
 * of one block and the accumulator are aligned to the largest exponent, cut (not rounded) to a fixed
 * number of fraction bits, added exactly, and the sum is cut to a float. So results lean towards zero:
 * less exact than a chain of fused multiply-adds, which is why that would be too kind a stand-in.
 * (Measured by Fasi et al., PeerJ CS 330, and Khattak and Mikaitis, arXiv 2512.07004.) */
#ifndef EMULATOR_TENSOR_CORE_H
#define EMULATOR_TENSOR_CORE_H

#include <cmath>
#include <stdint.h>
#include <string.h>

enum { TENSOR_BLOCK = 8, TENSOR_FRACTION_BITS = 24 }; // sm_80, 86, 89

/* A double cut to the 24 significant bits of a float, towards zero. */
inline double tensor_cut(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= ~(((uint64_t)1 << 29) - 1);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The power of two at or below a positive normal number. */
inline double power_below(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= (uint64_t)0x7ff << 52;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* accumulator + sum of a[i * a_step] * b[i * b_step] over one block of TENSOR_BLOCK. */
inline float tensor_block(float accumulator, const float *a, int a_step, const float *b,
                          int b_step) {
    double terms[TENSOR_BLOCK + 1], largest = fabs((double)accumulator);
    bool finite = std::isfinite(accumulator);
    terms[TENSOR_BLOCK] = accumulator;
    for (int i = 0; i < TENSOR_BLOCK; i++) {
        terms[i] = (double)a[i * a_step] * (double)b[i * b_step];
        finite = finite && std::isfinite(terms[i]);
        if (fabs(terms[i]) > largest) largest = fabs(terms[i]);
    }
    double sum = 0;
    if (!finite) {
        for (double term : terms) sum += term;
        return (float)sum;
    }
    if (largest == 0) return 0;
    const double scale = (double)(1 << TENSOR_FRACTION_BITS);
    double power = power_below(largest), to_units = scale / power;
    for (double term : terms) sum += (double)(int64_t)(term * to_units);
    return (float)tensor_cut(sum * (power / scale));
}

#endif

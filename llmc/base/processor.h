/* processor.h: what the processor can do, asked before anything else is done. A program that uses instructions
 * that the processor does not have would end with the signal SIGILL; here it ends with a line that says what to do.
 *
 * An x86-64 level is a set of instructions that processors of some year have together: 2 SSE4 (2008), 3 AVX2 and
 * FMA (2013), 4 AVX-512 (2017). `make ARCH=portable` compiles the kernels for each; the program uses those of
 * processor_level(). On other architectures there is one level.
 * Next: memory.h. */
#ifndef LLMC_PROCESSOR_H
#define LLMC_PROCESSOR_H

/* For each feature its level (5: above all levels), its name for __builtin_cpu_supports, and the macro that the
 * compiler defines where it may use it. */
#define PROCESSOR_FEATURES(FEATURE)                                                                                    \
    FEATURE(2, "ssse3", __SSSE3__)                                                                                     \
    FEATURE(2, "sse4.1", __SSE4_1__)                                                                                   \
    FEATURE(2, "sse4.2", __SSE4_2__)                                                                                   \
    FEATURE(2, "popcnt", __POPCNT__)                                                                                   \
    FEATURE(3, "avx", __AVX__)                                                                                         \
    FEATURE(3, "avx2", __AVX2__)                                                                                       \
    FEATURE(3, "fma", __FMA__)                                                                                         \
    FEATURE(3, "bmi", __BMI__)                                                                                         \
    FEATURE(3, "bmi2", __BMI2__)                                                                                       \
    FEATURE(4, "avx512f", __AVX512F__)                                                                                 \
    FEATURE(4, "avx512bw", __AVX512BW__)                                                                               \
    FEATURE(4, "avx512cd", __AVX512CD__)                                                                               \
    FEATURE(4, "avx512dq", __AVX512DQ__)                                                                               \
    FEATURE(4, "avx512vl", __AVX512VL__)                                                                               \
    FEATURE(5, "avx512ifma", __AVX512IFMA__)                                                                           \
    FEATURE(5, "avx512vbmi", __AVX512VBMI__)                                                                           \
    FEATURE(5, "avx512vbmi2", __AVX512VBMI2__)                                                                         \
    FEATURE(5, "avx512vnni", __AVX512VNNI__)                                                                           \
    FEATURE(5, "avx512bitalg", __AVX512BITALG__)                                                                       \
    FEATURE(5, "avx512vpopcntdq", __AVX512VPOPCNTDQ__)

/* For each feature, whether the program was compiled to use it (processor_needs.c). */
extern const unsigned char processor_needs[];

/* The x86-64 level of this processor, 1 to 4. The environment's TRAIN_GPT2_ARCH=x86-64-v3 lowers it to that
 * level (or another), for comparisons and tests: what is above it counts as missing. 0 on other architectures. */
int processor_level(void);

#endif

/* test_foundation.c: errors, memory, random numbers and schedules, on which everything else is built. */
#include "test.h"

#include "../llmc/base/error.h"
#include "../llmc/base/memory.h"
#include "../llmc/base/rng.h"

TEST(fatal_one_line, "an error is one line on stderr, with the rank when there are several") {
    CHECK_FATAL(EXIT_INPUT, "train_gpt2: no good", fatal(EXIT_INPUT, "no %s", "good"));
    CHECK_FATAL(EXIT_USAGE, "train_gpt2: rank 3: no", (error_set_rank(3, 4), fatal(EXIT_USAGE, "no")));
    CHECK_FATAL(0, "train_gpt2: warning: hm", (warning("hm"), _exit(0)));
}

TEST(size_products, "a size product that overflows is refused by name") {
    CHECK(size_mul(3, 5, "x") == 15);
    CHECK_FATAL(EXIT_USAGE, "layers", size_mul((size_t)1 << 40, (size_t)1 << 40, "layers"));
    CHECK_FATAL(EXIT_USAGE, "layers", size_add(SIZE_MAX, 1, "layers"));
}

TEST(no_memory, "memory that cannot be allocated is named, with its size") {
    CHECK_FATAL(EXIT_RUNTIME, "the moon", memory_map((size_t)1 << 60, "the moon"));
#ifndef __SANITIZE_ADDRESS__ // its allocator has words of its own for this
    CHECK_FATAL(EXIT_RUNTIME, "the sun", memory_new((size_t)1 << 60, 1, "the sun"));
#endif
}

TEST(philox_vectors, "Philox4x32-10 gives the published known-answer vectors (Random123)") {
    uint32_t out[4];
    philox(out, 0, 0, 0);
    CHECK(out[0] == 0x6627e8d5 && out[1] == 0xe169c58d && out[2] == 0xbc57ac4c && out[3] == 0x9b00dbd8);
    philox(out, ~0ULL, ~0ULL, ~0ULL);
    CHECK(out[0] == 0x408f276d && out[1] == 0x41c83b0e && out[2] == 0xa20bc7c6 && out[3] == 0x6d5451fd);
    philox(out, 0x299f31d0a4093822ULL, 0x85a308d3243f6a88ULL, 0x0370734413198a2eULL);
    CHECK(out[0] == 0xd16cfe09 && out[1] == 0x94fdcceb && out[2] == 0x5001e420 && out[3] == 0x24126ea1);
}

TEST(hash_vectors, "hash_mix is the finalizer of SplitMix64: its first outputs for seed 0 are the published ones") {
    const uint64_t golden = 0x9E3779B97F4A7C15ULL;
    CHECK(hash_mix(golden) == 0xE220A8397B1DCDAFULL && hash_mix(2 * golden) == 0x6E789E6AA1B965F4ULL);
    CHECK(hash_mix(3 * golden) == 0x06C45D188009454FULL && hash_mix(0) == 0);
}

TEST(normal_moments, "normals have mean 0, variance 1, kurtosis 3 and no correlation inside a pair") {
    double sum = 0, square = 0, fourth = 0, cross = 0;
    const int n = 200000;
    for (int i = 0; i < n; i++) {
        double z[2];
        rng_normal_pair(z, 42, (uint64_t)i, 7);
        for (int k = 0; k < 2; k++) sum += z[k], square += z[k] * z[k], fourth += pow(z[k], 4);
        cross += z[0] * z[1];
    }
    CHECK_NEAR(sum / (2 * n), 0, 0.008);
    CHECK_NEAR(square / (2 * n), 1, 0.012);
    CHECK_NEAR(fourth / (2 * n), 3, 0.08);
    CHECK_NEAR(cross / n, 0, 0.012);
}

TEST(uniform_range, "uniforms lie in [0, 1) and fill it evenly") {
    int bucket[10] = {0};
    for (int i = 0; i < 100000; i++) {
        double u = rng_uniform(1, (uint64_t)i, 2);
        CHECK(u >= 0 && u < 1, "u = %g", u);
        bucket[(int)(u * 10)]++;
    }
    for (int i = 0; i < 10; i++) CHECK(bucket[i] > 9600 && bucket[i] < 10400, "%d", bucket[i]);
}

int main(int argc, char **argv) { return test_main(argc, argv); }

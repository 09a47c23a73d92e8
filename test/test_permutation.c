/* test_permutation.c: the shuffle is a bijection, and a good one. */
#include "test.h"

#include "../llmc/data/permutation.h"

TEST(bijection, "for every n up to 300 and several keys each of 0 .. n-1 is hit exactly once") {
    for (uint64_t n = 1; n <= 300; n++)
        for (uint64_t key = 0; key < 4; key++) {
            int hits[300] = {0};
            for (uint64_t i = 0; i < n; i++) {
                uint64_t image = permute(i, n, key);
                CHECK(image < n, "n=%d", (int)n);
                if (image < n) hits[image]++;
            }
            for (uint64_t i = 0; i < n; i++) CHECK(hits[i] == 1, "n=%d i=%d", (int)n, (int)i);
        }
}

TEST(bijection_large,
     "a domain of 2^17 + 1, where cycle walking works hardest, is a bijection too") {
    const uint64_t n = (1 << 17) + 1;
    unsigned char *hit = calloc(n, 1);
    uint64_t missed = n;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t image = permute(i, n, 99);
        if (image < n && !hit[image]) hit[image] = 1, missed--;
    }
    CHECK(missed == 0, "%d", (int)missed);
    free(hit);
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

TEST(huge, "for n near 2^32, 2^40 and 2^63 images stay below n and differ from each other") {
    const uint64_t sizes[] = {(1ULL << 32) - 1, 1ULL << 32, (1ULL << 32) + 1, 1ULL << 40,
                              (1ULL << 63) - 1};
    static uint64_t images[2000];
    for (int s = 0; s < 5; s++) {
        for (uint64_t i = 0; i < 2000; i++) {
            images[i] = permute(i < 1000 ? i : sizes[s] - 1 - (i - 1000), sizes[s], 7);
            CHECK(images[i] < sizes[s]);
        }
        qsort(images, 2000, sizeof *images, by_value);
        for (int i = 1; i < 2000; i++) CHECK(images[i] != images[i - 1]);
    }
}

TEST(repeatable, "the same key gives the same order, another key another one") {
    int same = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        CHECK(permute(i, 1000, 5) == permute(i, 1000, 5));
        same += permute(i, 1000, 5) == permute(i, 1000, 6);
    }
    CHECK(same < 10, "%d of 1000 stay (1 expected)", same);
}

/* Chi-square of counts against a uniform expectation, in standard deviations from its mean. */
static double excess(const int *counts, int cells, double expected) {
    double chi = 0;
    for (int i = 0; i < cells; i++) chi += pow(counts[i] - expected, 2) / expected;
    return (chi - (cells - 1)) / sqrt(2.0 * (cells - 1));
}

TEST(uniform_pairs,
     "over keys the images of 0 and 1 are uniform over all pairs, for every n up to 40") {
    const int keys = 60000;
    for (int n = 2; n <= 40; n++) {
        int counts[40 * 39] = {0};
        for (int key = 0; key < keys; key++) {
            int a = (int)permute(0, (uint64_t)n, (uint64_t)key),
                b = (int)permute(1, (uint64_t)n, (uint64_t)key);
            counts[a * (n - 1) + b - (b > a)]++;
        }
        double z = excess(counts, n * (n - 1), (double)keys / (n * (n - 1)));
        CHECK(z < 5, "n=%d: %.2f standard deviations too uneven", n, z);
    }
}

TEST(no_structure, "neighbours are not kept together, and the order has no trend") {
    const int n = 20000;
    int neighbours = 0, rising = 0, buckets[20 * 20] = {0};
    double correlation = 0;
    for (int i = 0; i + 1 < n; i++) {
        int a = (int)permute((uint64_t)i, (uint64_t)n, 1),
            b = (int)permute((uint64_t)i + 1, (uint64_t)n, 1);
        neighbours += abs(a - b) == 1;
        rising += b > a;
        correlation += ((double)a / n - 0.5) * ((double)i / n - 0.5) * 12 / n;
        buckets[i / 1000 * 20 + a / 1000]++;
    }
    CHECK(neighbours < 15, "%d neighbours (2 expected)", neighbours);
    CHECK_NEAR(rising, n / 2, 250);
    CHECK_NEAR(correlation, 0, 0.03);
    CHECK(excess(buckets, 400, n / 400.0) < 5);
}

TEST(key_avalanche, "flipping any bit of the key moves nearly every index") {
    for (int bit = 0; bit < 64; bit++) {
        int same = 0;
        for (uint64_t i = 0; i < 500; i++)
            same += permute(i, 500, 123) == permute(i, 500, 123 ^ 1ULL << bit);
        CHECK(same < 12, "bit %d: %d of 500 stay (1 expected)", bit, same);
    }
}

int main(int argc, char **argv) { return test_main(argc, argv); }

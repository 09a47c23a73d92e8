/* test_checksum.c: the sum that guards checkpoints. */
#include "../llmc/files/checksum.h"

#include "test.h"

TEST(known_values, "the sums are XXH64's, as xxh64sum prints them") {
    CHECK(checksum_of("", 0) == 0xEF46DB3751D8E999ULL);
    CHECK(checksum_of("a", 1) == 0xD24EC4F1A98C6E5BULL);
    CHECK(checksum_of("abc", 3) == 0x44BC2CF5AD770999ULL);
    // 39 and 43 bytes: the four lanes, and every length of tail step
    const char *digits = "Nobody inspects the spammish repetition";
    CHECK(checksum_of(digits, strlen(digits)) == 0xFBCEA83C8A378BF1ULL);
    const char *fox = "The quick brown fox jumps over the lazy dog";
    CHECK(checksum_of(fox, strlen(fox)) == 0x0B242D361FDA71BCULL, "got %016llx",
          (unsigned long long)checksum_of(fox, strlen(fox)));
}

TEST(pieces, "the sum does not depend on the pieces it was added in") {
    unsigned char data[200];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 37 + 11);
    for (size_t total = 0; total <= sizeof data; total += 7)
        for (size_t piece = 1; piece < 70; piece++) {
            Checksum sum;
            checksum_begin(&sum);
            for (size_t done = 0; done < total; done += piece)
                checksum_add(&sum, data + done, total - done < piece ? total - done : piece);
            CHECK(checksum_value(&sum) == checksum_of(data, total), "%zu by %zu", total, piece);
        }
}

TEST(every_bit, "any flipped bit changes the sum") {
    unsigned char data[101] = {0};
    uint64_t before = checksum_of(data, sizeof data);
    for (size_t bit = 0; bit < 8 * sizeof data; bit++) {
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CHECK(checksum_of(data, sizeof data) != before, "bit %zu", bit);
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

int main(int argc, char **argv) { return test_main(argc, argv); }

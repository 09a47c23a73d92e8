/* test_siphash.c: the authentication code of heartbeats, against the values of its authors. */
#include "test.h"

#include "../llmc/base/siphash.h"

/* The key 00 01 .. 0f of the paper's appendix A and of the reference implementation's vectors. */
static const SipKey key = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

TEST(published, "the code of 00 01 .. of several lengths is that of the reference implementation") {
    static const struct {
        size_t bytes;
        uint64_t code;
    } vectors[] = {{0, 0x726fdb47dd0e0e31}, {1, 0x74f839c593dc67fd}, {7, 0xab0200f58b01d137},
                   {8, 0x93f5f5799a932462}, {15, 0xa129ca6149be45e5}};
    unsigned char message[16];
    for (int i = 0; i < 16; i++) message[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        CHECK(siphash(&key, message, vectors[i].bytes) == vectors[i].code, "%zu bytes",
              vectors[i].bytes);
}

TEST(sensitive, "every bit of message and key changes the code") {
    unsigned char message[56] = {0};
    uint64_t code = siphash(&key, message, sizeof message);
    for (size_t bit = 0; bit < 8 * sizeof message; bit++) {
        message[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CHECK(siphash(&key, message, sizeof message) != code, "bit %zu", bit);
        message[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (int bit = 0; bit < 128; bit++) {
        SipKey other = key;
        *(bit < 64 ? &other.k0 : &other.k1) ^= UINT64_C(1) << bit % 64;
        CHECK(siphash(&other, message, sizeof message) != code, "key bit %d", bit);
    }
}

TEST(keys, "two new keys differ") {
    SipKey a = {0, 0}, b = {0, 0};
    CHECK(siphash_new_key(&a) == 0 && siphash_new_key(&b) == 0);
    CHECK(a.k0 != b.k0 && a.k1 != b.k1 && a.k0 != a.k1);
}

int main(int argc, char **argv) { return test_main(argc, argv); }

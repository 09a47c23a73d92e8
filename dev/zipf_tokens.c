/* zipf_tokens.c: zipf_tokens VOCAB COUNT FILE: writes COUNT random ids below VOCAB as raw uint16, as frequent as the
 * words of a language: the k-th most frequent has a share of about 1 / (k + 1.6), so that with VOCAB 50257 the first
 * has 4 %. dev/gpu_check.sh measures with them: the embedding's gradient takes longer the more often an id comes. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    long vocab = argc == 4 ? atol(argv[1]) : 0, count = argc == 4 ? atol(argv[2]) : 0;
    FILE *file = vocab >= 2 && vocab <= 65536 && count > 0 ? fopen(argv[3], "wb") : NULL;
    if (!file) return 2;
    uint64_t state = 88172645463325252u;
    double span = log(((double)vocab + 2.1) / 2.1);
    for (long i = 0; i < count; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        double uniform = (double)(state >> 11) * 0x1p-53;
        long place = (long)(2.1 * exp(uniform * span) - 2.1); // of the id among the frequent ones, from 0
        long id = (place < vocab ? place : vocab - 1) * 7919 % vocab;
        uint8_t bytes[2] = {(uint8_t)id, (uint8_t)(id >> 8)}; // little-endian
        if (fwrite(bytes, 1, 2, file) != 2) return 1;
    }
    return fclose(file) != 0;
}

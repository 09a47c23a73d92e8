/* bench_text.c: how fast text becomes GPT-2's tokens, on one thread and on two, in MB a second.
 * Usage: bench_text FILE...      dev/bench_text.sh makes the files, and asks tiktoken too where it is installed */
#define _GNU_SOURCE // clock_gettime
#include "../llmc/base/clock.h"
#include "../llmc/files/byte_stream.h"
#include "../llmc/text/encode_documents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 7 };

static void count_ids(void *context, const Segment *segment, const int32_t *ids, size_t count, uint64_t invalid) {
    (void)segment, (void)ids, (void)invalid;
    *(uint64_t *)context += count;
}

/* Seconds of encoding a file. */
static double encode(const Tokenizer *tokenizer, const char *path, int threads, uint64_t *tokens) {
    double start = clock_seconds();
    *tokens = 0;
    Documents *documents = documents_open(&path, 1, NULL, tokenizer, false);
    encode_documents(documents, tokenizer, false, threads, count_ids, NULL, tokens);
    documents_close(documents);
    return clock_seconds() - start;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    Tokenizer *tokenizer = tokenizer_open("gpt2");
    for (int i = 1; i < argc; i++) {
        double one[REPEATS], two[REPEATS];
        uint64_t tokens = 0, bytes;
        int64_t modified;
        byte_stream_status(argv[i], &bytes, &modified);
        for (int r = 0; r < REPEATS; r++) {
            one[r] = encode(tokenizer, argv[i], 1, &tokens);
            two[r] = encode(tokenizer, argv[i], 2, &tokens);
        }
        qsort(one, REPEATS, sizeof *one, compare);
        qsort(two, REPEATS, sizeof *two, compare);
        const char *slash = strrchr(argv[i], '/');
        printf("%s %.1f %.2f %.2f\n", slash ? slash + 1 : argv[i], (double)bytes / one[REPEATS / 2] / 1e6,
               one[REPEATS / 2] / two[REPEATS / 2], (double)bytes / (double)tokens);
    }
    tokenizer_free(tokenizer);
    return 0;
}

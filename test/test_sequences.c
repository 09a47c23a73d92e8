/* test_sequences.c: which sequences an update sees, against a plain array of tokens. */
#include "files.h"

#include "../llmc/base/error.h"
#include "../llmc/data/sequences.h"

/* A stream of n tokens whose value is their index, cut into shards of the given sizes. */
static Stream *shards_stream(const int *sizes, int shards) {
    const char *paths[8];
    static int32_t tokens[4096];
    int first = 0;
    for (int s = 0; s < shards; s++) {
        char name[32];
        snprintf(name, sizeof name, "sequences_%d.bin", s);
        for (int i = 0; i < sizes[s]; i++) tokens[i] = first + i;
        paths[s] = write_llmc(name, tokens, (size_t)sizes[s]);
        first += sizes[s];
    }
    return stream_open(paths, shards, STREAM_ALL);
}

static Stream *index_stream(int n) { return shards_stream(&n, 1); }

TEST(every_target_once,
     "for many n and T each target is served exactly once an epoch, after its input") {
    for (int n = 2; n <= 70; n++)
        for (int T = 1; T <= 20; T += T < 9 ? 1 : 5) {
            Stream *stream = index_stream(n);
            Sequences sequences = sequences_new(stream, T, 42, true);
            CHECK(sequences.per_epoch == (uint64_t)((n - 1 + T - 1) / T) &&
                  sequences.targets == (uint64_t)n - 1);
            int served[70] = {0};
            for (uint64_t p = 0; p < sequences.per_epoch; p++) {
                int32_t inputs[20], targets[20];
                uint64_t j = sequences_at(&sequences, p);
                sequences_read(&sequences, j, inputs, targets);
                int valid = 0;
                for (int i = 0; i < T; i++) {
                    if (targets[i] < 0) continue;
                    CHECK(targets[i] == inputs[i] + 1 && inputs[i] == (int)j * T + i);
                    served[targets[i]]++, valid++;
                }
                CHECK(valid == sequences_valid(&sequences, j));
            }
            for (int i = 0; i < n; i++) CHECK(served[i] == (i > 0), "n=%d T=%d target %d", n, T, i);
            stream_close(stream);
        }
}

TEST(short_last_sequence,
     "the last sequence keeps the stream's end: missing targets are -1, missing inputs 0") {
    Stream *stream = index_stream(8);
    Sequences sequences = sequences_new(stream, 5, 0, false);
    int32_t inputs[5], targets[5];
    CHECK(sequences.per_epoch == 2 && sequences_valid(&sequences, 0) == 5 &&
          sequences_valid(&sequences, 1) == 2);
    sequences_read(&sequences, 0, inputs, targets);
    CHECK(memcmp(inputs, (int32_t[]){0, 1, 2, 3, 4}, sizeof inputs) == 0);
    CHECK(memcmp(targets, (int32_t[]){1, 2, 3, 4, 5}, sizeof targets) == 0);
    sequences_read(&sequences, 1, inputs, targets);
    CHECK(memcmp(inputs, (int32_t[]){5, 6, 7, 0, 0}, sizeof inputs) == 0);
    CHECK(memcmp(targets, (int32_t[]){6, 7, -1, -1, -1}, sizeof targets) == 0);
    stream_close(stream);
}

TEST(shard_edges,
     "sequences run across shard ends: shards of 100 + 10, 200 + 200, 3 of 100 are one array") {
    const int cases[3][3] = {{100, 10, 0}, {200, 200, 0}, {100, 100, 100}};
    for (int c = 0; c < 3; c++) {
        int shards = cases[c][2] ? 3 : 2, n = cases[c][0] + cases[c][1] + cases[c][2];
        Stream *stream = shards_stream(cases[c], shards);
        Sequences sequences = sequences_new(stream, 8, 0, false);
        CHECK(stream_length(stream) == (uint64_t)n &&
              sequences.per_epoch == (uint64_t)(n - 1 + 7) / 8);
        CHECK(sequences_valid_total(&sequences, 0, sequences.per_epoch) == (uint64_t)n - 1);
        for (uint64_t j = 0; j < sequences.per_epoch; j++) {
            int32_t inputs[8], targets[8];
            sequences_read(&sequences, j, inputs, targets);
            for (int i = 0; i < 8; i++) {
                int at = (int)j * 8 + i;
                CHECK(inputs[i] == (at < n ? at : 0) && targets[i] == (at + 1 < n ? at + 1 : -1));
            }
        }
        stream_close(stream);
    }
}

TEST(small_sets,
     "validation sets of 64, 65 and 2 tokens work; one token is refused with its count") {
    const int sizes[3] = {64, 65, 2}, counts[3] = {8, 8, 1};
    for (int i = 0; i < 3; i++) {
        Stream *stream = index_stream(sizes[i]);
        Sequences sequences = sequences_new(stream, 8, 0, false);
        CHECK(sequences.per_epoch == (uint64_t)counts[i]);
        CHECK(sequences_valid_total(&sequences, 0, sequences.per_epoch) == (uint64_t)sizes[i] - 1);
        stream_close(stream);
    }
    Stream *stream = index_stream(1);
    CHECK_FATAL(EXIT_INPUT, "sequences_0.bin: tokens are 1, but 2 or more",
                sequences_new(stream, 8, 0, false));
    stream_close(stream);
}

TEST(epochs, "epochs follow without a seam; each is a permutation of its own, repeatable by seed") {
    Stream *stream = index_stream(401);
    Sequences sequences = sequences_new(stream, 4, 7, true),
              again = sequences_new(stream, 4, 7, true);
    Sequences other = sequences_new(stream, 4, 8, true);
    int seen[3][100] = {{0}}, moved = 0, differs = 0;
    for (uint64_t p = 0; p < 300; p++) {
        uint64_t j = sequences_at(&sequences, p);
        CHECK(j < 100 && j == sequences_at(&again, p));
        seen[p / 100][j]++;
        moved += j != sequences_at(&sequences, p % 100);
        differs += j != sequences_at(&other, p);
    }
    for (int i = 0; i < 300; i++) CHECK(seen[i / 100][i % 100] == 1);
    CHECK(moved > 180, "epochs 1 and 2 differ from 0 at %d of 200", moved);
    CHECK(differs > 280, "seeds differ at %d of 300", differs);
    stream_close(stream);
}

TEST(stream_order, "without shuffling sequences come in stream order, epoch after epoch") {
    Stream *stream = index_stream(50);
    Sequences sequences = sequences_new(stream, 8, 7, false);
    for (uint64_t p = 0; p < 30; p++) CHECK(sequences_at(&sequences, p) == p % 7);
    stream_close(stream);
}

TEST(valid_total,
     "the targets of any range of positions are those of its sequences, across epochs") {
    const int sizes[] = {2, 9, 65, 129, 130};
    for (int s = 0; s < 5; s++)
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            Stream *stream = index_stream(sizes[s]);
            Sequences sequences = sequences_new(stream, 8, 3, shuffle);
            for (uint64_t first = 0; first < 40; first++) {
                uint64_t sum = 0;
                for (uint64_t count = 0; count < 60; count++) {
                    CHECK(sequences_valid_total(&sequences, first, count) == sum);
                    sum += (uint64_t)sequences_valid(&sequences,
                                                     sequences_at(&sequences, first + count));
                }
            }
            stream_close(stream);
        }
}

/* The hash of the only sequence of a text. */
static uint64_t text_hash(const char *text, int T) {
    int32_t inputs[32], targets[32];
    Stream *stream = stream_of_text((const unsigned char *)text, strlen(text), "text");
    Sequences sequences = sequences_new(stream, T, 0, false);
    uint64_t hash = sequences_read(&sequences, 0, inputs, targets);
    stream_close(stream);
    return hash;
}

TEST(sequence_hash, "the hash changes with any token, with two swapped, with a target ignored") {
    char text[] = "abcdefghi";
    uint64_t hash = text_hash(text, 8);
    CHECK(hash == text_hash("abcdefghi", 8) && hash != 0);
    CHECK(hash != text_hash("abcdefgh", 8), "the last target is missing");
    CHECK(text_hash("abaca", 4) != text_hash("acaba", 4), "the same pairs in another order");
    for (int i = 0; i < 9; i++) {
        text[i] ^= 1;
        CHECK(text_hash(text, 8) != hash, "token %d", i);
        text[i] ^= 1;
        for (int k = 0; k < i; k++) {
            char a = text[i], b = text[k];
            text[i] = b, text[k] = a;
            CHECK(text_hash(text, 8) != hash, "tokens %d and %d swapped", i, k);
            text[i] = a, text[k] = b;
        }
    }
}

TEST(same_tokens_same_hash,
     "text, llm.c shard, .npy of each version and type, and raw .bin give equal sequences") {
    const char *text = "To be, or not to be, that is the question.";
    int32_t tokens[64];
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++) tokens[i] = (unsigned char)text[i];
    const char *paths[] = {
        write_string("same.txt", text),
        write_llmc("same_llmc.bin", tokens, n),
        write_npy("same_1.npy", 1, "<u2", tokens, n),
        write_npy("same_2.npy", 2, "<u2", tokens, n),
        write_npy("same_3.npy", 3, "<u2", tokens, n),
        write_npy("same_i4.npy", 1, "<i4", tokens, n),
        write_npy("same_u4.npy", 1, "<u4", tokens, n),
        write_tokens("same_raw.bin", NULL, 0, tokens, n, 2),
    };
    uint64_t first[8];
    for (int p = 0; p < 8; p++) {
        Stream *stream = stream_open(&paths[p], 1, STREAM_ALL);
        Sequences sequences = sequences_new(stream, 8, 11, true);
        CHECK(stream_is_bytes(stream) == (p == 0) && stream_length(stream) == n, "%s", paths[p]);
        for (uint64_t k = 0; k < sequences.per_epoch; k++) {
            int32_t inputs[8], targets[8];
            uint64_t hash =
                sequences_read(&sequences, sequences_at(&sequences, k), inputs, targets);
            if (p == 0) first[k] = hash;
            CHECK(hash == first[k], "%s, sequence %d", paths[p], (int)k);
        }
        stream_close(stream);
    }
}

TEST(beyond_int, "sequence numbers and counts hold beyond 2^31 tokens") {
    unsigned char header[512];
    uint64_t n = (1ULL << 32) + 1000;
    char dictionary[128];
    snprintf(dictionary, sizeof dictionary,
             "{'descr': '<u2', 'fortran_order': False, 'shape': (%llu,), }", (unsigned long long)n);
    size_t head = npy_header(header, 1, dictionary);
    const char *path = write_sparse("beyond.npy", header, head, head + 2 * n);
    if (!path) SKIP("this file system has no sparse files of 8 GB");
    FILE *file = fopen(path, "r+b");
    fseeko(file, (off_t)(head + 2 * (n - 1)), SEEK_SET);
    fputc(77, file);
    fclose(file);
    Stream *stream = stream_open(&path, 1, STREAM_ALL);
    Sequences sequences = sequences_new(stream, 1024, 1, true);
    CHECK(stream_length(stream) == n && sequences.per_epoch == (n - 1 + 1023) / 1024);
    static int32_t inputs[1024], targets[1024];
    uint64_t last = sequences.per_epoch - 1;
    int valid = sequences_valid(&sequences, last);
    sequences_read(&sequences, last, inputs, targets);
    CHECK(valid == 999 && targets[valid - 1] == 77 && targets[valid] == -1 && inputs[valid] == 77);
    CHECK(sequences_valid_total(&sequences, 3 * sequences.per_epoch, sequences.per_epoch) == n - 1);
    for (uint64_t p = 0; p < 1000; p++)
        CHECK(sequences_at(&sequences, 1ULL << 40 | p) < sequences.per_epoch);
    stream_close(stream);
    unlink(path);
}

int main(int argc, char **argv) { return test_main(argc, argv); }

/* test_file_kinds.c: a data file that is not what its name says is recognised by what is in it, and no good one is
 * taken for another. */
#include "files.h"

#include "../llmc/base/error.h"
#include "../llmc/base/rng.h"
#include "../llmc/data/meta_pickle.h"
#include "../llmc/files/file_kind.h"

enum { COUNT = 4000 };

/* Ids below a vocabulary, as real ones: none is rare. */
static const int32_t *ids_below(int vocab) {
    static int32_t ids[COUNT];
    for (int i = 0; i < COUNT; i++) ids[i] = (int32_t)(rng_uniform(5, (uint64_t)i, 0) * vocab);
    return ids;
}

/* A raw file of `count` ids below a vocabulary, each of `width` bytes. */
static const char *raw(int vocab, size_t count, int width) {
    return write_tokens("raw.bin", NULL, 0, ids_below(vocab), count, width);
}

/* The first tokens of a file that is read as a type. */
static bool reads_as(const char *path, DataType type, size_t count, int vocab) {
    int32_t out[COUNT];
    Stream *stream = stream_open_as(&path, 1, STREAM_ALL, type);
    bool same = stream_length(stream) == count;
    if (same) stream_read(stream, 0, count, out);
    stream_close(stream);
    return same && memcmp(out, ids_below(vocab), count * sizeof *out) == 0;
}

TEST(raw_types, "wider and narrower integers in a raw .bin file are recognised, and read when their type is named") {
    CHECK_REFUSED("every second value is 0: looks like uint32 tokens", raw(50257, COUNT, 4));
    CHECK(reads_as(raw(50257, COUNT, 4), DATA_UINT32, COUNT, 50257));
    CHECK(reads_as(raw(50257, COUNT, 4), DATA_INT32, COUNT, 50257));
    CHECK_REFUSED("every second value is below 4: looks like uint32 tokens", raw(128256, COUNT, 4)); // Llama 3's
    CHECK_REFUSED("three of each four values are 0: looks like int64 tokens", raw(50257, COUNT, 8));
    CHECK(reads_as(raw(128256, COUNT, 8), DATA_INT64, COUNT, 128256));
    CHECK_REFUSED("no byte reaches 128: looks like uint8 tokens", raw(65, COUNT / 2 * 2, 1));
    CHECK(reads_as(raw(65, COUNT, 1), DATA_UINT8, COUNT, 65));
    CHECK_REFUSED("all of its 8000 bytes are 0", raw(1, COUNT, 2));
    CHECK(reads_as(raw(1, COUNT, 2), DATA_UINT16, COUNT, 1));
}

TEST(raw_uint16, "uint16 tokens are taken as they are, be they of bytes, of characters, of four kinds, few, or after "
                 "many zeros") {
    static const int vocabs[] = {2, 4, 65, 256, 1000, 50257, 65536};
    for (size_t i = 0; i < sizeof vocabs / sizeof *vocabs; i++) {
        CHECK(reads_as(raw(vocabs[i], COUNT, 2), DATA_AUTO, COUNT, vocabs[i]), "%d", vocabs[i]);
        CHECK(reads_as(raw(vocabs[i], COUNT - 1, 2), DATA_AUTO, COUNT - 1, vocabs[i]), "%d", vocabs[i]);
    }
    CHECK(reads_as(raw(50257, 14, 4), DATA_UINT16, 28, 50257) == false, "those are other numbers");
    CHECK_FATAL(0, "", open_one(raw(50257, 14, 4))); // too few to tell
    static unsigned char zeros[100000];
    zeros[sizeof zeros - 2] = 7;
    CHECK_FATAL(0, "", open_one(write_bytes("late.bin", zeros, sizeof zeros)));
}

TEST(types_refused, "a type that the header or the size contradicts is refused; an id beyond 32 bits is one beyond the "
                    "vocabulary") {
    const char *path = write_llmc("shard.bin", ids_below(100), 100);
    CHECK_FATAL(EXIT_INPUT, "--data-type is uint32, but the header", stream_open_as(&path, 1, STREAM_ALL, DATA_UINT32));
    CHECK_FATAL(0, "", stream_open_as(&path, 1, STREAM_ALL, DATA_UINT16));
    path = raw(100, 101, 2);
    CHECK_FATAL(EXIT_INPUT, "size is 202 bytes, but raw int64 tokens take a multiple of 8",
                stream_open_as(&path, 1, STREAM_ALL, DATA_INT64));
    unsigned char wide[24] = {[4] = 1, [23] = 0x80}; // 2^32, 0, a negative number
    path = write_bytes("wide.bin", wide, sizeof wide);
    Stream *stream = stream_open_as(&path, 1, STREAM_ALL, DATA_INT64);
    int32_t out[3];
    CHECK(stream_largest(stream) == (uint64_t)1 << 63);
    CHECK_FATAL(EXIT_INPUT, "token 0 is 4294967296, but ids 0 to 99", stream_set_vocab(stream, 100));
    CHECK_FATAL(EXIT_INPUT, "token 0 is 4294967296, but ids 0 to 2147483647", stream_read(stream, 0, 1, out));
    CHECK_FATAL(EXIT_INPUT, "token 2 is -9223372036854775808", stream_read(stream, 1, 2, out));
    stream_close(stream);
}

/* What a file that begins with these bytes, and continues with others, is said to be. */
static FileKind kind_of(const char *start, size_t length) {
    unsigned char bytes[600];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 37 + 128);
    memcpy(bytes, start, length);
    File *file = file_open(write_bytes("kind", bytes, sizeof bytes));
    FileKind kind = file_kind(file);
    file_close(file);
    return kind;
}

TEST(kinds, "files of other programs are known by their first bytes; text may begin with the same letters") {
    static const struct {
        size_t length;
        const char *start, *what;
    } cases[] = {
        {4, "GGUF", "GGUF"},
        {4, "lmgg", "ggml"},
        {4, "tjgg", "ggml"},
        {6, "PAR1\x15\x04", "Parquet"},
        {6, "PAR1\x00\x04", "Parquet"},
        {4, "PK\3\4", "PyTorch"},
        {3, "\x80\4\x95", "pickle"},
        {8, "\x89HDF\r\n\x1a\n", "HDF5"},
        {6, "ARROW1", "Arrow"},
        {16, "SQLite format 3", "SQLite"},
        {10, "\x40\0\0\0\0\0\0\0{\"", "safetensors"},
        {8, "\x88\xd8\x34\1\1\0\0\0", "an llm.c file: a shard of GPT-2 tokens"},
        {8, "\1\x34\xd8\x88\0\0\0\1", "a byte-swapped (big-endian) llm.c file: a shard of GPT-2 tokens"},
        {8, "\1\x34\xd7\xc6\0\0\0\3", "a byte-swapped (big-endian) llm.c file: a GPT-2 model"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FileKind kind = kind_of(cases[i].start, cases[i].length);
        CHECK(kind.what && strstr(kind.what, cases[i].what) && kind.data && kind.model, "%s: %s", cases[i].what,
              kind.what ? kind.what : "unknown");
    }
    CHECK(!kind_of("\1\x34\xd8\x88\1\2\3\4", 8).what, "the version makes it ids");
    CHECK(!kind_of("", 0).what);
    File *file = file_open(write_string("words.txt", "GGUF is a file format, as PAR1 is."));
    CHECK(!file_kind(file).what);
    file_close(file);
}

TEST(meta_pickle, "nanoGPT's meta.pkl gives its vocabulary in every protocol, and nothing else does") {
#define PICKLE(bytes) meta_pickle_vocab(write_bytes("meta.pkl", bytes, sizeof bytes - 1))
    CHECK(PICKLE("\x80\4\x95\x13\0\0\0\0\0\0\0}\x94(\x8c\x0avocab_size\x94KA\x8c\4itos\x94}u.") == 65);
    CHECK(PICKLE("\x80\2}q\0(X\x0a\0\0\0vocab_sizeq\1M\0\1X\4\0\0\0itosq\2}u.") == 256);
    CHECK(PICKLE("\x80\5\x95\0\0\0\0\0\0\0\0}\x94\x8c\x0avocab_size\x94J\x51\xc4\0\0s.") == 50257);
    CHECK(PICKLE("\x80\4}\x94\x8c\x0avocab_size\x94J\xff\xff\xff\xffs.") == 0, "a negative number");
    CHECK(PICKLE("\x80\4}\x94\x8c\x0avocab_size\x94K") == 0, "cut");
    CHECK(PICKLE("\x80\4}\x94\x8c\x0avocab_size\x94") == 0, "cut");
    CHECK(PICKLE("\x80\4}\x94\x8c\x0avocab_size\x94MA") == 0, "cut");
    CHECK(PICKLE("\x80\4}\x94\x8c\x0dmy_vocab_size\x94KAs.") == 0, "another key");
    CHECK(PICKLE("\x80\4}\x94\x8c\x0avocab_size\x94h\5s.") == 0, "a reference to something before");
    CHECK(PICKLE("\x80\4}\x94\x8c\x0bvocab_size2\x94KAs.") == 0, "another key");
    CHECK(PICKLE("\x80\4}\x94\x8c\x0avocab_size\x94KA\x8c\x0avocab_size\x94KBs.") == 0, "two of them");
    CHECK(PICKLE("vocab_size = 65") == 0, "no pickle");
    CHECK(meta_pickle_vocab(in_folder("nowhere.pkl")) == 0);
}

int main(int argc, char **argv) { return test_main(argc, argv); }

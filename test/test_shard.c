/* test_shard.c: one data file: every kind is read right, every lie is one line and exit code 3. */
#include "files.h"

#include "../llmc/base/error.h"
#include "../llmc/data/stream.h"

#include <setjmp.h>

static const int32_t ten[10] = {5, 50256, 0, 1, 2, 3, 4, 65535, 7, 8};

/* The path of an llm.c shard of zeros with a header and size of choice. */
static const char *llmc_lie(int32_t magic, int32_t version, int32_t count, size_t size) {
    unsigned char bytes[2048] = {0};
    llmc_header(bytes, magic, version, count);
    return write_bytes("lie.bin", bytes, size);
}

/* The path of a .npy file with this dictionary and `body` bytes. */
static const char *npy_lie(const char *dictionary, size_t body) {
    unsigned char bytes[1024] = {0};
    size_t head = npy_header(bytes, 1, dictionary);
    memset(bytes + head, 0, sizeof bytes - head);
    return write_bytes("lie.npy", bytes, head + body);
}

// ---- right ------------------------------------------------------------------------------------

TEST(kinds, "each kind of file gives its tokens") {
    const char *paths[] = {
        write_llmc("ten.bin", ten, 10),
        write_npy("ten_1.npy", 1, "<u2", ten, 10),
        write_npy("ten_2.npy", 2, "<i4", ten, 10),
        write_npy("ten_3.npy", 3, "<u4", ten, 10),
        write_tokens("ten_raw.bin", NULL, 0, ten, 10, 2),
        write_npy("npy.bin", 1, "<u2", ten, 10),
        write_llmc("shard_without_ending", ten, 10),
    };
    for (int i = 0; i < 7; i++) {
        Stream *stream = open_one(paths[i]);
        int32_t out[10];
        stream_read(stream, 0, 10, out);
        CHECK(stream_length(stream) == 10 && !stream_is_bytes(stream) && stream_files(stream) == 1);
        CHECK(memcmp(out, ten, sizeof ten) == 0, "%s", paths[i]);
        stream_close(stream);
    }
}

TEST(text, "text gives its bytes: UTF-8, CRLF, no newline at the end, HTML named .txt, one byte") {
    const char *texts[] = {"a\r\nb\r\n", "h\xc3\xa9llo", "no newline",
                           "<!DOCTYPE html><html></html>", "x"};
    for (int i = 0; i < 5; i++) {
        Stream *stream = open_one(write_string("any.txt", texts[i]));
        int32_t out[64];
        size_t n = strlen(texts[i]);
        CHECK(stream_is_bytes(stream) && stream_length(stream) == n);
        stream_read(stream, 0, n, out);
        for (size_t k = 0; k < n; k++) CHECK(out[k] == (unsigned char)texts[i][k]);
        stream_close(stream);
    }
}

// ---- lies -------------------------------------------------------------------------------------

TEST(empty, "a file of 0 bytes is refused, whatever its name") {
    CHECK_REFUSED("zero.txt: is empty (0 bytes)", write_string("zero.txt", ""));
    CHECK_REFUSED("zero.bin: is empty", write_string("zero.bin", ""));
    CHECK_REFUSED("zero.npy: is empty", write_string("zero.npy", ""));
}

TEST(llmc_lies,
     "an llm.c shard with a wrong version, count or size says which, found and expected") {
    CHECK_FATAL(0, "", stream_close(open_one(llmc_lie(20240520, 1, 100, 1224))));
    CHECK_REFUSED("version (header entry 1) is 2, but 1", llmc_lie(20240520, 2, 100, 1224));
    CHECK_REFUSED("token count (header entry 2) is -5, but 0 or more",
                  llmc_lie(20240520, 1, -5, 1224));
    CHECK_REFUSED("198 bytes follow the header, but 100 tokens", llmc_lie(20240520, 1, 100, 1222));
    CHECK_REFUSED("199 bytes follow the header, but 100 tokens", llmc_lie(20240520, 1, 100, 1223));
    CHECK_REFUSED("the file is cut", llmc_lie(20240520, 1, 100, 1222));
    CHECK_REFUSED("202 bytes follow the header, but 100 tokens", llmc_lie(20240520, 1, 100, 1226));
    CHECK_REFUSED("201 bytes follow the header, but 100 tokens", llmc_lie(20240520, 1, 100, 1225));
    CHECK_REFUSED("the file is too long", llmc_lie(20240520, 1, 100, 1226));
    CHECK_REFUSED("but 2147483647 tokens", llmc_lie(20240520, 1, INT32_MAX, 1224));
    CHECK_REFUSED("size is 1000 bytes", llmc_lie(20240520, 1, 100, 1000));
    CHECK_REFUSED("size is 4 bytes", llmc_lie(20240520, 1, 100, 4));
}

TEST(other_llmc_files,
     "other llm.c files are refused by what they are, though they are named .bin") {
    CHECK_REFUSED("is an llm.c file: a GPT-2 model",
                  llmc_lie(20240326, 3, 1024, 1224));
    CHECK_REFUSED("an evaluation set", llmc_lie(20240522, 1, 100, 1224));
    CHECK_REFUSED("version (header entry 1) is 1, but 7 is expected", llmc_lie(20240801, 1, 50, 1224));
    CHECK_REFUSED("a tokenizer", llmc_lie(20240328, 2, 50257, 1224));
    CHECK_REFUSED("of an unknown kind", llmc_lie(20240901, 1, 100, 1224));
}

TEST(npy_lies, "a .npy array of another type, shape, order, version or size says which") {
#define NPY(descr, order, shape)                                                                   \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"
    CHECK_FATAL(0, "", open_one(npy_lie(NPY("'<u2'", "False", "(10,)"), 20)));
    CHECK_FATAL(
        0, "",
        open_one(npy_lie("{\"shape\":(10L,),\"fortran_order\":False,\"descr\":\"<u2\"}", 20)));
    CHECK_REFUSED("descr (the type) is \"'>u2'", npy_lie(NPY("'>u2'", "False", "(10,)"), 20));
    CHECK_REFUSED("'<u2', '<i4' or '<u4' is expected", npy_lie(NPY("'<i8'", "False", "(10,)"), 80));
    CHECK_REFUSED("descr (the type) is \"[('a', '<u2')]",
                  npy_lie(NPY("[('a', '<u2')]", "False", "(10,)"), 20));
    CHECK_REFUSED("fortran_order is \"True", npy_lie(NPY("'<u2'", "True", "(10,)"), 20));
    CHECK_REFUSED("shape is \"(2, 5)", npy_lie(NPY("'<u2'", "False", "(2, 5)"), 20));
    CHECK_REFUSED("shape is \"()", npy_lie(NPY("'<u2'", "False", "()"), 2));
    CHECK_REFUSED("shape is \"(-1,)", npy_lie(NPY("'<u2'", "False", "(-1,)"), 20));
    CHECK_REFUSED("shape is \"(99999999999999999999,)",
                  npy_lie(NPY("'<u2'", "False", "(99999999999999999999,)"), 20));
    CHECK_REFUSED("18446744073709551615 tokens",
                  npy_lie(NPY("'<u4'", "False", "(18446744073709551615,)"), 20));
    CHECK_REFUSED("18 bytes follow the header, but 10 tokens of 2",
                  npy_lie(NPY("'<u2'", "False", "(10,)"), 18));
    CHECK_REFUSED("22 bytes follow the header, but 10 tokens of 2",
                  npy_lie(NPY("'<u2'", "False", "(10,)"), 22));
    CHECK_REFUSED("a key is \"'shape': (10,)", npy_lie("{'shape': (10,), 'shape': (10,)}", 20));
    CHECK_REFUSED("its end is \"\"", npy_lie("{'shape': (10,), 'descr': '<u2'}", 20));
    CHECK_REFUSED("its end is \"10\"", npy_lie(NPY("'<u2'", "False", "(10,)") " 10", 20));
    CHECK_REFUSED("its start is \"10\"", npy_lie("10", 20));
    CHECK_REFUSED("a key is \"\"", npy_lie("{'descr': '<u2',", 20));
    CHECK_REFUSED(".npy version is 4, but 1, 2 or 3", write_npy("lie.npy", 4, "<u2", ten, 10));
    CHECK_REFUSED("size is 7 bytes", write_bytes("lie.npy", "\x93NUMPY\x01", 7));
    CHECK_REFUSED("size is 12 bytes, but 65535 bytes",
                  write_bytes("lie.npy", "\x93NUMPY\1\0\xff\xff{}", 12));
    CHECK_REFUSED("size is 14 bytes, but 65538 bytes",
                  write_bytes("lie.npy", "\x93NUMPY\2\0\2\0\1\0{}", 14));
    CHECK_REFUSED("does not start with \\x93NUMPY",
                  write_bytes("lie.npy", "\x93NUMPI\1\0\xff\xff{}", 12));
}

TEST(failed_downloads,
     "where tokens are promised, an HTML page, other text and LFS pointers are refused") {
    const char *page = "\n<!DOCTYPE html>\n<html><head><title>404</title></head></html>";
    const char *pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
    CHECK_REFUSED("page.bin: is an HTML page, but tokens are expected: a failed download?",
                  write_string("page.bin", page));
    CHECK_REFUSED("page.npy: is an HTML page", write_string("page.npy", page));
    CHECK_REFUSED("words.bin: is text, but tokens",
                  write_string("words.bin", "{\"error\": \"you have no access to this\"}"));
    CHECK_REFUSED("is a Git LFS pointer", write_string("lfs.bin", pointer));
    CHECK_REFUSED("is a Git LFS pointer", write_string("lfs.txt", pointer));
}

TEST(not_text, "compressed files, archives, weights and binary data are not taken for text") {
#define BYTES(name, text) write_bytes(name, text, sizeof text - 1)
    CHECK_REFUSED("a.txt: is gzip-compressed", BYTES("a.txt", "\x1f\x8b\x08 and so on"));
    CHECK_REFUSED("a.bin: is gzip-compressed", BYTES("a.bin", "\x1f\x8b\x08 and so on"));
    CHECK_REFUSED("is a zip archive", BYTES("a.txt", "PK\3\4 and so on"));
    CHECK_REFUSED("is a zip archive", BYTES("pytorch_model.bin", "PK\3\4 and so on"));
    CHECK_REFUSED("is zstd-compressed", BYTES("a.zst", "\x28\xb5\x2f\xfd and so on"));
    CHECK_REFUSED("is a Parquet table", BYTES("a.parquet", "PAR1\x15 and so on"));
    CHECK_REFUSED("is a safetensors file",
                  BYTES("a.safetensors", "\x10\0\0\0\0\0\0\0{\"a\": 1} and so on"));
    CHECK_REFUSED("is UTF-16 text", BYTES("a.txt", "\xff\xfe"
                                                   "a\0b\0"));
    CHECK_REFUSED("byte 3 is 0, so this is not text", BYTES("a.txt", "abc\0def"));
    CHECK_REFUSED("byte 1 is 0, so this is not text",
                  write_tokens("tokens.txt", NULL, 0, ten, 10, 2));
}

TEST(raw_bin, "raw tokens of an odd size are refused") {
    CHECK_REFUSED("size is 21 bytes, but raw uint16 tokens take a multiple of 2",
                  BYTES("odd.bin", "\1\2\3\4\5\6\7\1\2\3\4\5\6\7\1\2\3\4\5\6\7"));
}

TEST(vocabulary, "a token outside the vocabulary is refused before any is served: file, position, id") {
    int32_t out[10];
    Stream *stream = open_one(write_llmc("vocab.bin", ten, 10)), *slice = stream_slice(stream, 5, 5);
    CHECK_FATAL(EXIT_INPUT, "vocab.bin: token 7 is 65535, but ids 0 to 50256", stream_set_vocab(stream, 50257));
    CHECK_FATAL(EXIT_INPUT, "token 7 is 65535, but ids 0 to 65534", stream_set_vocab(stream, 65535));
    CHECK_FATAL(EXIT_INPUT, "vocab.bin: token 7 is 65535", stream_set_vocab(slice, 50257));
    stream_close(slice);
    slice = stream_slice(stream, 0, 7); // what is beyond is not this slice's
    stream_set_vocab(slice, 50257);
    stream_read(slice, 0, 7, out);
    stream_close(slice);
    CHECK(stream_largest(stream) == 65535);
    stream_set_vocab(stream, 65536);
    stream_read(stream, 0, 10, out);
    stream_close(stream);

    stream = open_one(write_npy("negative.npy", 1, "<i4", (int32_t[]){3, -7}, 2));
    CHECK_FATAL(EXIT_INPUT, "negative.npy: token 1 is -7", stream_set_vocab(stream, 50257));
    CHECK_FATAL(EXIT_INPUT, "negative.npy: token 1 is -7", stream_read(stream, 0, 2, out));
    stream_close(stream);
    stream = open_one(write_npy("large.npy", 1, "<u4", (int32_t[]){3, -7}, 2));
    CHECK_FATAL(EXIT_INPUT, "large.npy: token 1 is 4294967289", stream_set_vocab(stream, INT32_MAX));
    stream_close(stream);
    stream = stream_of_text((const unsigned char *)"abc\xff", 4, "the text");
    CHECK_FATAL(EXIT_INPUT, "the text: token 3 is 255, but ids 0 to 127", stream_set_vocab(stream, 128));
    stream_close(stream);
}

TEST(vocabulary_late, "an id that comes into a file after it was opened is refused when it is served") {
    int32_t out[10];
    const char *path = write_llmc("late.bin", ten, 7);
    Stream *stream = open_one(path);
    stream_set_vocab(stream, 50257);
    FILE *file = fopen(path, "r+b");
    fseek(file, 1024 + 2 * 3, SEEK_SET);
    fwrite("\377\377", 1, 2, file);
    fclose(file);
    CHECK_FATAL(EXIT_INPUT, "late.bin: token 3 is 65535, but ids 0 to 50256", stream_read(stream, 2, 5, out));
    stream_close(stream);
}

TEST(scan, "the identity sees one token and its id wherever it stands in a file of several pieces") {
    enum { MANY = 9 << 20 };
    int32_t *tokens = calloc(MANY, sizeof *tokens); // more than two pieces of 8 MiB
    const size_t places[] = {0, 4 << 20, (4 << 20) - 1, MANY - 1, MANY - 2, 5000000};
    Stream *plain = open_one(write_llmc("scan_plain.bin", tokens, MANY));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        tokens[places[i]] = 777;
        Stream *stream = open_one(write_llmc("scan.bin", tokens, MANY));
        CHECK(stream_largest(stream) == 777, "place %zu", places[i]);
        CHECK(stream_identity(stream) != stream_identity(plain), "place %zu", places[i]);
        stream_close(stream);
        tokens[places[i]] = 0;
    }
    stream_close(plain);
    free(tokens);
}

// ---- anything ---------------------------------------------------------------------------------

static jmp_buf refused;

static void end_by_jump(int code) { longjmp(refused, code); }

/* A good file of one of the kinds, then some bytes changed, or its end moved. */
static size_t mutant(unsigned char *bytes, unsigned *seed, const char **name) {
    static const char *const names[] = {"fuzz.bin", "fuzz.npy", "fuzz.txt"};
    size_t size = 1024 + 20;
    int kind = rand_r(seed) % 3;
    memset(bytes, 0, 2048);
    llmc_header(bytes, 20240520, 1, 10);
    if (kind == 1)
        size = 20 + npy_header(bytes, 1 + rand_r(seed) % 3, NPY("'<u2'", "False", "(10,)"));
    if (kind == 2) size = (size_t)snprintf((char *)bytes, 2048, "Some text that a test writes.");
    *name = names[rand_r(seed) % 4 ? kind : rand_r(seed) % 3];
    for (int changes = rand_r(seed) % 4; changes >= 0; changes--) {
        size_t at = (size_t)rand_r(seed) % (kind == 0 ? 16 : size);
        bytes[at] =
            (unsigned char)(rand_r(seed) % 3 ? rand_r(seed) : " ,:(){}'0129<"[rand_r(seed) % 13]);
    }
    if (rand_r(seed) % 4 == 0) size = (size_t)rand_r(seed) % 1100;
    return size;
}

/* Opens and reads 2,000 mutants; returns 3 or 0 only, unless something else happens. */
static int fuzz(void) {
    static unsigned char bytes[2048];
    static int32_t out[4096];
    static volatile int opened, ended, i;
    static unsigned seed = 1;
    error_set_end(end_by_jump);
    for (i = 0; i < 2000; i++) {
        const char *name;
        size_t size = mutant(bytes, &seed, &name);
        const char *path = write_bytes(name, bytes, size);
        int code = setjmp(refused);
        if (code == 0) {
            Stream *stream = open_one(path);
            stream_set_vocab(stream, 50257);
            stream_read(stream, 0, (size_t)stream_length(stream), out);
            stream_close(stream);
            opened++;
        } else if (code == EXIT_INPUT) {
            ended++;
        } else {
            return 1;
        }
    }
    return opened > 100 && ended > 100 ? 0 : 2;
}

TEST(fuzz, "2,000 mutated files are opened and read, or refused: nothing else happens") {
    in_folder(""); // the folder is the parent's
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(4);
        _exit(fuzz());
    }
    int status;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
}

int main(int argc, char **argv) { return test_main(argc, argv); }

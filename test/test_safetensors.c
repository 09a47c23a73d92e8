/* test_safetensors.c: the safetensors reader takes what the format's authors take, and no lies. */
#include "../llmc/weights/safetensors.h"

#include "../llmc/base/error.h"
#include "../llmc/weights/half.h"
#include "../llmc/base/rng.h"
#include "files.h"
#include "test.h"

#include <fcntl.h>

static const char tiny[] = "test/fixtures/hf_tiny/model.safetensors";

/* A file of `header`, padding and data_bytes bytes 0, 1, 2, ...; its length field is what it should
 * be plus `lie`. */
static const char *make_file(const char *header, size_t data_bytes, long lie) {
    const char *path = in_folder("made.safetensors");
    FILE *file = fopen(path, "wb");
    uint64_t length = strlen(header) + (uint64_t)lie;
    fwrite(&length, 8, 1, file);
    fputs(header, file);
    for (size_t i = 0; i < data_bytes; i++) fputc((int)(i & 255), file);
    fclose(file);
    return path;
}

TEST(half_formats, "every F16 and BF16 is the float it stands for; BF16 rounds to nearest even") {
    CHECK(float_of_f16(0x3C00) == 1 && float_of_f16(0xC000) == -2 && float_of_f16(0x7BFF) == 65504);
    CHECK(float_of_f16(0x0001) == 0x1p-24f && float_of_f16(0x03FF) == 0x1.ff8p-15f);
    CHECK(float_of_f16(0x0400) == 0x1p-14f && float_of_f16(0x8000) == 0 &&
          signbit(float_of_f16(0x8000)));
    CHECK(isinf(float_of_f16(0x7C00)) && float_of_f16(0xFC00) < 0 && isnan(float_of_f16(0x7E00)));
    CHECK(float_of_f16(0x3555) == 0x1.554p-2f);
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float x = float_of_bf16((uint16_t)bits);
        CHECK(isnan(x) ? isnan(float_of_bf16(bf16_of_float(x))) : bf16_of_float(x) == bits, "%04x",
              bits);
        if (bits % 0x80 == 0x7F || bits % 0x8000 >= 0x7F00) continue;
        float above = float_of_bf16((uint16_t)(bits + 1)), half = x + (above - x) / 2;
        CHECK(bf16_of_float(half) == (bits & 1 ? bits + 1 : bits), "halfway above %04x", bits);
        CHECK(bf16_of_float(nextafterf(half, x)) == bits, "below half of %04x", bits);
        CHECK(bf16_of_float(nextafterf(half, above)) == bits + 1, "above half of %04x", bits);
    }
}

TEST(reference_file, "a file that the reference library wrote is read") {
    SafeTensors *st = safetensors_open(tiny);
    CHECK(safetensors_count(st) == 28);
    const SafeTensor *wte = safetensors_find(st, "transformer.wte.weight");
    CHECK(wte && wte->dims == 2 && wte->shape[0] == 97 && wte->shape[1] == 32 &&
          wte->count == 3104);
    CHECK(safetensor_is_float(wte) && strcmp(wte->dtype, "F32") == 0);
    CHECK(safetensors_get(st, 27) == wte, "it is the last in the file");
    float x[3];
    safetensor_floats(wte, safetensor_at(st, wte, 3101, 3), 3, x);
    CHECK(isfinite(x[0]) && fabsf(x[2]) > 0 && fabsf(x[2]) < 10);
    CHECK(!safetensors_find(st, "wte.weight"));
    safetensors_close(st);
}

TEST(types, "F32, F16 and BF16 become floats; other types are known, but are not floats") {
    const char *header = "{\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]},"
                         "\"b\":{\"dtype\":\"BF16\",\"shape\":[1,1],\"data_offsets\":[4,6]},"
                         "\"mask\":{\"dtype\":\"BOOL\",\"shape\":[1,1,3],\"data_offsets\":[6,9]},"
                         "\"none\":{\"dtype\":\"I64\",\"shape\":[0,5],\"data_offsets\":[9,9]},"
                         "\"scalar\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[9,10]}}   ";
    SafeTensors *st = safetensors_open(make_file(header, 10, 0));
    float x[2];
    const SafeTensor *a = safetensors_find(st, "a");
    safetensor_floats(a, safetensor_at(st, a, 0, 2), 2, x);
    CHECK(x[0] == float_of_f16(0x0100) && x[1] == float_of_f16(0x0302));
    const SafeTensor *b = safetensors_find(st, "b");
    safetensor_floats(b, safetensor_at(st, b, 0, 1), 1, x);
    CHECK(x[0] == float_of_bf16(0x0504));
    CHECK(!safetensor_is_float(safetensors_find(st, "mask")));
    CHECK(safetensors_find(st, "scalar")->count == 1 && safetensors_find(st, "none")->count == 0);
    safetensors_close(st);
}

TEST(written, "what is written is read back: names, shapes, bits, and 8-byte alignment") {
    char path[256];
    strcpy(path, in_folder("written.safetensors"));
    SafeTensorSpec specs[] = {{"first", 2, {3, 2}}, {"second.with.dots", 1, {5, 0}}};
    float values[11];
    for (int i = 0; i < 11; i++) values[i] = (float)i / 3 - 1;
    Output *output = output_begin(path, OUTPUT_FILE);
    OutputFile *file = output_open(output, NULL);
    safetensors_write_header(file, specs, 2);
    output_write(file, values, sizeof values);
    output_close(file);
    output_commit(output);

    SafeTensors *st = safetensors_open(path);
    CHECK(safetensors_count(st) == 2 && safetensors_get(st, 0)->begin % 8 == 0);
    float x[6];
    const SafeTensor *first = safetensors_find(st, "first");
    CHECK(first->dims == 2 && first->shape[0] == 3 && first->shape[1] == 2);
    safetensor_floats(first, safetensor_at(st, first, 0, 6), 6, x);
    CHECK(memcmp(x, values, sizeof x) == 0);
    const SafeTensor *second = safetensors_find(st, "second.with.dots");
    CHECK(second->dims == 1 && second->shape[0] == 5);
    safetensor_floats(second, safetensor_at(st, second, 2, 3), 3, x);
    CHECK(memcmp(x, values + 8, 3 * sizeof(float)) == 0);
    safetensors_close(st);
}

#define F32(name, shape, offsets)                                                                  \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

TEST(lies, "every lie in a header is exit 3 and one line that names it") {
    static const struct {
        const char *header;
        size_t data_bytes;
        long lie;
        const char *text;
    } cases[] = {
        {"", 0, 0, "does not start with {"},
        {"[]", 0, 0, "does not start with {"},
        {" {}", 0, 0, "does not start with {"},
        {"{}", 0, 1, "gives its header's size as 3 bytes, but 2 follow"},
        {"{}", 0, 200000000, "at most 100000000"},
        {"{}", 0, -3, "at most 100000000"}, // 2^64 - 1
        {"{}", 5, 0, "5 bytes follow after the last tensor"},
        {"{\"a\":1}", 0, 0, "\"a\": is a number, expected an object"},
        {"{\"a\":{}}", 0, 0, "dtype is nothing"},
        {"{\"a\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, 0,
         "unknown dtype \"F33\""},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, 0, "shape is nothing"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, 0, "data_offsets is nothing"},
        {"{" F32("a", "[1]", "[0]") "}", 4, 0, "expected an array of two numbers"},
        {"{" F32("a", "[1.5]", "[0,4]") "}", 4, 0, "shape holds a number, expected whole numbers"},
        {"{" F32("a", "[-1]", "[0,4]") "}", 4, 0, "expected whole numbers"},
        {"{" F32("a", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, 0, "has 9 dimensions"},
        {"{" F32("a", "[4294967296,4294967296]", "[0,0]") "}", 0, 0, "more elements than 64 bits"},
        {"{" F32("a", "[9223372036854775807]", "[0,0]") "}", 0, 0, "more bytes than 64 bits"},
        {"{" F32("a", "[2]", "[0,4]") "}", 4, 0, "span 4 bytes, but dtype and shape need 8"},
        {"{" F32("a", "[1]", "[0,8]") "}", 8, 0, "span 8 bytes, but dtype and shape need 4"},
        {"{" F32("a", "[1]", "[4,0]") "}", 4, 0, "the first the smaller"},
        {"{" F32("a", "[1]", "[-4,0]") "}", 4, 0, "the first the smaller"},
        {"{" F32("a", "[2]", "[0,8]") "}", 7, 0, "the file has only 7: cut?"},
        {"{" F32("a", "[1]", "[4,8]") "}", 8, 0, "begins at byte 4 of the data"},
        {"{" F32("a", "[2]", "[0,8]") "," F32("b", "[1]", "[4,8]") "}", 8, 0,
         "\"b\": begins at byte 4"},
        {"{" F32("a", "[1]", "[0,4]") "," F32("b", "[1]", "[8,12]") "}", 12, 0,
         "one before ends at 4"},
        {"{" F32("a", "[1]", "[0,4]") "," F32("b", "[1]", "[0,4]") "}", 4, 0, "begins at byte 0"},
        {"{" F32("a", "[1]", "[0,4]") "," F32("a", "[1]", "[4,8]") "}", 8, 0,
         "two members called \"a\""},
        {"{\"__metadata__\":[]}", 0, 0, "__metadata__ is an array"},
        {"{\"__metadata__\":{\"a\":1}}", 0, 0, "member \"a\" is a number, expected a string"},
        {"{\"a\\nb\":1}", 0, 0, "\"a?b\": is a number"},
        {"{\"a\":", 0, 0, "the header is not JSON: line 1, column 6"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = make_file(cases[i].header, cases[i].data_bytes, cases[i].lie);
        CHECK_FATAL(EXIT_INPUT, cases[i].text, safetensors_open(path));
    }
}

/* The bytes of a file; *bytes is how many. */
static unsigned char *load(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    unsigned char *data = malloc(1 << 20);
    *bytes = fread(data, 1, 1 << 20, file);
    fclose(file);
    return data;
}

TEST(not_safetensors, "an empty file, a web page, and a good file cut or lengthened by 2 bytes") {
    const char *path = write_bytes("not.safetensors", "", 0);
    CHECK_FATAL(EXIT_INPUT, "0 bytes are too few", safetensors_open(path));
    const char *page = "<!DOCTYPE html><html><body>404: Not found</body></html>";
    write_string("not.safetensors", page);
    CHECK_FATAL(EXIT_INPUT, "not a safetensors file", safetensors_open(path));
    size_t bytes;
    unsigned char *data = load(tiny, &bytes);
    write_bytes("not.safetensors", data, bytes - 2);
    CHECK_FATAL(EXIT_INPUT, "cut?", safetensors_open(path));
    write_bytes("not.safetensors", data, bytes + 2);
    CHECK_FATAL(EXIT_INPUT, "2 bytes follow", safetensors_open(path));
    free(data);
}

/* Opens and reads a file in a process of its own. Returns its exit code, or 128 + signal. */
static int try_file(const char *path) {
    pid_t child = fork();
    if (child == 0) {
        dup2(open("/dev/null", O_WRONLY), 2);
        SafeTensors *st = safetensors_open(path);
        float x[64];
        for (int i = 0; i < safetensors_count(st); i++) {
            const SafeTensor *tensor = safetensors_get(st, i);
            if (!safetensor_is_float(tensor) || tensor->count == 0) continue;
            size_t n = tensor->count < 64 ? tensor->count : 64;
            safetensor_floats(tensor, safetensor_at(st, tensor, tensor->count - n, n), n, x);
        }
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(mutations, "300 damaged headers are read or refused with exit 3, never worse") {
    static const char alphabet[] = "0123456789{}[],:\"-\\ eF";
    size_t bytes;
    unsigned char *data = load(tiny, &bytes);
    fflush(stdout);
    for (uint64_t round = 0; round < 300; round++) {
        unsigned char *copy = malloc(bytes);
        memcpy(copy, data, bytes);
        uint32_t random[4];
        philox(random, 7, round, 0);
        for (uint32_t n = random[0] % 3 + 1; n > 0; n--) {
            philox(random, 7, round, n);
            size_t at = random[0] % 2600;
            copy[at] = at < 8 ? (unsigned char)random[1] : (unsigned char)alphabet[random[1] % 22];
        }
        const char *path = write_bytes("mutated.safetensors", copy, bytes);
        free(copy);
        int code = try_file(path);
        CHECK(code == 0 || code == EXIT_INPUT, "round %llu: exit %d", (unsigned long long)round,
              code);
    }
    free(data);
}

int main(int argc, char **argv) { return test_main(argc, argv); }

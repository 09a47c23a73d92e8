/* seeds.c: `fuzz_seeds [--make DIRECTORY]`. Runs every reader on small files that are right, and on some
 * thousands of wrong ones made of them: cut, longer, with changed bits, bytes, numbers and pieces. A test of
 * `make test`, with any compiler; --make writes the right ones to DIRECTORY/READER/, where libFuzzer starts. */
#include "../test.h"

#include "readers.h"
#include "seed_files.h"

#include <sys/stat.h>

enum { MUTANTS = 400, ROOM = 1 << 16 };

static unsigned chance(unsigned *state, unsigned below) {
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* One small change of the bytes. */
static size_t mutate(uint8_t *data, size_t size, unsigned *state) {
    static const char *const tokens[] = {"-1", "0",    "1e9",    "18446744073709551615", "{", "]",
                                         "\"", "null", "\\u0000"};
    size_t at = size ? chance(state, (unsigned)size) : 0;
    switch (size ? chance(state, 7) : 6) {
    case 0:
        return at; // cut
    case 1:
        return data[at] ^= (uint8_t)(1 << chance(state, 8)), size;
    case 2:
        return data[at] = (uint8_t)chance(state, 256), size;
    case 3: { // a large or small number
        static const uint8_t ends[][4] = {{0, 0, 0, 0}, {255, 255, 255, 255}, {255, 255, 255, 127}, {0, 0, 0, 128}};
        size_t n = size - at < 4 ? size - at : 4;
        memcpy(data + at, ends[chance(state, 4)], n);
        return size;
    }
    case 4: { // a piece goes
        size_t n = chance(state, (unsigned)(size - at) + 1);
        memmove(data + at, data + at + n, size - at - n);
        return size - n;
    }
    case 5: { // a piece stands twice
        size_t n = chance(state, (unsigned)(size - at) + 1);
        if (size + n > ROOM) return size;
        memmove(data + at + n, data + at, size - at);
        return size + n;
    }
    default: { // a word comes in
        const char *word = tokens[chance(state, 9)];
        size_t n = strlen(word);
        if (size + n > ROOM) return size;
        memmove(data + at + n, data + at, size - at);
        memcpy(data + at, word, n);
        return size + n;
    }
    }
}

static void run_seeds(const char *name, const Reader *reader) {
    static uint8_t data[ROOM];
    unsigned state = 1;
    int count = 0;
    for (int i = 0; i < seed_count; i++) {
        if (strcmp(seeds[i].reader, name) != 0) continue;
        size_t whole = seeds[i].make(data), size;
        int code = reader_run(reader, data, whole);
        CHECK(code == 0, "%s: seed %d ends with %d", name, i, code);
        count++;
        for (int k = 0; k < MUTANTS; k++) {
            size = seeds[i].make(data);
            for (unsigned changes = 1 + chance(&state, 3); changes > 0; changes--)
                size = mutate(data, size, &state);
            reader_run(reader, data, size);
        }
    }
    CHECK(count > 0, "%s has no seed", name);
}

TEST(seeds, "each reader takes files that are right, and refuses wrong ones with its own exit code") {
    for (int i = 0; i < reader_count; i++) run_seeds(readers[i].name, &readers[i]);
}

static int make_seeds(const char *folder) {
    static uint8_t data[ROOM];
    char path[512];
    mkdir(folder, 0777);
    for (int i = 0; i < seed_count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, seeds[i].reader);
        mkdir(path, 0777);
        snprintf(path, sizeof path, "%s/%s/seed%d", folder, seeds[i].reader, i);
        FILE *file = fopen(path, "wb");
        size_t size = seeds[i].make(data);
        if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) return 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    test_may_leak = true; // a reader that refuses a file is left by longjmp, with what it holds
    if (argc == 3 && strcmp(argv[1], "--make") == 0) return make_seeds(argv[2]);
    return test_main(argc, argv);
}

/* test_stream.c: many files as one stream: which files, in which order, and that large or many ones
 * cost neither memory nor descriptors. One file: test_shard.c. */
#include "files.h"

#include "../llmc/base/error.h"
#include "../llmc/data/stream.h"

#include <fcntl.h>

static const int32_t ten[10] = {5, 50256, 0, 1, 2, 3, 4, 65535, 7, 8};

// ---- tokens -----------------------------------------------------------------------------------

TEST(reads, "any range of a stream of several files, empty ones among them, is that of one array") {
    const int sizes[6] = {3, 0, 1, 0, 6, 0};
    const char *paths[6];
    for (int s = 0, at = 0; s < 6; at += sizes[s++]) {
        char name[16];
        snprintf(name, sizeof name, "part_%d.bin", s);
        paths[s] = write_llmc(name, ten + at, (size_t)sizes[s]);
    }
    Stream *stream = stream_open(paths, 6, STREAM_ALL), *slice = stream_slice(stream, 2, 7);
    Stream *inner = stream_slice(slice, 1, 5);
    stream_close(stream); // its slices live on
    CHECK(stream_length(slice) == 7 && stream_length(inner) == 5);
    for (size_t first = 0; first <= 7; first++)
        for (size_t count = 0; first + count <= 7; count++) {
            int32_t out[7];
            stream_read(slice, first, count, out);
            CHECK(memcmp(out, ten + 2 + first, count * sizeof *out) == 0);
            if (first + count > 5) continue;
            stream_read(inner, first, count, out);
            CHECK(memcmp(out, ten + 3 + first, count * sizeof *out) == 0);
        }
    stream_close(slice);
    stream_close(inner);
}

TEST(largest, "the largest token of a stream may be in any of its files") {
    int32_t large[3] = {1, 999, 2}, small[3] = {1, 7, 2};
    for (int at = 0; at < 3; at++) {
        const char *paths[3];
        for (int i = 0; i < 3; i++) {
            char name[32];
            snprintf(name, sizeof name, "largest_%d_%d.bin", at, i);
            paths[i] = write_llmc(name, i == at ? large : small, 3);
        }
        Stream *stream = stream_open(paths, 3, STREAM_ALL);
        CHECK(stream_largest(stream) == 999, "in file %d it is %d", at, (int)stream_largest(stream));
        stream_close(stream);
    }
}

TEST(identity, "a stream's identity depends on its files' kind and every token and on the range, "
               "not on names") {
    int32_t tokens[100];
    for (int i = 0; i < 100; i++) tokens[i] = i;
    Stream *streams[8];
    streams[0] = open_one(write_llmc("identity_a.bin", tokens, 100));
    streams[1] = open_one(write_llmc("identity_b.bin", tokens, 100));
    streams[2] = open_one(write_llmc("identity_c.bin", tokens, 99));
    tokens[99]++;
    streams[3] = open_one(write_llmc("identity_d.bin", tokens, 100));
    tokens[99]--, tokens[0]++;
    streams[4] = open_one(write_llmc("identity_e.bin", tokens, 100));
    tokens[0]--;
    streams[5] = open_one(write_npy("identity_f.npy", 1, "<i4", tokens, 100));
    streams[6] = stream_slice(streams[0], 0, 99);
    tokens[50]++;
    streams[7] = open_one(write_llmc("identity_g.bin", tokens, 100));
    CHECK(stream_identity(streams[0]) == stream_identity(streams[1]));
    for (int i = 2; i < 8; i++)
        for (int k = 1; k < i; k++)
            CHECK(stream_identity(streams[i]) != stream_identity(streams[k]), "%d %d", i, k);
    Stream *first = stream_slice(streams[0], 0, 50), *second = stream_slice(streams[0], 50, 50);
    CHECK(stream_identity(first) != stream_identity(second), "slices of one length");
    stream_close(first), stream_close(second);
    for (int i = 0; i < 8; i++) stream_close(streams[i]);
}

// ---- which files ------------------------------------------------------------------------------

/* Checks that a part of some paths is exactly these files, recognised by their first token. */
static void check_part(const char *const *paths, int count, StreamPart part, const char *expected) {
    char found[32] = "";
    Stream *stream = stream_open(paths, count, part);
    for (uint64_t i = 0; i < stream_length(stream); i++) {
        int32_t token;
        stream_read(stream, i, 1, &token);
        found[i] = (char)token;
    }
    CHECK(strcmp(found, expected) == 0, "part %d of %s is %s, not %s", part, paths[0], found,
          expected);
    stream_close(stream);
}

/* A folder with files of one token each: a letter that stands for the file. */
static const char *folder_of(const char *name, const char *const *files, const char *letters) {
    mkdir(in_folder(name), 0755);
    for (int i = 0; letters[i]; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", name, files[i]);
        write_llmc(path, (int32_t[]){letters[i]}, 1);
    }
    return in_folder(name);
}

TEST(parts,
     "the words train, val, valid, validation and test in names choose the parts of a folder") {
    const char *names[][5] = {
        {"fineweb_train_000002.bin", "fineweb_train_000001.bin", "fineweb_val_000000.bin"},
        {"train.bin", "val.bin", "all.bin"},
        {"tiny_shakespeare_train.bin", "tiny_shakespeare_val.bin"},
        {"a.bin", "b.bin", "b-VAL.bin", "test.bin"},
        {"strain.bin", "interval.bin", "validity.bin"},
        {"wiki.train.bin", "wiki.valid.bin", "wiki.test.bin", "x_validation2.bin"},
    };
    const char *letters[] = {"ABC", "ABC", "AB", "ABCD", "ABC", "ABCD"};
    const char *all[] = {"BAC", "CAB", "AB", "ACBD", "BAC", "CABD"};
    const char *train[] = {"BA", "A", "A", "AB", "BAC", "A"};
    const char *val[] = {"C", "B", "B", "C", "BAC", "BD"};
    for (int i = 0; i < 6; i++) {
        char name[64], glob[300];
        snprintf(name, sizeof name, "folder%d", i);
        const char *folder = folder_of(name, names[i], letters[i]);
        write_string(strcat(name, "/.hidden.bin"), "no data");
        snprintf(glob, sizeof glob, "%s/*.[bc]in", folder);
        const char *paths[2] = {folder, glob};
        for (int p = 0; p < 2; p++) {
            CHECK((stream_names(&paths[p], 1).val > 0) == (i != 4), "folder %d", i);
            check_part(&paths[p], 1, STREAM_TRAIN, train[i]);
            check_part(&paths[p], 1, STREAM_VAL, val[i]);
        }
        check_part(paths, 1, STREAM_ALL, all[i]);
    }
}

TEST(held_out, "dev and eval are validation, test and heldout are tests, and no file with such a name is trained on") {
    const char *names[][4] = {
        {"a.bin", "dev.bin"},          {"a.bin", "x-eval-2.bin"},      {"train.bin", "test.bin"},
        {"a.bin", "a.heldout.bin"},    {"a.bin", "train_val_b.bin"},   {"device.bin", "contest.bin"},
        {"a.bin", "b_test_train.bin"},
    };
    const char *train[] = {"A", "A", "A", "A", "A", "BA", "A"}; // in name order: contest, device
    const char *val[] = {"B", "B", "AB", "AB", "B", "BA", "AB"}, *test[] = {"AB", "AB", "B", "B", "AB", "BA", "B"};
    for (int i = 0; i < 7; i++) {
        char name[64];
        snprintf(name, sizeof name, "held%d", i);
        const char *folder = folder_of(name, names[i], "AB");
        check_part(&folder, 1, STREAM_TRAIN, train[i]);
        if (i != 2) check_part(&folder, 1, STREAM_VAL, val[i]);
        if (i != 2) check_part(&folder, 1, STREAM_TEST, test[i]);
    }
    const char *folder = in_folder("held2");
    check_part(&folder, 1, STREAM_TEST, "B");
    StreamNames found = stream_names(&folder, 1);
    CHECK(found.train == 1 && found.val == 0 && found.test == 1 && found.others == 0);
}

TEST(folders, "folders that are named for parts are looked into where there is nothing beside them; those that the "
              "user names say nothing") {
    mkdir(in_folder("test_set"), 0755);
    folder_of("test_set/train", (const char *[]){"x.bin"}, "T");
    folder_of("test_set/dev", (const char *[]){"x.bin"}, "D");
    folder_of("test_set/other", (const char *[]){"x.bin"}, "O");
    const char *folder = in_folder("test_set");
    check_part(&folder, 1, STREAM_ALL, "DT");
    check_part(&folder, 1, STREAM_TRAIN, "T");
    check_part(&folder, 1, STREAM_VAL, "D");
    char glob[300];
    snprintf(glob, sizeof glob, "%s/*/x.bin", folder);
    const char *pattern = glob;
    check_part(&pattern, 1, STREAM_ALL, "DOT");
    check_part(&pattern, 1, STREAM_TRAIN, "T");
    check_part(&pattern, 1, STREAM_VAL, "D");
    write_llmc("test_set/beside.bin", (int32_t[]){'B'}, 1);
    check_part(&folder, 1, STREAM_TRAIN, "B");
}

TEST(entries,
     "entries keep their order; a file named by itself is training data whatever its name") {
    const char *folder = folder_of("mixed", (const char *[]){"train.bin", "val.bin"}, "TV");
    const char *file = write_llmc("own_val.bin", (int32_t[]){'O'}, 1);
    const char *paths[] = {file, folder};
    check_part(paths, 2, STREAM_ALL, "OTV");
    check_part(paths, 2, STREAM_TRAIN, "OT");
    check_part(paths, 2, STREAM_VAL, "V");
    CHECK(stream_names(paths, 2).val == 1 && stream_names(paths, 1).val == 0);
    check_part(paths, 1, STREAM_VAL, "O");
}

TEST(names, "a stream names its content") {
    const char *folder = folder_of("named", (const char *[]){"a.bin", "b.bin"}, "AB");
    char expected[300];
    Stream *stream = open_one(folder);
    snprintf(expected, sizeof expected, "2 files in %s", folder);
    CHECK(strcmp(stream_name(stream), expected) == 0, "%s", stream_name(stream));
    stream_close(stream);
    const char *file = write_string("alone.txt", "hello");
    stream = open_one(file);
    CHECK(strcmp(stream_name(stream), file) == 0);
    stream_close(stream);
    stream = stream_of_text((const unsigned char *)"hello", 5, "the built-in text");
    CHECK(strcmp(stream_name(stream), "the built-in text") == 0 && stream_is_bytes(stream));
    stream_close(stream);
}

TEST(no_files,
     "missing files, empty folders and globs without a match are named, with a neighbour") {
    write_string("shakespeare.txt", "To be");
    mkdir(in_folder("empty"), 0755);
    mkdir(in_folder("empty/sub.bin"), 0755);
    write_string("empty/notes.md", "nothing");
    mkdir(in_folder("held"), 0755);
    const char *held = folder_of("held", (const char *[]){"val.bin"}, "V");
    CHECK_REFUSED("shakespaere.txt: no such file; did you mean", in_folder("shakespaere.txt"));
    CHECK_REFUSED("shakespeare.txt?", in_folder("shakespaere.txt"));
    CHECK_REFUSED("quite_another_name: no such file; check", in_folder("quite_another_name"));
    CHECK_REFUSED("no such file: there is no directory", in_folder("nowhere/a.bin"));
    CHECK_REFUSED("empty: directory holds no data file (.bin, .npy or .txt)", in_folder("empty"));
    CHECK_REFUSED("*.zip: no file matches", in_folder("*.zip"));
    CHECK_REFUSED("no such file", "");
    CHECK_FATAL(EXIT_INPUT, "none to train on", stream_open(&held, 1, STREAM_TRAIN));
}

TEST(unreadable,
     "pipes, devices and files without permission are refused, and nothing waits for them") {
    if (mkfifo(in_folder("pipe"), 0600) != 0) abort();
    CHECK_REFUSED("pipe: is a pipe or device", in_folder("pipe"));
    CHECK_REFUSED("/dev/null: is a pipe or device", "/dev/null");
    const char *path = write_string("secret.txt", "secret");
    chmod(path, 0);
    error_set_end(_exit); // a leak check at exit fails as another user
    CHECK_FATAL(EXIT_INPUT, "secret.txt: cannot be read: ", // root may read all: be somebody else
                geteuid() == 0 && seteuid(65534) != 0 ? _exit(1) : (void)open_one(path));
    error_set_end(NULL);
}

TEST(mixed_kinds, "text and tokens in one stream are refused, one file of each named") {
    const char *paths[] = {write_string("words.txt", "some words"), write_llmc("ids.bin", ten, 10)};
    CHECK_FATAL(EXIT_INPUT, "ids.bin: kind is llm.c token shard, but",
                stream_open(paths, 2, STREAM_ALL));
    CHECK_FATAL(EXIT_INPUT, "words.txt is text", stream_open(paths, 2, STREAM_ALL));
}

// ---- large and many ---------------------------------------------------------------------------

TEST(large_shard, "an llm.c shard over 2 GB is read to its last token") {
    unsigned char header[1024];
    int32_t count = 1200000000, out[2];
    llmc_header(header, 20240520, 1, count);
    uint64_t size = 1024 + 2 * (uint64_t)count;
    const char *path = write_sparse("large.bin", header, 1024, size);
    if (!path) SKIP("this file system has no sparse files of 2.4 GB");
    int fd = open(path, O_WRONLY);
    if (pwrite(fd, "\x34\x12", 2, (off_t)size - 2) != 2) abort();
    close(fd);
    Stream *stream = open_one(path);
    CHECK(stream_length(stream) == (uint64_t)count);
    stream_read(stream, (uint64_t)count - 2, 2, out);
    CHECK(out[0] == 0 && out[1] == 0x1234);
    stream_close(stream);
    unlink(path);
}

/* Megabytes of this process that are resident, or -1. */
static double resident(void) {
    long pages = -1;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*d %ld", &pages) != 1) pages = -1;
    if (file) fclose(file);
    return pages < 0 ? -1 : (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

TEST(flat_memory,
     "two passes over a shard of 200 MB, in order and across, keep resident memory flat") {
    if (resident() < 0) SKIP("there is no /proc/self/statm");
    unsigned char header[1024];
    int32_t count = 100000000;
    llmc_header(header, 20240520, 1, count);
    const char *path = write_sparse("flat.bin", header, 1024, 1024 + 2 * (uint64_t)count);
    if (!path) SKIP("this file system has no sparse files");
    static int32_t out[10000];
    Stream *stream = open_one(path);
    stream_read(stream, 0, 10000, out);
    double before = resident(), most = before;
    for (uint64_t pass = 0; pass < 2; pass++)
        for (uint64_t i = 0; i < 10000; i++) {
            uint64_t block = pass ? i * 7919 % 10000 : i;
            stream_read(stream, block * 10000, 10000, out);
            if (i % 50 == 0 && resident() > most) most = resident();
        }
    CHECK(most - before < 8, "grew by %.1f MB", most - before);
    stream_close(stream);
    unlink(path);
}

TEST(many_files, "more files than descriptors make one stream") {
    mkdir(in_folder("many"), 0755);
    for (int i = 0; i < 300; i++) {
        char path[32];
        snprintf(path, sizeof path, "many/%04d.bin", i);
        write_llmc(path, (int32_t[]){i}, 1);
    }
    int before = dup(0), after;
    Stream *stream = open_one(in_folder("many"));
    after = dup(0);
    CHECK(after == before + 1, "descriptors are left open");
    close(before), close(after);
    static int32_t out[300];
    stream_read(stream, 0, 300, out);
    CHECK(stream_files(stream) == 300);
    for (int i = 0; i < 300; i++) CHECK(out[i] == i);
    stream_close(stream);
}

TEST(cut_while_open, "a file that is cut while it is mapped is one line, not a crash") {
    static int32_t tokens[8192], out[8192];
    Stream *stream = open_one(write_llmc("cut.bin", tokens, 8192));
    stream_read(stream, 0, 8192, out);
    CHECK_FATAL(EXIT_INPUT, "cut.bin: byte ",
                (truncate(in_folder("cut.bin"), 5000), stream_read(stream, 0, 8192, out)));
    stream_close(stream);
}

int main(int argc, char **argv) { return test_main(argc, argv); }

/* test_file_checksum.c: the sum that guards a checkpoint's files, written and read. */
#include "../llmc/files/file_checksum.h"

#include "faults.h"
#include "files.h"
#include "test.h"

#include <stdlib.h>

enum { MORE = 77 };

/* Two pieces and a little; every byte has a value that tells its place. */
static unsigned char *data;
static const size_t all = 2 * (size_t)FILE_CHECKSUM_PIECE + MORE;

static void setup(void) {
    if (data) return;
    data = malloc(all);
    for (size_t i = 0; i < all; i++) data[i] = (unsigned char)(i * 0x9E3779B97F4A7C15ULL >> 56);
}

static FileChecksum added(size_t bytes, size_t piece) {
    FileChecksummer summer;
    file_checksum_begin(&summer);
    for (size_t done = 0; done < bytes; done += piece)
        file_checksum_add(&summer, data + done, bytes - done < piece ? bytes - done : piece);
    return file_checksum_value(&summer);
}

static const char *stored(size_t bytes) {
    const char *path = in_folder("summed");
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0) abort();
    return path;
}

TEST(definition,
     "the XXH64 of the XXH64s of pieces of 64 MiB, as little-endian numbers of 8 bytes") {
    setup();
    unsigned char sums[24];
    size_t first[] = {0, FILE_CHECKSUM_PIECE, 2 * (size_t)FILE_CHECKSUM_PIECE},
           bytes[] = {FILE_CHECKSUM_PIECE, FILE_CHECKSUM_PIECE, MORE};
    for (int i = 0; i < 24; i++)
        sums[i] = (unsigned char)(checksum_of(data + first[i / 8], bytes[i / 8]) >> 8 * (i % 8));
    FileChecksum sum = added(all, all);
    CHECK(sum.bytes == all && sum.sum == checksum_of(sums, 24));
    CHECK(added(FILE_CHECKSUM_PIECE, 1 << 20).sum ==
          checksum_of(sums, 8)); // no empty piece follows
    CHECK(added(0, 1).sum == checksum_of("", 0) && added(0, 1).bytes == 0);
}

TEST(ways, "a file's sum is that of its bytes as they were written, however they are cut") {
    setup();
    const size_t sizes[] = {
        0, 1, 1000, FILE_CHECKSUM_PIECE - 1, FILE_CHECKSUM_PIECE, FILE_CHECKSUM_PIECE + 1, all};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        FileChecksum read = {1, 1}, written = added(sizes[i], all);
        CHECK(file_checksum_read(stored(sizes[i]), &read) == 0);
        CHECK(read.bytes == sizes[i] && read.sum == written.sum, "%zu bytes", sizes[i]);
        CHECK(added(sizes[i], (1 << 20) + 3).sum == written.sum, "%zu bytes", sizes[i]);
    }
}

TEST(order, "pieces that changed places are seen") {
    setup();
    FileChecksum before = added(2 * (size_t)FILE_CHECKSUM_PIECE, FILE_CHECKSUM_PIECE), after;
    FileChecksummer summer;
    file_checksum_begin(&summer);
    file_checksum_add(&summer, data + FILE_CHECKSUM_PIECE, FILE_CHECKSUM_PIECE);
    file_checksum_add(&summer, data, FILE_CHECKSUM_PIECE);
    after = file_checksum_value(&summer);
    CHECK(before.bytes == after.bytes && before.sum != after.sum);
}

TEST(unreadable, "what cannot be read is an errno; an interrupted call is repeated") {
    setup();
    FileChecksum sum;
    CHECK(file_checksum_read(in_folder("absent"), &sum) == ENOENT);
    mkdir(in_folder("directory"), 0777);
    CHECK(file_checksum_read(in_folder("directory"), &sum) == EISDIR);
    if (mkfifo(in_folder("pipe"), 0666) != 0) abort();
    CHECK(file_checksum_read(in_folder("pipe"), &sum) == ESPIPE);
    const char *path = stored(3 << 20);
    for (int call = 2; call <= 5; call++) { // 1 opens; three read 1 MB each, one finds the end
        faults_arm(call, FAULT_IO);
        CHECK(file_checksum_read(path, &sum) == EIO, "call %d", call);
        faults_arm(call, FAULT_SIGNAL);
        CHECK(file_checksum_read(path, &sum) == 0 && sum.sum == added(3 << 20, all).sum, "call %d",
              call);
    }
    faults_arm(0, FAULT_NONE);
}

int main(int argc, char **argv) { return test_main(argc, argv); }

/* shard_scan.c: see shard_scan.h. The tokens are cut into pieces of 8 MiB, for threads to share; the checksum is
 * the XXH64 of the pieces' XXH64s, so it does not depend on their number. */
#include "shard_scan.h"

#include "../base/activity.h"
#include "../base/error.h"
#include "../base/memory.h"
#include "../base/parallel.h"
#include "../files/checksum.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 8 << 20, READ_BYTES = 1 << 18 }; // multiples of every token's width

typedef struct {
    Checksum sum;
    uint64_t largest;
    uint64_t bytes;
    int failure; // an errno
} Piece;

/* The largest token of some bytes of a shard. */
static uint64_t largest_of(const Shard *shard, const unsigned char *data, size_t bytes) {
    // Values are read as unsigned, so a negative id is larger than every valid one.
    uint64_t largest = 0;
    switch (shard->type) {
    case TOKEN_BYTE:
        for (size_t i = 0; i < bytes; i++) largest = data[i] > largest ? data[i] : largest;
        break;
    case TOKEN_U16:
        for (size_t i = 0; i + 2 <= bytes; i += 2)
            largest = load_u16(data + i) > largest ? load_u16(data + i) : largest;
        break;
    case TOKEN_I32:
    case TOKEN_U32:
        for (size_t i = 0; i + 4 <= bytes; i += 4)
            largest = load_u32(data + i) > largest ? load_u32(data + i) : largest;
        break;
    case TOKEN_I64:
        for (size_t i = 0; i + 8 <= bytes; i += 8)
            largest = load_u64(data + i) > largest ? load_u64(data + i) : largest;
        break;
    }
    return largest;
}

/* Adds bytes to a piece: checksum, count, largest token. */
static void add(Piece *piece, const Shard *shard, const unsigned char *data, size_t bytes) {
    uint64_t largest = largest_of(shard, data, bytes);
    checksum_add(&piece->sum, data, bytes);
    piece->bytes += bytes;
    if (largest > piece->largest) piece->largest = largest;
    activity_tick();
}

/* Reads `bytes` bytes, or as many as there are. Returns how many, or -1 with errno. */
static ssize_t read_fully(int file, unsigned char *out, size_t bytes, off_t first) {
    size_t done = 0;
    while (done < bytes) {
        // pread takes a position of its own, so all threads can share one descriptor.
        ssize_t n = pread(file, out + done, bytes - done, first + (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (n == 0) break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

/* Bytes first .. first+bytes of the tokens. */
static void scan_piece(Piece *piece, const Shard *shard, int file, uint64_t first, size_t bytes) {
    checksum_begin(&piece->sum);
    if (!shard->file) {
        add(piece, shard, shard->memory + first, bytes);
        return;
    }
    // The file is read, not mapped: file_at must not be called by two threads at once.
    unsigned char *buffer = memory_new(READ_BYTES, 1, "a buffer for reading");
    while (piece->bytes < bytes) {
        size_t left = bytes - (size_t)piece->bytes, part = left < READ_BYTES ? left : READ_BYTES;
        ssize_t n = read_fully(file, buffer, part, (off_t)(shard->offset + first + piece->bytes));
        if (n < 0) piece->failure = errno;
        if (n > 0) add(piece, shard, buffer, (size_t)n);
        // A part that is short means that the file ends early; add_up reports how many bytes are missing.
        if (n < (ssize_t)part) break;
    }
    free(buffer);
}

/* Adds the pieces up; ends the program where one could not be read. */
static ShardScan add_up(const Shard *shard, const Piece *pieces, size_t count, uint64_t bytes) {
    ShardScan scan = {0, 0};
    Checksum all;
    checksum_begin(&all);
    for (size_t i = 0; i < count; i++) {
        // The pieces' checksums are added in the order of the file, as 8 little-endian bytes each.
        unsigned char sum[8];
        if (pieces[i].failure)
            fatal(EXIT_INPUT, "%s: cannot be read: %s", shard->name, strerror(pieces[i].failure));
        for (int b = 0; b < 8; b++) sum[b] = (unsigned char)(checksum_value(&pieces[i].sum) >> 8 * b);
        checksum_add(&all, sum, sizeof sum);
        bytes -= pieces[i].bytes;
        if (pieces[i].largest > scan.largest) scan.largest = pieces[i].largest;
    }
    // fewer bytes than when the file was opened
    if (bytes > 0)
        fatal(EXIT_INPUT,
              "%s: %" PRIu64 " bytes of its end are gone: the file was cut while in use; leave data in place",
              shard->name, bytes);
    scan.checksum = checksum_value(&all);
    return scan;
}

ShardScan shard_scan(const Shard *shard) {
    uint64_t bytes = shard->tokens * shard_token_bytes(shard);
    size_t count = (size_t)((bytes + PIECE - 1) / PIECE);
    // A mapped file holds no descriptor, so it is opened once more. O_NONBLOCK: if a pipe has that name by then, open
    // returns at once instead of waiting for a writer.
    int file = shard->file ? open(shard->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (shard->file && file < 0)
        fatal(EXIT_INPUT, "%s: cannot be read: %s; check its path and permissions", shard->name, strerror(errno));
    Piece *pieces = memory_new(count, sizeof *pieces, "the checksums of a file's pieces");
    PARALLEL_EACH_IF(count > 1)
    for (size_t i = 0; i < count; i++) {
        uint64_t first = (uint64_t)i * PIECE;
        scan_piece(&pieces[i], shard, file, first, bytes - first < PIECE ? (size_t)(bytes - first) : PIECE);
    }
    if (file >= 0) close(file);
    ShardScan scan = add_up(shard, pieces, count, bytes);
    free(pieces);
    return scan;
}

/* file_checksum.c: the checksum of a file in pieces of 64 MiB. All threads read at once, each a piece; while a file
 * is written, its pieces end one after another. Both ways give the same value. */
#include "file_checksum.h"

#include "../base/activity.h"
#include "../base/memory.h"
#include "../base/parallel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// bytes of one read: a full piece of 64 MiB takes 64 of them, each with a sign of activity for the watchdog
enum { READ_BYTES = 1 << 20 };

/* Adds a complete piece's checksum, as 8 bytes little-endian, to that of the pieces. */
static void add_piece(Checksum *pieces, uint64_t sum) {
    // byte by byte, the lowest first: the value must not depend on the machine's byte order
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(sum >> 8 * i);
    checksum_add(pieces, bytes, sizeof bytes);
}

void file_checksum_begin(FileChecksummer *summer) {
    checksum_begin(&summer->piece);
    checksum_begin(&summer->pieces);
    summer->bytes = 0;
}

void file_checksum_add(FileChecksummer *summer, const void *data, size_t bytes) {
    const unsigned char *at = data;
    summer->bytes += bytes;
    for (size_t n; bytes > 0; at += n, bytes -= n) {
        // a call may end within a piece or fill several: a full one adds its checksum, and the next piece begins
        size_t room = FILE_CHECKSUM_PIECE - (size_t)summer->piece.bytes;
        n = bytes < room ? bytes : room;
        checksum_add(&summer->piece, at, n);
        // fewer bytes than the piece still takes: it stays open for the next call
        if (n < room) continue;
        add_piece(&summer->pieces, checksum_value(&summer->piece));
        checksum_begin(&summer->piece);
    }
}

FileChecksum file_checksum_value(const FileChecksummer *summer) {
    // A copy, so that more bytes may follow. A piece without bytes does not count: 64 MiB are one piece, not two.
    Checksum pieces = summer->pieces;
    if (summer->piece.bytes > 0) add_piece(&pieces, checksum_value(&summer->piece));
    return (FileChecksum){summer->bytes, checksum_value(&pieces)};
}

/* Computes the checksum of the piece of a file that begins at byte `first`. A piece is shorter only at the file's
 * end. Returns 0 or an errno. */
static int read_piece(int descriptor, off_t first, Checksum *piece) {
    unsigned char *buffer = memory_new(READ_BYTES, 1, "a buffer for reading");
    int failure = 0;
    checksum_begin(piece);
    while (piece->bytes < FILE_CHECKSUM_PIECE) {
        size_t left = FILE_CHECKSUM_PIECE - (size_t)piece->bytes;
        activity_tick();
        // pread and not read: all threads share the descriptor, and read would move its one position
        ssize_t n = pread(descriptor, buffer, left < READ_BYTES ? left : READ_BYTES,
                          first + (off_t)piece->bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) failure = errno;
        // an error or the file's end ends the piece, which is then as long as what was read
        if (n <= 0) break;
        checksum_add(piece, buffer, (size_t)n);
    }
    free(buffer);
    return failure;
}

int file_checksum_read(const char *path, FileChecksum *sum) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe must not hang us
    struct stat status;
    if (descriptor < 0) return errno;
    if (fstat(descriptor, &status) != 0) {
        int failure = errno;
        close(descriptor);
        return failure;
    }

    // The size is only a hint for the number of pieces: each is read to its end, wherever the file ends now.
    size_t count = (size_t)status.st_size / FILE_CHECKSUM_PIECE + 1; // the last may be empty
    Checksum *pieces = memory_new(count, sizeof *pieces, "the checksums of a file's pieces");
    int *failures = memory_new(count, sizeof *failures, "the checksums of a file's pieces");
    // No lock is needed: iteration i writes only element i of the two arrays.
    PARALLEL_EACH
    for (size_t i = 0; i < count; i++)
        failures[i] = read_piece(descriptor, (off_t)i * FILE_CHECKSUM_PIECE, &pieces[i]);
    close(descriptor);

    // Combined in the order of the file, on one thread: the value does not depend on the number of threads.
    int failure = 0;
    Checksum all;
    checksum_begin(&all);
    sum->bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (!failure) failure = failures[i];
        if (pieces[i].bytes > 0) add_piece(&all, checksum_value(&pieces[i]));
        sum->bytes += pieces[i].bytes;
    }
    sum->sum = checksum_value(&all);
    free(pieces);
    free(failures);
    return failure;
}

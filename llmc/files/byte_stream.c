/* byte_stream.c: a file or standard input as a stream of bytes with a buffer that grows on demand: a caller may look
 * ahead as far as it needs, and takes bytes when it is done with them. The checksum of all bytes taken shows later
 * whether the input is still the same. */
#define _GNU_SOURCE // st_mtim
#include "byte_stream.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "checksum.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The buffer has this much room beyond what a caller asks for (256 KiB): one read(2) then serves many small requests.
enum { READ_BYTES = 1 << 18 };

struct ByteStream {
    const char *name;
    int descriptor;
    bool is_regular, ended, skipped;
    uint64_t size;         // of a regular file
    uint64_t offset;       // of buffer[at]
    unsigned char *buffer; // (capacity), of which at .. end are there
    size_t at, end, capacity;
    Checksum checksum; // of what was taken
};

const char *byte_stream_name(const char *path) { return strcmp(path, "-") == 0 ? "standard input" : path; }

/* What can be read: files, pipes and terminals. */
static struct stat status_of(const char *path) {
    struct stat status;
    bool standard = strcmp(path, "-") == 0;
    if ((standard ? fstat(0, &status) : stat(path, &status)) != 0)
        fatal(EXIT_INPUT, "%s: cannot be read: %s; check its path and permissions", byte_stream_name(path),
              strerror(errno));
    if (S_ISDIR(status.st_mode))
        fatal(EXIT_INPUT, "%s: is a directory, but a file is expected", byte_stream_name(path));
    return status;
}

bool byte_stream_status(const char *path, uint64_t *bytes, int64_t *modified) {
    struct stat status = status_of(path);
    // Standard input is never a regular file here, even if the shell opened one for it: another process may have read a
    // part of it, so that its size does not say how many bytes will come.
    bool regular = S_ISREG(status.st_mode) && strcmp(path, "-") != 0;
    *bytes = regular ? (uint64_t)status.st_size : 0;
    *modified = regular ? (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec : 0;
    return regular;
}

ByteStream *byte_stream_open(const char *path) {
    struct stat status = status_of(path);
    ByteStream *s = memory_new(1, sizeof *s, "an input");
    s->name = byte_stream_name(path);
    s->is_regular = S_ISREG(status.st_mode) && strcmp(path, "-") != 0;
    s->size = s->is_regular ? (uint64_t)status.st_size : 0;
    // Only a regular file has a size to compare with (read_more), and can be sought in (byte_stream_skip).
    s->descriptor = strcmp(path, "-") == 0 ? 0 : open(path, O_RDONLY | O_CLOEXEC);
    if (s->descriptor < 0)
        fatal(EXIT_INPUT, "%s: cannot be read: %s; check its path and permissions", path, strerror(errno));
    checksum_begin(&s->checksum);
    return s;
}

void byte_stream_close(ByteStream *s) {
    if (!s) return;
    // descriptor 0 is standard input: it does not belong to this stream
    if (s->descriptor > 0) close(s->descriptor);
    free(s->buffer);
    free(s);
}

/* Reads once, after the bytes that are there. */
static void read_more(ByteStream *s) {
    ssize_t n = read(s->descriptor, s->buffer + s->end, s->capacity - s->end);
    // a signal came before any byte: the caller's loop reads again
    if (n < 0 && errno == EINTR) return;
    uint64_t there = s->offset + (s->end - s->at);
    if (n < 0)
        fatal(EXIT_INPUT, "%s: byte %llu cannot be read: %s", s->name, (unsigned long long)there, strerror(errno));
    s->end += (size_t)n;
    there += (uint64_t)n;
    // 0 bytes are the end of a file, of a pipe that all writers closed, or of a terminal's input (control-D)
    s->ended = n == 0;
    // checked at each read: a file that grows is refused as soon as a byte beyond its old end arrives
    if (s->is_regular && (there > s->size || (s->ended && there < s->size)))
        fatal(EXIT_INPUT, "%s: had %llu bytes when it was opened, but %s now: leave it alone while it is read",
              s->name, (unsigned long long)s->size, s->ended ? "fewer" : "more");
}

const unsigned char *byte_stream_peek(ByteStream *s, size_t wanted, size_t *available) {
    // Too few bytes are here: those not yet taken move to the front of the buffer, and reading fills the room behind
    // them.
    if (s->end - s->at < wanted && !s->ended) {
        if (s->end > s->at) memmove(s->buffer, s->buffer + s->at, s->end - s->at);
        s->end -= s->at;
        s->at = 0;
        // grows only where a caller looks further ahead than any before
        if (s->capacity < wanted) {
            s->capacity = size_add(wanted, READ_BYTES, "an input's buffer");
            s->buffer = memory_grow(s->buffer, s->capacity, 1, "an input's buffer");
        }
    }
    // a pipe or a terminal returns fewer bytes than asked for: only a read of 0 bytes means the end
    while (s->end - s->at < wanted && !s->ended) read_more(s);
    *available = s->end - s->at < wanted ? s->end - s->at : wanted;
    return s->buffer + s->at;
}

void byte_stream_take(ByteStream *s, size_t count) {
    // after a skip it could not be the checksum of the whole input
    if (!s->skipped) checksum_add(&s->checksum, s->buffer + s->at, count);
    s->at += count;
    s->offset += count;
}

uint64_t byte_stream_offset(const ByteStream *s) { return s->offset; }

uint64_t byte_stream_checksum(const ByteStream *s) { return s->skipped ? 0 : checksum_value(&s->checksum); }

void byte_stream_skip(ByteStream *s, uint64_t offset) {
    if (offset == s->offset) return;
    // A regular file: one lseek, and the bytes in between are never read. The buffer belongs to another place: it is
    // dropped.
    if (s->is_regular && offset <= s->size && lseek(s->descriptor, (off_t)offset, SEEK_SET) >= 0) {
        s->skipped = true;
        s->ended = false;
        s->offset = offset;
        s->at = s->end = 0;
        return;
    }
    // A pipe cannot jump: its bytes are read and taken, and so count in the checksum.
    for (size_t there; s->offset < offset; byte_stream_take(s, there)) {
        uint64_t left = offset - s->offset;
        byte_stream_peek(s, left < READ_BYTES ? (size_t)left : READ_BYTES, &there);
        if (there == 0)
            fatal(EXIT_INPUT, "%s: ends at byte %llu, but an earlier start has read up to byte %llu", s->name,
                  (unsigned long long)s->offset, (unsigned long long)offset);
    }
}

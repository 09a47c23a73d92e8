/* byte_stream.h: a file, or standard input, read once from its beginning to its end, however large it is.
 *
 * A regular file must have at its end the size that it had when it was opened: one that was cut or that grows is
 * refused. Whatever goes wrong is fatal (EXIT_INPUT) and names the file. Files that are read at random places:
 * input.h. */
#ifndef LLMC_BYTE_STREAM_H
#define LLMC_BYTE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ByteStream ByteStream;

/* Opens `path`, "-" for standard input. The path must stay valid. */
ByteStream *byte_stream_open(const char *path);
void byte_stream_close(ByteStream *stream);

/* Makes the next `wanted` bytes available, or all that are left. *available: how many are; fewer than wanted
 * only at the end. They stay until the next call. */
const unsigned char *byte_stream_peek(ByteStream *stream, size_t wanted, size_t *available);

/* Moves past the next `count` bytes, which peek has made available. */
void byte_stream_take(ByteStream *stream, size_t count);

uint64_t byte_stream_offset(const ByteStream *stream); // of the next byte

/* The XXH64 of all bytes taken so far; 0 for a file of which byte_stream_skip has skipped a part without reading
 * it. */
uint64_t byte_stream_checksum(const ByteStream *stream);

/* Continues at `offset`, which is after the next byte. Standard input and pipes are read up to there. */
void byte_stream_skip(ByteStream *stream, uint64_t offset);

/* "standard input" for "-", else the path. */
const char *byte_stream_name(const char *path);

/* The size of a regular file, and when it was changed last, in nanoseconds; false, with both 0, for anything
 * else that can be read. Fatal where there is nothing to read. */
bool byte_stream_status(const char *path, uint64_t *bytes, int64_t *modified);

#endif

/* file_checksum.h: the checksum that guards a file of a checkpoint. So that all threads can share a large file,
 * and a disk or network serve several streams at once, each piece of 64 MiB has a checksum of its own: the checksum
 * of the file is the XXH64 (checksum.h) of its pieces' XXH64s, 8 bytes each, little-endian, in order. */
#ifndef LLMC_FILE_CHECKSUM_H
#define LLMC_FILE_CHECKSUM_H

#include "checksum.h"

enum { FILE_CHECKSUM_PIECE = 64 << 20 }; // bytes; the last piece may have fewer

typedef struct {
    uint64_t bytes, sum;
} FileChecksum;

/* The checksum of bytes that come one after the other, as a file is written. */
typedef struct {
    Checksum piece;  // of the bytes since the last full piece
    Checksum pieces; // of the full pieces' checksums
    uint64_t bytes;
} FileChecksummer;

void file_checksum_begin(FileChecksummer *summer);
void file_checksum_add(FileChecksummer *summer, const void *data, size_t bytes);
FileChecksum file_checksum_value(const FileChecksummer *summer);

/* The checksum of a file that exists, read on all threads. Returns 0 or an errno. */
int file_checksum_read(const char *path, FileChecksum *sum);

#endif

/* file_checksum.h: the sum that guards a file of a checkpoint. So that all threads can share a large file,
 * and a disk or network serve several streams at once, its pieces of 64 MiB are summed apart: the sum
 * of the file is the XXH64 (checksum.h) of its pieces' XXH64s, 8 bytes each, little-endian, in order. */
#ifndef LLMC_FILE_SUM_H
#define LLMC_FILE_SUM_H

#include "checksum.h"

enum { FILE_SUM_PIECE = 64 << 20 }; // bytes; the last piece may have fewer

typedef struct {
    uint64_t bytes, sum;
} FileSum;

/* The sum of bytes that come one after the other, as a file is written. */
typedef struct {
    Checksum piece;  // of the bytes since the last full piece
    Checksum pieces; // of the full pieces' sums
    uint64_t bytes;
} FileSummer;

void file_summer_begin(FileSummer *summer);
void file_summer_add(FileSummer *summer, const void *data, size_t bytes);
FileSum file_summer_value(const FileSummer *summer);

/* The sum of a file that exists, read on all threads. Returns 0 or an errno. */
int file_sum_read(const char *path, FileSum *sum);

#endif

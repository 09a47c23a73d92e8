/* input.h: files that are read. Every input file of the program passes here: it is mapped into memory,
 * read only, and no byte is handed out beyond its end.
 *
 * Whatever goes wrong is fatal (EXIT_INPUT) and names the file: it is missing, a directory or a
 * pipe, may not be read, or another program cuts it while it is open. Mapped files hold no file
 * descriptor. Of all files together only the last few megabytes read stay resident: what is read
 * again comes from the system's page cache, so large data need no memory of this process.
 * Not here: what the bytes mean (shard.h and others), and writing. Next: byte_stream.h for pipes. */
#ifndef LLMC_INPUT_H
#define LLMC_INPUT_H

#include <stddef.h>
#include <stdint.h>

typedef struct File File;

/* A file, opened for reading. The path must stay valid until file_close. */
File *file_open(const char *path);
void file_close(File *file);

const char *file_path(const File *file);
size_t file_size(const File *file); // bytes

/* Bytes offset .. offset+count; valid until file_close. Not for two threads at once. */
const unsigned char *file_at(File *file, size_t offset, size_t count);

/* Numbers as the file formats have them: little-endian, at any alignment. */
static inline uint16_t load_u16(const unsigned char *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline uint32_t load_u32(const unsigned char *p) {
    return load_u16(p) | (uint32_t)load_u16(p + 2) << 16;
}
static inline uint64_t load_u64(const unsigned char *p) {
    return load_u32(p) | (uint64_t)load_u32(p + 4) << 32;
}

#endif

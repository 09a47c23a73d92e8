/* files.h: what tests of input files need: a folder of their own, and data files of every kind
 * written from one list of tokens. */
#ifndef TEST_FILES_H
#define TEST_FILES_H

#include "test.h"

#include "../llmc/base/error.h"
#include "../llmc/data/stream.h"

#include <dirent.h>
#include <stdint.h>
#include <sys/stat.h>

static char files_folder[64];

/* Empties and removes a folder. */
__attribute__((unused)) static void files_remove(const char *folder) {
    char path[512];
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (unlink(path) != 0) files_remove(path);
    }
    if (directory) closedir(directory);
    rmdir(folder);
}

/* How many entries of a folder have a part of their name in common. */
__attribute__((unused)) static int files_matching(const char *folder, const char *part) {
    int count = 0;
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        count += strstr(entry->d_name, part) != NULL;
    if (directory) closedir(directory);
    return count;
}

static pid_t files_owner;

static void files_clean(void) {
    if (getpid() == files_owner) files_remove(files_folder); // not in forked children
}

/* The path of a file in the test's folder, which goes when the program ends; one of 16 buffers. */
__attribute__((unused)) static const char *in_folder(const char *name) {
    static char paths[16][256];
    static int next;
    if (!files_folder[0]) {
        snprintf(files_folder, sizeof files_folder, "%s", "/tmp/train_gpt2_test_XXXXXX");
        if (!mkdtemp(files_folder)) abort();
        files_owner = getpid();
        atexit(files_clean);
    }
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", files_folder, name);
    return path;
}

/* Writes bytes to a file of the folder (its directory must exist) and returns its path. */
__attribute__((unused)) static const char *write_bytes(const char *name, const void *bytes,
                                                       size_t count) {
    const char *path = in_folder(name);
    FILE *file = fopen(path, "wb");
    if (!file || (count && fwrite(bytes, 1, count, file) != count) || fclose(file) != 0) abort();
    return path;
}

__attribute__((unused)) static const char *write_string(const char *name, const char *text) {
    return write_bytes(name, text, strlen(text));
}

/* Numbers as little-endian bytes. */
static unsigned char *put(unsigned char *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) *at++ = (unsigned char)(value >> 8 * i);
    return at;
}

/* A file of `header` bytes of header followed by tokens of `width` bytes. */
__attribute__((unused)) static const char *write_tokens(const char *name, const void *header,
                                                        size_t head, const int32_t *tokens,
                                                        size_t count, int width) {
    size_t size = head + count * (size_t)width;
    unsigned char *bytes = malloc(size + 1), *at = bytes + head;
    if (head) memcpy(bytes, header, head);
    for (size_t i = 0; i < count; i++) at = put(at, (uint64_t)(int64_t)tokens[i], width);
    const char *path = write_bytes(name, bytes, size);
    free(bytes);
    return path;
}

/* An llm.c token shard's header of 1024 bytes. */
__attribute__((unused)) static void llmc_header(unsigned char header[1024], int32_t magic,
                                                int32_t version, int32_t count) {
    memset(header, 0, 1024);
    put(put(put(header, (uint32_t)magic, 4), (uint32_t)version, 4), (uint32_t)count, 4);
}

__attribute__((unused)) static const char *write_llmc(const char *name, const int32_t *tokens,
                                                      size_t count) {
    unsigned char header[1024];
    llmc_header(header, 20240520, 1, (int32_t)count);
    return write_tokens(name, header, sizeof header, tokens, count, 2);
}

/* A .npy header of a given version around a dictionary, padded to 64 bytes; returns its length. */
__attribute__((unused)) static size_t npy_header(unsigned char header[512], int version,
                                                 const char *dictionary) {
    memset(header, ' ', 512);
    memcpy(header, "\x93NUMPY", 6);
    size_t start = version == 1 ? 10 : 12, length = strlen(dictionary);
    size_t total = (start + length + 1 + 63) / 64 * 64;
    header[6] = (unsigned char)version, header[7] = 0;
    put(header + 8, total - start, version == 1 ? 2 : 4);
    memcpy(header + start, dictionary, length);
    header[total - 1] = '\n';
    return total;
}

/* A .npy array of type descr ("<u2", ...), as NumPy writes it. */
__attribute__((unused)) static const char *
write_npy(const char *name, int version, const char *descr, const int32_t *tokens, size_t count) {
    unsigned char header[512];
    char dictionary[256];
    snprintf(dictionary, sizeof dictionary,
             "{'descr': '%s', 'fortran_order': False, 'shape': (%zu,), }", descr, count);
    size_t head = npy_header(header, version, dictionary);
    return write_tokens(name, header, head, tokens, count, descr[2] - '0');
}

/* An empty, sparse file of `size` bytes with `head` bytes of header, or NULL where that is
 * impossible. */
__attribute__((unused)) static const char *write_sparse(const char *name, const void *header,
                                                        size_t head, uint64_t size) {
    const char *path = write_bytes(name, header, head);
    return truncate(path, (off_t)size) == 0 ? path : NULL;
}

/* A file, directory or glob as a stream. */
__attribute__((unused)) static Stream *open_one(const char *path) {
    return stream_open(&path, 1, STREAM_ALL);
}

/* What opening a file says: exit code 3, and one line with this text. */
#define CHECK_REFUSED(text, path)                                                                  \
    do {                                                                                           \
        const char *path_ = (path);                                                                \
        CHECK_FATAL(EXIT_INPUT, text, open_one(path_));                                            \
    } while (0)

#endif

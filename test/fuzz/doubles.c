/* doubles.c: in place of the program's error.c and input.c when readers are fuzzed. fatal() comes back to who
 * runs the reader; a file is a block of exactly its size, so that a sanitizer sees what reads beyond it. */
#include "doubles.h"

#include "../../llmc/base/error.h"
#include "../../llmc/base/memory.h"
#include "../../llmc/files/input.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

jmp_buf doubles_end;
char doubles_said[2048];

static void keep(const char *format, va_list args) { vsnprintf(doubles_said, sizeof doubles_said, format, args); }

#define SAY                                                                                                        \
    va_list args;                                                                                                  \
    va_start(args, format);                                                                                        \
    keep(format, args);                                                                                            \
    va_end(args)

void fatal(int code, const char *format, ...) {
    SAY;
    longjmp(doubles_end, code);
}
void fatal_now(int code, const char *format, ...) {
    SAY;
    longjmp(doubles_end, code);
}
void warning(const char *format, ...) { SAY; }
void warning_now(const char *format, ...) { SAY; }
void notice(const char *format, ...) { SAY; }
void error_set_rank(int rank, int size) { (void)rank, (void)size; }
void error_set_end(void (*end)(int code)) { (void)end; }
void error_set_before(void (*before)(void)) { (void)before; }
void error_set_note(void (*note)(const char *message)) { (void)note; }

struct File {
    const char *path;
    unsigned char *bytes;
    size_t size;
};

File *file_open(const char *path) {
    FILE *from = fopen(path, "rb");
    if (!from) fatal(EXIT_INPUT, "%s: no such file", path);
    File *file = memory_new(1, sizeof *file, path);
    fseek(from, 0, SEEK_END);
    file->path = path;
    file->size = (size_t)ftell(from);
    file->bytes = malloc(file->size ? file->size : 1);
    rewind(from);
    if (file->size && fread(file->bytes, 1, file->size, from) != file->size) abort();
    fclose(from);
    return file;
}

void file_close(File *file) {
    if (file) free(file->bytes);
    free(file);
}

const char *file_path(const File *file) { return file->path; }
size_t file_size(const File *file) { return file->size; }

const unsigned char *file_at(File *file, size_t offset, size_t count) {
    if (offset > file->size || count > file->size - offset)
        fatal(EXIT_INPUT, "%s: size is %zu bytes, but %zu bytes at byte %zu are expected", file->path, file->size,
              count, offset);
    return file->bytes + offset;
}

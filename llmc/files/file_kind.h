/* file_kind.h: recognises files of a kind that the program was not asked to read. Weights where data should
 * be, a download's error page, a compressed archive, a file of another byte order: each is recognised by its first
 * bytes, and comes with advice. Not here: the kinds that are read (data/shard.h, weights/weights.h). */
#ifndef LLMC_FILE_KIND_H
#define LLMC_FILE_KIND_H

#include "input.h"

#include <stdbool.h>

typedef struct {
    const char
        *what; // "a zip archive (PyTorch's .pt and .bin are such)"; NULL: nothing that is known
    const char *data;  // what to do where tokens or text are expected
    const char *model; // and where weights are
} FileKind;

/* The kind that the file's first bytes show. A file that the program reads as data or weights has a kind, too,
 * since it may be given in the other's place: ask only after looking for what was expected. */
FileKind file_kind(File *file);

/* The same for a file of which the first FILE_KIND_HEAD bytes (or all) are here. */
enum { FILE_KIND_HEAD = 512 };
FileKind file_kind_of_head(const unsigned char *head, size_t bytes);

/* Whether the file begins with printable ASCII, in at least 32 bytes: 16 random tokens do so once in 2e12. */
bool file_starts_as_text(File *file);

/* Whether it is text whose first sign is <, as a web page's is. */
bool file_is_markup(File *file);

#endif

/* path.h: whether files exist, and their names. Only ENOENT means that a file is missing: any other error ends the
 * program, before anything is changed. */
#ifndef LLMC_PATH_H
#define LLMC_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Whether anything of that name exists, even a link that leads nowhere. False where a directory on the way
 * is missing or is not a directory. Fatal (EXIT_RUNTIME) where that cannot be found out. */
bool path_exists(const char *path);

/* The same for directory/name. */
bool path_exists_in(const char *directory, const char *name);

/* The first `most` bytes of a small file that may be missing; free() releases them. NULL where there is no regular
 * file of that name. Fatal (EXIT_RUNTIME) where there is one that cannot be read. */
unsigned char *path_read(const char *path, size_t most, size_t *bytes);

/* "directory/name"; free() releases it. */
char *path_join(const char *directory, const char *name);

/* Fsyncs the directory of `path`, so that the entry survives a power cut. A hint: a failure is not reported. */
void path_sync(const char *path);

#endif

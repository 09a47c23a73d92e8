/* path.h: what the names of files say. Only ENOENT means that there is nothing: whatever else keeps the
 * program from looking ends it, before anything is changed. */
#ifndef LLMC_PATH_H
#define LLMC_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Whether there is anything of that name, be it a link that leads nowhere. False where a directory on the way
 * is missing or is none. Fatal (EXIT_RUNTIME) where that cannot be found out. */
bool path_exists(const char *path);

/* The same for directory/name. */
bool path_exists_in(const char *directory, const char *name);

/* The first `most` bytes of a small file that may be missing; free() releases them. NULL where there is no regular
 * file of that name. Fatal (EXIT_RUNTIME) where there is one that cannot be read. */
unsigned char *path_read(const char *path, size_t most, size_t *bytes);

/* "directory/name"; free() releases it. */
char *path_join(const char *directory, const char *name);

/* Makes the entry of `path` in its directory last through a power cut. A wish: where the directory cannot be synced
 * nothing is said. */
void path_sync(const char *path);

#endif

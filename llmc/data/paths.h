/* paths.h: which files data options mean: files, directories and globs become a list of files. Part
 * of stream.h, which states the rules. */
#ifndef LLMC_PATHS_H
#define LLMC_PATHS_H

#include "stream.h"

typedef struct {
    char **files;
    int count;
} PathList;

/* The files of one part. Fatal (EXIT_INPUT) where an entry gives none, or the part has none. */
PathList paths_expand(const char *const *paths, int count, StreamPart part);

/* The same for text that is to be encoded: a directory gives the .txt, .jsonl and .ndjson files in it, and "-" is
 * standard input. */
PathList paths_expand_texts(const char *const *paths, int count);

/* How many files of directories and globs are named for which part. */
StreamNames paths_names(const char *const *paths, int count);

void paths_free(PathList *list);

#endif

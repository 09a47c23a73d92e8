/* run_directory.h: where a run's files go. Two runs never mix. */
#ifndef LLMC_RUN_DIRECTORY_H
#define LLMC_RUN_DIRECTORY_H

#include <stdbool.h>

/* Makes the directory `out` (with its parents), or with NULL the next free out/run-NNNN, and returns its
 * path; free() releases it. A directory that already holds a run is refused (EXIT_USAGE), unless
 * overwrite: then that run's files are removed. */
char *run_directory_open(const char *out, bool overwrite);

#endif

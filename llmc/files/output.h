/* output.h: files that are complete or absent (atomic writes). A directory of files (a checkpoint) or one file is
 * written under a temporary name of its own (temporary.h), every file and directory is synced to the
 * disk, and then it is renamed to NAME: if NAME exists, it is complete, even after a crash or a power cut.
 *
 * Every failure removes what was begun and is fatal (EXIT_RUNTIME, naming file and reason). All changes
 * that this program makes to a disk, but for its logs, are made here. Not here: reading (input.h). Next: path.h. */
#ifndef LLMC_OUTPUT_H
#define LLMC_OUTPUT_H

#include "file_checksum.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Output Output;
typedef struct OutputFile OutputFile;

typedef enum {
    OUTPUT_FILE,     // replaces a file of that name
    OUTPUT_NEW_FILE, // fatal when there is anything of that name, at the beginning or the end
    OUTPUT_DIRECTORY // likewise
} OutputKind;

/* Begins `name`. Removes what interrupted attempts at it have left. */
Output *output_begin(const char *name, OutputKind kind);

/* The file to write: `file` in the directory, or with NULL the one file itself. Any number of
 * files, one after the other. */
OutputFile *output_open(Output *output, const char *file);
void output_write(OutputFile *file, const void *data, size_t bytes);
void output_print(OutputFile *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Syncs and closes a file. Returns the bytes written and their checksum. */
FileChecksum output_close(OutputFile *file);

/* Gives it its name: now it is there. */
void output_commit(Output *output);

/* Removes a directory of plain files that output_commit made: first renamed to a temporary name, so that a partly
 * removed directory is never seen. Returns 0 or an errno. */
int output_remove(const char *name);

#endif

/* run_directory.c: see run_directory.h. */
#include "run_directory.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../checkpoint/checkpoint_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_RUNS = 9999 };

static const char *const run_files[] = {"log.txt", "metrics.jsonl"};
enum { RUN_FILES = sizeof run_files / sizeof run_files[0] };

static bool is_directory(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* mkdir for each missing part of the path. */
static void make_directories(const char *path) {
    char *part = memory_string(path);
    for (char *slash = part + 1;; slash++) {
        if (*slash != '/' && *slash != '\0') continue;
        char kept = *slash;
        *slash = '\0';
        if (mkdir(part, 0777) != 0 && !is_directory(part))
            fatal(EXIT_RUNTIME, "--out %s: cannot make the directory %s: %s; choose another --out", path, part,
                  strerror(errno));
        *slash = kept;
        if (!kept) break;
    }
    free(part);
}

static char *next_free_run(void) {
    make_directories("out");
    char *path = memory_new(32, 1, "a path");
    for (int run = 1; run <= MOST_RUNS; run++) {
        snprintf(path, 32, "out/run-%04d", run);
        if (mkdir(path, 0777) == 0) return path;
        if (errno != EEXIST)
            fatal(EXIT_RUNTIME, "%s: cannot make the directory: %s; choose a place with --out", path,
                  strerror(errno));
    }
    fatal(EXIT_RUNTIME, "out/: all of run-0001 to run-%d exist; remove some or give --out", MOST_RUNS);
}

static char *join(const char *directory, const char *file) {
    size_t size = strlen(directory) + strlen(file) + 2;
    char *path = memory_new(size, 1, "a path");
    snprintf(path, size, "%s/%s", directory, file);
    return path;
}

static _Noreturn void refuse(const char *out, const char *found) {
    fatal(EXIT_USAGE,
          "--out %s already holds a run (%s is there); use --resume auto to go on with it, --overwrite to replace "
          "it, or another --out",
          out, found);
}

/* Removes the run's file, or refuses because it is there. */
static void clear(const char *out, const char *file, bool overwrite) {
    char *path = join(out, file);
    if (!overwrite && access(path, F_OK) == 0) refuse(out, file);
    if (overwrite && unlink(path) != 0 && errno != ENOENT)
        fatal(EXIT_RUNTIME, "--overwrite: cannot remove %s: %s", path, strerror(errno));
    free(path);
}

char *run_directory_open(const char *out, bool overwrite) {
    if (!out) return next_free_run();
    make_directories(out);
    if (!overwrite && checkpoints_any(out)) refuse(out, "a checkpoint");
    if (overwrite) checkpoints_remove(out);
    for (int i = 0; i < RUN_FILES; i++) clear(out, run_files[i], overwrite);
    return memory_string(out);
}

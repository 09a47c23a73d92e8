/* run_directory.c: the directory of a run. The process that writes in it holds its lock, from before it first reads
 * it until the process ends; the system releases it with the process. A directory that holds a run is never used
 * for another one unless the user says so. */
#include "run_directory.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../checkpoint/checkpoint_list.h"
#include "../files/path.h"
#include "../files/temporary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_RUNS = 9999 };

static const char lock_file[] = ".train_gpt2.lock";

/* Seconds that a start waits for the lock. After kill -9 of mpirun its ranks live on for 1 to 6 s. */
static const double lock_wait = 10;

// Files of a run beside its checkpoints: any of them shows that the directory is in use.
static const char *const run_files[] = {"log.txt", "metrics.jsonl"};
enum { RUN_FILES = sizeof run_files / sizeof run_files[0] };

/* Whether a path is a directory. */
static bool is_directory(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* mkdir for each missing part of the path. */
static void make_directories(const char *path) {
    char *part = memory_string(path);
    // For a/b/c: mkdir a, a/b and a/b/c. The text is cut at each slash for the call, and made whole again after it.
    for (char *slash = part + 1;; slash++) {
        if (*slash != '/' && *slash != '\0') continue;
        char kept = *slash;
        *slash = '\0';
        // mkdir comes first and the look after it: between a look and a mkdir another process could make the
        // directory.
        if (mkdir(part, 0777) == 0)
            path_sync(part);
        else if (!is_directory(part))
            fatal(EXIT_RUNTIME, "--out %s: cannot make the directory %s: %s; choose another --out", path, part,
                  strerror(errno));
        *slash = kept;
        if (!kept) break;
    }
    free(part);
}

// Promise 6 of dev/reliability.md: one run a directory. Rank 0, the only one that writes, holds the lock from
// before it looks at the directory until it is gone.
Lock *run_directory_lock(const char *out, bool make) {
    if (make)
        make_directories(out);
    else if (!path_exists(out))
        return NULL;
    char *path = path_join(out, lock_file), holder[LOCK_HOLDER];
    Lock *lock = NULL;
    // at once if it is free; otherwise name the process that holds it, and wait some seconds for its end
    int failure = lock_take(path, 0, &lock, holder);
    if (failure == EWOULDBLOCK) {
        printf("%s is in use by %s; waiting for its end\n", out, holder);
        fflush(stdout);
        failure = lock_take(path, lock_wait, &lock, holder);
    }
    if (failure == EWOULDBLOCK)
        fatal(EXIT_RUNTIME,
              "--out %s is in use by %s, which holds %s; nothing was changed; wait for its end, stop it, or "
              "choose another --out",
              out, holder, path);
    if (failure)
        fatal(EXIT_RUNTIME,
              "%s: cannot be locked: %s; nothing was changed; a run needs a directory that it may write to, on a "
              "file system with locks (flock): choose another --out",
              path, strerror(failure));
    free(path);
    return lock;
}

void run_directory_check(const Lock *lock, const char *out) {
    // The lock belongs to the file, not to its path: the path may lead to another directory by now.
    if (!lock_is_in_place(lock))
        fatal(EXIT_RUNTIME,
              "--out %s was moved, removed or replaced while the run was using it; nothing more is written there; put "
              "it back and continue with --resume auto",
              out);
}

char *run_directory_next(void) {
    make_directories("out");
    char *path = memory_new(32, 1, "a path");
    // mkdir fails where the directory exists, so two runs that start together get two directories.
    for (int run = 1; run <= MOST_RUNS; run++) {
        snprintf(path, 32, "out/run-%04d", run);
        if (mkdir(path, 0777) == 0) {
            path_sync(path);
            return path;
        }
        if (errno != EEXIST)
            fatal(EXIT_RUNTIME, "%s: cannot make the directory: %s; choose a place with --out", path,
                  strerror(errno));
    }
    fatal(EXIT_RUNTIME, "out/: all of run-0001 to run-%d exist; remove some or give --out", MOST_RUNS);
}

/* Ends the program: there is a run already; with the three ways to continue. */
static _Noreturn void refuse(const char *out, const char *found) {
    fatal(EXIT_USAGE,
          "--out %s already holds a run (%s is there); use --resume auto to continue it, --overwrite to replace "
          "it, or another --out",
          out, found);
}

void run_directory_refuse_used(const char *out) {
    if (checkpoints_any(out)) refuse(out, "a checkpoint");
    for (int i = 0; i < RUN_FILES; i++)
        if (path_exists_in(out, run_files[i])) refuse(out, run_files[i]);
}

void run_directory_clear(const char *out) {
    if (path_exists_in(out, run_files[0]) && !checkpoints_any(out))
        printf("%s has logs but no checkpoint: a new run replaces them\n", out);
    // Only what a run itself wrote is removed; other files in the directory stay.
    checkpoints_remove(out);
    for (int i = 0; i < RUN_FILES; i++) {
        char *path = path_join(out, run_files[i]);
        if (unlink(path) != 0 && errno != ENOENT)
            fatal(EXIT_RUNTIME, "--overwrite: cannot remove %s: %s", path, strerror(errno));
        free(path);
    }
    temporary_clean(out, NULL);
}

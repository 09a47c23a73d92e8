/* checkpoint_list.c: the checkpoints of a run are the entries step_NNNNNNNN of its directory. No list is kept: the
 * directory itself is the list, so that it cannot disagree. Older checkpoints are removed only when a newer one is
 * complete, and only if they contain nothing but files that this program writes. */
#include "checkpoint_list.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../files/output.h"
#include "../files/path.h"
#include "../files/temporary.h"
#include "checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char prefix[] = "step_";
enum { PREFIX = sizeof prefix - 1, LEAST_DIGITS = 8, MOST_DIGITS = 18 };

char *checkpoints_path(const char *out, int64_t step) {
    size_t bytes = strlen(out) + 32;
    char *path = memory_new(bytes, 1, "a file name");
    snprintf(path, bytes, "%s/%s%08lld", out, prefix, (long long)step);
    return path;
}

/* The step that a directory entry's name is of, or -1: step_ and at least eight digits. */
static int64_t step_of(const char *name) {
    if (strncmp(name, prefix, PREFIX) != 0) return -1;
    size_t digits = strspn(name + PREFIX, "0123456789");
    if (digits < LEAST_DIGITS || digits > MOST_DIGITS || name[PREFIX + digits]) return -1;
    if (digits > LEAST_DIGITS && name[PREFIX] == '0')
        return -1; // not as checkpoints_path spells it
    return strtoll(name + PREFIX, NULL, 10);
}

/* The newest first. */
static int descending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The next entry of a directory, or NULL at its end; fatal when it cannot be read. */
static const char *next_entry(DIR *directory, const char *path) {
    errno = 0;
    struct dirent *entry = readdir(directory);
    if (!entry && errno)
        fatal(EXIT_RUNTIME, "%s: cannot be listed to its end: %s; nothing was changed", path, strerror(errno));
    return entry ? entry->d_name : NULL;
}

/* The steps of the entries step_NNNNNNNN, the newest first; free() releases them. Promise 4: only a missing
 * directory, or a path that is not a directory, counts as one without checkpoints; a directory that cannot be
 * listed ends the program. */
static int64_t *list(const char *out, int *count) {
    int64_t *steps = NULL;
    *count = 0;
    DIR *directory = opendir(out);
    if (!directory && (errno == ENOENT || errno == ENOTDIR)) return NULL;
    if (!directory)
        fatal(EXIT_RUNTIME, "%s: cannot be listed: %s; nothing was changed; check its permissions", out,
              strerror(errno));
    for (const char *name; (name = next_entry(directory, out));) {
        int64_t step = step_of(name);
        if (step < 0) continue;
        steps = memory_grow(steps, (size_t)*count + 1, sizeof *steps, "a list of checkpoints");
        steps[(*count)++] = step;
    }
    closedir(directory);
    if (*count) qsort(steps, (size_t)*count, sizeof *steps, descending);
    return steps;
}

bool checkpoints_any(const char *out) {
    int count;
    free(list(out, &count));
    return count > 0;
}

char **checkpoints_all(const char *out, int *count) {
    int64_t *steps = list(out, count);
    // the oldest first, as a reader wants them; the list has the newest first
    char **paths = memory_new((size_t)*count, sizeof *paths, "a list of checkpoints");
    for (int i = 0; i < *count; i++) paths[*count - 1 - i] = checkpoints_path(out, steps[i]);
    free(steps);
    return paths;
}

char *checkpoints_newest_good(const char *out) {
    int count;
    int64_t *steps = list(out, &count);
    char *good = NULL, problem[CHECKPOINT_PROBLEM];
    // from the newest on, until one is as it was written
    for (int i = 0; i < count && !good; i++) {
        char *path = checkpoints_path(out, steps[i]);
        if (checkpoint_verify(path, problem)) {
            good = path;
        } else {
            warning("checkpoint %s is damaged: %s; looking for the one before it", path, problem);
            free(path);
        }
    }
    free(steps);
    return good;
}

bool checkpoints_is_bare_run(const char *path) {
    return path_exists_in(path, "metrics.jsonl") && path_exists_in(path, "log.txt") && !checkpoints_any(path);
}

char *checkpoints_resolve(const char *path) {
    // The path may be a run, a checkpoint, or anything else that has weights; only the first two are checked here.
    char problem[CHECKPOINT_PROBLEM], *found = checkpoints_newest_good(path);
    if (found) return found;
    if (checkpoints_is_bare_run(path))
        fatal(EXIT_INPUT, "%s: the directory of a run that has no checkpoint yet; wait for its first (--save-every)",
              path);
    if (checkpoints_any(path))
        fatal(EXIT_INPUT, "%s: the directory of a run, which has checkpoints, but none is good", path);
    found = memory_string(path);
    for (size_t n = strlen(found); n > 1 && found[n - 1] == '/'; n--) found[n - 1] = '\0';
    if (checkpoint_is_one(found) && !checkpoint_verify(found, problem))
        fatal(EXIT_INPUT, "%s: a damaged checkpoint: %s; choose another", found, problem);
    return found;
}

// ---------------------------------------------------------------------------------------------
// Out of the way

/* Renames a checkpoint to NAME.aside, or .aside2, ... */
static void set_aside(const char *path) {
    size_t bytes = strlen(path) + 32;
    char *name = memory_new(bytes, 1, "a file name");
    snprintf(name, bytes, "%s.aside", path);
    // An earlier resume may have set aside the same step: nothing is ever overwritten.
    for (int i = 2; path_exists(name); i++) snprintf(name, bytes, "%s.aside%d", path, i);
    if (rename(path, name) != 0)
        fatal(EXIT_RUNTIME, "%s: cannot be renamed to %s: %s", path, name, strerror(errno));
    warning("%s is beyond the step that this run continues from; it was renamed to %s", path, name);
    free(name);
}

void checkpoints_set_aside(const char *out, int64_t step) {
    int count;
    int64_t *steps = list(out, &count);
    for (int i = 0; i < count && steps[i] > step; i++) {
        char *path = checkpoints_path(out, steps[i]);
        set_aside(path);
        free(path);
    }
    free(steps);
    temporary_clean(out, NULL);
}

// ---------------------------------------------------------------------------------------------
// The best

/* Whether a path is a symbolic link, wherever it leads. */
static bool is_link(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
}

/* The link is made under a temporary name and then renamed, so that there is a link at every moment. */
void checkpoints_mark_best(const char *out, int64_t step) {
    char *link = path_join(out, "best"), *made = path_join(out, ".best.tmp");
    char *checkpoint = checkpoints_path(out, step);
    const char *target = strrchr(checkpoint, '/') + 1; // beside the link: the run may be moved
    int failure = 0;
    if (path_exists(link) && !is_link(link)) {
        warning("%s is not a link; it is left alone, so no link names the best checkpoint, %s", link, checkpoint);
    } else if (step > 0 && path_exists(checkpoint)) {
        unlink(made); // of a process that was killed
        failure = symlink(target, made) != 0 || rename(made, link) != 0 ? errno : 0;
    } else if (unlink(link) != 0 && errno != ENOENT) {
        failure = errno;
    }
    if (failure)
        warning("%s cannot be made a link to %s, the best checkpoint: %s", link, target, strerror(failure));
    free(checkpoint);
    free(made);
    free(link);
}

// ---------------------------------------------------------------------------------------------
// Removing

/* Whether a checkpoint holds nothing but what this program writes. */
static bool is_ours(const char *path) {
    DIR *directory = opendir(path);
    if (!directory) return false;
    bool ours = true;
    for (const char *name; (name = next_entry(directory, path));) {
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            ours = ours && checkpoint_has_file(name);
    }
    closedir(directory);
    return ours;
}

/* Removes a checkpoint, unless somebody keeps other files in it. A failure is a warning: the run continues. */
static void remove_checkpoint(const char *path) {
    if (!is_ours(path)) {
        warning("%s holds files that this program did not write; it is not removed", path);
        return;
    }
    int failure = output_remove(path);
    if (failure) warning("%s cannot be removed: %s", path, strerror(failure));
}

void checkpoints_keep(const char *out, int64_t keep, int64_t best) {
    int count;
    int64_t *steps = keep > 0 ? list(out, &count) : NULL;
    for (int i = 0; steps && i < count; i++) {
        // steps[0] is the newest, so index i has i newer ones
        char *path = i < keep || steps[i] == best ? NULL : checkpoints_path(out, steps[i]);
        if (path) remove_checkpoint(path);
        free(path);
    }
    free(steps);
}

void checkpoints_remove(const char *out) {
    int count;
    int64_t *steps = list(out, &count);
    char *link = path_join(out, "best");
    // the link first, so that it never leads to a checkpoint that is gone
    if (is_link(link)) checkpoints_mark_best(out, 0);
    free(link);
    for (int i = 0; i < count; i++) {
        char *path = checkpoints_path(out, steps[i]);
        remove_checkpoint(path);
        free(path);
    }
    free(steps);
}

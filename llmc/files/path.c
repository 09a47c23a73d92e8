/* path.c: names of files. Only ENOENT and ENOTDIR mean that there is nothing; anything else (no permission, a failing
 * disk) ends the program, because a file that was taken for missing might be overwritten. */
#include "path.h"

#include "../base/error.h"
#include "../base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool path_exists(const char *path) {
    struct stat status;
    // lstat and not stat: a link that leads nowhere is something, too, and must not be replaced
    if (lstat(path, &status) == 0) return true;
    if (errno != ENOENT && errno != ENOTDIR)
        fatal(EXIT_RUNTIME, "%s: cannot be examined: %s; nothing was changed", path, strerror(errno));
    return false;
}

char *path_join(const char *directory, const char *name) {
    // 2 more: the slash, and the 0 at the end
    size_t bytes = size_add(strlen(directory), strlen(name) + 2, name);
    char *path = memory_new(bytes, 1, "a file name");
    snprintf(path, bytes, "%s/%s", directory, name);
    return path;
}

bool path_exists_in(const char *directory, const char *name) {
    char *path = path_join(directory, name);
    bool there = path_exists(path);
    free(path);
    return there;
}

void path_sync(const char *path) {
    char *parent = memory_string(path), *slash = strrchr(parent, '/');
    // the directory of "a/b" is "a", of "/a" it is "/", and of "a" it is "."
    if (slash) slash[slash == parent] = '\0';
    int descriptor = open(slash ? parent : ".", O_RDONLY | O_CLOEXEC);
    free(parent);
    // a directory that may not be read, or was removed: the caller loses a hint, not its data
    if (descriptor < 0) return;
    fsync(descriptor);
    close(descriptor);
}

unsigned char *path_read(const char *path, size_t most, size_t *bytes) {
    struct stat status;
    // a directory, a pipe or a device of this name counts as no file
    if (!path_exists(path) || (stat(path, &status) == 0 && !S_ISREG(status.st_mode))) return NULL;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe must not hang us
    int failure = descriptor < 0 ? errno : 0;
    // `most` is the caller's bound for a small file: a larger one is read only in part
    unsigned char *data = memory_new(most, 1, path);
    *bytes = 0;
    // read(2) may return less than asked for, or be interrupted: only 0 bytes mean the end
    while (!failure && *bytes < most) {
        ssize_t n = read(descriptor, data + *bytes, most - *bytes);
        if (n < 0 && errno != EINTR) failure = errno;
        if (n > 0) *bytes += (size_t)n;
        if (n == 0) break;
    }
    if (failure) fatal(EXIT_RUNTIME, "%s: cannot be read: %s; nothing was changed", path, strerror(failure));
    close(descriptor);
    return data;
}

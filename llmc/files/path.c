/* path.c: names of files. Only ENOENT and ENOTDIR mean that there is nothing; anything else (no permission, a failing
 * disk) ends the program, because to take it for nothing might overwrite what is there. */
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
    if (lstat(path, &status) == 0) return true;
    if (errno != ENOENT && errno != ENOTDIR)
        fatal(EXIT_RUNTIME, "%s: cannot be looked at: %s; nothing was changed", path, strerror(errno));
    return false;
}

char *path_join(const char *directory, const char *name) {
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
    if (slash) slash[slash == parent] = '\0';
    int descriptor = open(slash ? parent : ".", O_RDONLY | O_CLOEXEC);
    free(parent);
    if (descriptor < 0) return;
    fsync(descriptor);
    close(descriptor);
}

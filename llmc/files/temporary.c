/* temporary.c: see temporary.h. Everything is removed relative to open directories, none of them reached
 * through a link: a link of another user is never followed. */
#define _GNU_SOURCE
#include "temporary.h"

#include "../base/memory.h"
#include "../base/rng.h"
#include "lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char mark_name[] = "unfinished.train_gpt2", content_name[] = "content";
static const char infix[] = ".train_gpt2-", suffix[] = ".tmp";
enum { HEX = 16, INFIX = sizeof infix - 1, SUFFIX = sizeof suffix - 1, TRIES = 100 };

static const char mark_text[] = "train_gpt2 is writing here. When no such process runs, this directory is what an\n"
                                "interrupted one has left, and may be removed.\n";

/* A directory that is open for reading, not reached through a link; -1 with errno. */
static int open_directory(int parent, const char *name) {
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// ---------------------------------------------------------------------------------------------
// Removing

/* Removes the plain files of an open directory, which is closed. Returns how many; *failure: of those that stay. */
static int remove_files(int descriptor, int *failure) {
    int removed = 0;
    DIR *directory = fdopendir(descriptor);
    if (!directory) {
        *failure = errno;
        close(descriptor);
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (unlinkat(descriptor, entry->d_name, 0) == 0)
            removed++;
        else
            *failure = errno;
    }
    closedir(directory);
    return removed;
}

/* Removes a file, a link, or a directory of plain files. Returns 0 or an errno. */
static int remove_at(int parent, const char *name) {
    // unlink first: it removes a link itself, never what the link leads to, and fails for a directory
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return 0;
    if (errno != EISDIR && errno != EPERM) return errno; // Linux and POSIX call a directory so
    int failure = errno, removed;
    do { // some file systems skip entries when others are removed while they are listed
        int directory = open_directory(parent, name);
        if (directory < 0) return errno == ENOTDIR ? failure : errno;
        failure = 0;
        removed = remove_files(directory, &failure);
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0) return 0;
        if (!failure) failure = errno;
    } while (removed > 0);
    return failure;
}

/* Removes content and mark of an open temporary directory, and then itself. Returns 0 or an errno. */
static int remove_opened(int directory, const char *path) {
    int failure = remove_at(directory, content_name);
    if (!failure) failure = remove_at(directory, mark_name); // last: until then it is known as ours
    // ENOENT: another process removed it at the same time
    if (!failure && rmdir(path) != 0 && errno != ENOENT) failure = errno;
    return failure;
}

// ---------------------------------------------------------------------------------------------
// What this process has made and not yet removed: the newest one, for an error in the middle of an output

static struct {
    char *directory; // NULL: none
    pid_t owner;     // a forked child must not remove what its parent is writing
} latest;

/* At exit: the unfinished directory of this process is removed. */
static void remove_latest(void) {
    if (!latest.directory || latest.owner != getpid()) return;
    int directory = open_directory(AT_FDCWD, latest.directory);
    if (directory < 0) return;
    remove_opened(directory, latest.directory);
    close(directory);
}

/* Notes the directory that is being written, for remove_latest. */
static void remember(const char *directory) {
    static bool registered;
    if (!registered) atexit(remove_latest);
    registered = true;
    free(latest.directory);
    // a copy: temporary_remove frees the path of the Temporary
    latest.directory = directory ? memory_string(directory) : NULL;
    latest.owner = getpid();
}

// ---------------------------------------------------------------------------------------------
// Making

/* "first" + "second" + "third"; free() releases it. */
static char *join(const char *first, const char *second, const char *third) {
    size_t bytes = strlen(first) + strlen(second) + strlen(third) + 1;
    char *joined = memory_new(bytes, 1, "a file name");
    snprintf(joined, bytes, "%s%s%s", first, second, third);
    return joined;
}

/* NAME.train_gpt2-<16 hex digits>.tmp, another one each time. */
static char *next_name(const char *name) {
    static uint64_t count;
    struct timespec now;
    char digits[INFIX + HEX + 1];
    clock_gettime(CLOCK_REALTIME, &now);
    // Time, process and a count: two processes, or two outputs of one process in the same nanosecond, get different
    // names.
    uint64_t number = hash_mix((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    number = hash_mix(number ^ (uint64_t)getpid() << 32 ^ count++);
    snprintf(digits, sizeof digits, "%s%016" PRIx64, infix, number);
    return join(name, digits, suffix);
}

/* The locked mark of a directory just made. -1 with errno; ENOENT when another process took the directory, which
 * was not yet marked, for a leftover and removed it. */
static int make_mark(const char *directory) {
    char *path = join(directory, "/", mark_name);
    int mark, failure;
    do mark = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    while (mark < 0 && errno == EINTR);
    failure = errno;
    if (mark >= 0) {
        failure = 0;
        // clean_one of another process may have opened the new mark and locked it first: it is about to remove the
        // directory
        if (lock_descriptor(mark) == EWOULDBLOCK) failure = ENOENT; // it is being removed
        struct stat status;
        if (!failure && fstat(mark, &status) == 0 && status.st_nlink == 0) failure = ENOENT; // it was
        while (!failure && write(mark, mark_text, sizeof mark_text - 1) < 0) // for people: a part may be missing
            if (errno != EINTR) failure = errno;
        if (failure) close(mark), unlink(path);
    }
    free(path);
    errno = failure;
    return failure ? -1 : mark;
}

int temporary_make(Temporary *temporary, const char *name) {
    // EEXIST: the name is taken. ENOENT: another process removed the directory before it had its mark. Both are tried
    // again with a new name; any other failure is final.
    int failure = EEXIST;
    for (int i = 0; i < TRIES && (failure == EEXIST || failure == ENOENT); i++) {
        char *directory = next_name(name);
        bool made = mkdir(directory, 0700) == 0;
        failure = made ? 0 : errno;
        int mark = made ? make_mark(directory) : -1;
        if (mark >= 0) {
            *temporary = (Temporary){directory, join(directory, "/", content_name), mark};
            remember(directory);
            return 0;
        }
        if (made) {
            failure = errno;
            rmdir(directory);
        } else if (failure == ENOENT) {
            i = TRIES; // NAME's own directory is missing
        }
        free(directory);
    }
    return failure;
}

int temporary_remove(Temporary *temporary) {
    int directory = open_directory(AT_FDCWD, temporary->directory);
    int failure = directory < 0 ? errno : remove_opened(directory, temporary->directory);
    if (directory >= 0) close(directory);
    close(temporary->mark); // and with it the lock
    free(temporary->content);
    free(temporary->directory);
    *temporary = (Temporary){.mark = -1};
    remember(NULL);
    return failure;
}

// ---------------------------------------------------------------------------------------------
// What others left

/* Whether an entry is called as next_name calls it; name NULL: of any NAME. */
static bool is_temporary_name(const char *entry, const char *name) {
    // The tail ".train_gpt2-0123456789abcdef.tmp" has a fixed length, 12 + 16 + 4, so it is found from the end: NAME
    // may itself contain such text.
    size_t length = strlen(entry), tail = INFIX + HEX + SUFFIX;
    if (length <= tail || strcmp(entry + length - SUFFIX, suffix) != 0) return false;
    const char *middle = entry + length - tail;
    if (strncmp(middle, infix, INFIX) != 0 || strspn(middle + INFIX, "0123456789abcdef") != HEX) return false;
    return !name || (strlen(name) == length - tail && strncmp(entry, name, length - tail) == 0);
}

/* Removes one if it has the mark, is this user's, and no process holds its lock. An empty one goes as well: its
 * process was killed before it could mark it. */
static void clean_one(const char *path) {
    struct stat status;
    int directory = open_directory(AT_FDCWD, path);
    if (directory < 0) return;
    int mark = openat(directory, mark_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    // The lock is held until the mark is closed below, so that two processes do not remove one directory at the same
    // time.
    if (mark >= 0 && fstat(directory, &status) == 0 && status.st_uid == geteuid() && lock_descriptor(mark) == 0)
        remove_opened(directory, path);
    else if (mark < 0)
        // rmdir refuses a directory that is not empty: content without a mark is not ours
        rmdir(path);
    if (mark >= 0) close(mark);
    close(directory);
}

void temporary_clean(const char *path, const char *name) {
    DIR *directory = opendir(path);
    if (!directory) return; // a leftover does no harm
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (!is_temporary_name(entry->d_name, name)) continue;
        char *rest = join(path, "/", entry->d_name);
        clean_one(rest);
        free(rest);
    }
    closedir(directory);
}

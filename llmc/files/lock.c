/* lock.c: see lock.h. flock and not fcntl: a lock of fcntl is lost as soon as any descriptor of the file
 * is closed. */
#define _GNU_SOURCE // O_NOFOLLOW
#include "lock.h"

#include "../base/activity.h"
#include "../base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// flock(2) waits for ever or not at all, so to wait for a limited time is to try once in each turn
enum { TURN_MS = 20 };

struct Lock {
    int descriptor;
    char *path;
};

int lock_descriptor(int descriptor) {
    // EINTR: a signal came; EWOULDBLOCK: another process has the lock
    while (flock(descriptor, LOCK_EX | LOCK_NB) != 0)
        if (errno != EINTR) return errno;
    return 0;
}

/* Whether a path leads to the file that is open. */
static bool leads_to(const char *path, int descriptor) {
    // Device and inode identify a file: they stay when it is renamed, and a new file of the same name has others.
    struct stat named, opened;
    return stat(path, &named) == 0 && fstat(descriptor, &opened) == 0 && named.st_dev == opened.st_dev &&
           named.st_ino == opened.st_ino;
}

/* The open lock file, or -1 with errno. It will be written to, so it must be a file of its own. */
static int open_file(const char *path) {
    int descriptor;
    struct stat status;
    // O_NOFOLLOW: a link might lead to a file that must not be overwritten. O_NONBLOCK: opening must never wait.
    do descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0) return -1;
    int failure = fstat(descriptor, &status) != 0 ? errno : !S_ISREG(status.st_mode) ? EINVAL : 0;
    // a second name (a hard link) shows that it may be a user's file, which signing would overwrite
    if (!failure && status.st_nlink > 1) failure = EMLINK;
    if (!failure) return descriptor;
    close(descriptor);
    errno = failure;
    return -1;
}

/* Writes into the file who holds it. Only people read this: the lock holds even if writing fails. */
static void sign(int descriptor) {
    char text[LOCK_HOLDER], host[100] = "";
    if (gethostname(host, sizeof host - 1) != 0 || !host[0]) strcpy(host, "an unknown host");
    int bytes = snprintf(text, sizeof text, "process %ld on %s\n", (long)getpid(), host);
    // cut first: the text of the holder before may be longer
    if (ftruncate(descriptor, 0) == 0 && pwrite(descriptor, text, (size_t)bytes, 0) != bytes) errno = 0;
}

static void read_holder(int descriptor, char holder[LOCK_HOLDER]) {
    ssize_t bytes = pread(descriptor, holder, LOCK_HOLDER - 1, 0);
    holder[bytes > 0 ? bytes : 0] = '\0';
    holder[strcspn(holder, "\n")] = '\0';
    // empty: the holder has taken the lock, but has not signed yet
    if (!holder[0]) strcpy(holder, "another process");
}

/* One try. Returns 0 with the descriptor, or an errno. */
static int try_once(const char *path, int *descriptor, char holder[LOCK_HOLDER]) {
    for (;;) {
        *descriptor = open_file(path);
        if (*descriptor < 0) return errno;
        int failure = lock_descriptor(*descriptor);
        if (failure == EWOULDBLOCK) read_holder(*descriptor, holder);
        // a lock on a file that lost its name excludes nobody: the next process would create a new file and lock that
        if (!failure && leads_to(path, *descriptor)) return 0;
        close(*descriptor);
        if (failure) return failure;
        // the file was removed between open and flock: the lock is the file that is there now
    }
}

int lock_take(const char *path, double seconds, Lock **lock, char holder[LOCK_HOLDER]) {
    const struct timespec turn = {.tv_nsec = TURN_MS * 1000000L};
    int descriptor, failure;
    // 2 seconds are 100 turns of 20 ms after the first try; 0 seconds: one try only
    for (long turns = (long)(seconds * 1000 / TURN_MS);; turns--) {
        failure = try_once(path, &descriptor, holder);
        if (failure != EWOULDBLOCK || turns <= 0) break;
        activity_tick(); // to wait here is not a hang
        nanosleep(&turn, NULL);
    }
    if (failure) return failure;
    sign(descriptor);
    *lock = memory_new(1, sizeof **lock, "a lock");
    (*lock)->descriptor = descriptor;
    (*lock)->path = memory_string(path);
    return 0;
}

bool lock_is_in_place(const Lock *lock) { return leads_to(lock->path, lock->descriptor); }

void lock_release(Lock *lock) {
    if (!lock) return;
    // Closing releases the lock. The file stays: to remove it after that could take the name from a process that has
    // just locked it, and a third one would lock a new file.
    close(lock->descriptor);
    free(lock->path);
    free(lock);
}

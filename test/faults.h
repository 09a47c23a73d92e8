/* faults.h: file calls that fail when a test wants them to. The program under test is not changed:
 * these definitions of open, write, ... stand before the C library's when a test is linked.
 *
 * faults_arm(n, KIND) makes the n-th call from now on (1, 2, ...) misbehave; faults_calls counts.
 * Only calls that take a path or a descriptor above 2 count, so that messages still get out. faults_trace has a
 * letter for each of them: o(pen), w(rite), r(ead), s(ync of a file), D (sync of a directory), n (rename), m(kdir),
 * t(runcate). */
#ifndef FAULTS_H
#define FAULTS_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef enum {
    FAULT_NONE,
    FAULT_IO,          // that call fails with EIO
    FAULT_FULL,        // that call, and every write after it, fails with ENOSPC
    FAULT_KILL,        // the process is killed (SIGKILL) just before that call
    FAULT_SHORT_WRITE, // from that call on, writes take half of what they are given
    FAULT_SIGNAL,      // that call fails with EINTR, as when a signal comes: it is to be repeated
} FaultKind;

static const char *const fault_names[] = {"none",    "EIO",         "ENOSPC",
                                          "SIGKILL", "short write", "EINTR"};

static long faults_calls, faults_at;
static FaultKind faults_kind;

static char faults_trace[1024];

/* Notes the next call that counts. */
static void faults_note(char letter) {
    if (faults_calls < (long)sizeof faults_trace - 1) faults_trace[faults_calls] = letter;
}

__attribute__((unused)) static void faults_arm(long at, FaultKind kind) {
    memset(faults_trace, 0, sizeof faults_trace);
    faults_calls = 0;
    faults_at = at;
    faults_kind = kind;
}

/* Counts a call; true when it shall fail, with errno set. */
static int faults_strike(int writes) {
    faults_calls++;
    if (faults_kind == FAULT_FULL && writes && faults_at && faults_calls > faults_at) {
        errno = ENOSPC;
        return 1;
    }
    if (faults_kind == FAULT_NONE || faults_kind == FAULT_SHORT_WRITE || faults_calls != faults_at)
        return 0;
    if (faults_kind == FAULT_KILL) kill(getpid(), SIGKILL);
    errno = faults_kind == FAULT_IO ? EIO : faults_kind == FAULT_SIGNAL ? EINTR : ENOSPC;
    return 1;
}

int open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    faults_note('o');
    if (faults_strike(flags & O_CREAT)) return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t write(int descriptor, const void *data, size_t bytes) {
    if (descriptor > 2) {
        faults_note('w');
        if (faults_strike(1)) return -1;
        if (faults_kind == FAULT_SHORT_WRITE && faults_calls >= faults_at) bytes = (bytes + 1) / 2;
    }
    return syscall(SYS_write, descriptor, data, bytes);
}

ssize_t read(int descriptor, void *data, size_t bytes) {
    if (descriptor > 2) faults_note('r');
    if (descriptor > 2 && faults_strike(0)) return -1;
    return syscall(SYS_read, descriptor, data, bytes);
}

ssize_t pread(int descriptor, void *data, size_t bytes, off_t at) {
    faults_note('r');
    if (faults_strike(0)) return -1;
    return syscall(SYS_pread64, descriptor, data, bytes, at);
}

/* Counted, but the disk is spared: no test cuts the power. */
int fsync(int descriptor) {
    struct stat status;
    faults_note(fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode) ? 'D' : 's');
    return faults_strike(0) ? -1 : 0;
}

int rename(const char *from, const char *to) {
    faults_note('n');
    if (faults_strike(0)) return -1;
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int mkdir(const char *path, mode_t mode) {
    faults_note('m');
    if (faults_strike(1)) return -1;
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int ftruncate(int descriptor, off_t bytes) {
    faults_note('t');
    if (faults_strike(0)) return -1;
    return (int)syscall(SYS_ftruncate, descriptor, bytes);
}

#endif

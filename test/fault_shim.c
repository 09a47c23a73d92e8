/* fault_shim.c: calls of the C library that fail when a test wants them to, in a program that is not changed:
 * LD_PRELOAD=build/fault_shim.so, and the environment says what happens.
 *
 *   FAULT_CALL=write    which functions: open (and openat), opendir, readdir, read, pread, write (pwrite), fsync,
 *                       close, rename (link), mmap, calloc (realloc), mkdir, ftruncate, unlink (unlinkat),
 *                       stat (fstat, lstat, access), sendto
 *   FAULT_AT=7          its 7th call fails (with FAULT_ON=1 all from there on); 0: none
 *   FAULT_KIND=EIO      how: EIO, ENOSPC, ENOMEM, EMFILE, EACCES, EINTR; short: half of what was asked for;
 *                       drop: says it did, and did not; hang: never returns; kill: the process is killed before
 *   FAULT_UNDER=/dir    count only calls with a path (or the file of a descriptor) that begins so
 *   FAULT_RANK=1        only in this rank of Open MPI's
 *   FAULT_COUNT=file    how many calls there were is added to it as a line "write 31" for each function
 *
 * Only the program's own calls are seen, not those inside the C library. Linux. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OPEN,
    OPENDIR,
    READ,
    PREAD,
    WRITE,
    FSYNC,
    CLOSE,
    RENAME,
    MMAP,
    CALLOC,
    MKDIR,
    FTRUNCATE,
    UNLINK,
    SENDTO,
    READDIR,
    STAT,
    CALLS
};
static const char *const call_names[CALLS] = {"open",   "opendir", "read",    "pread",  "write", "fsync",
                                              "close",  "rename",  "mmap",    "calloc", "mkdir", "ftruncate",
                                              "unlink", "sendto",  "readdir", "stat"};

static const struct {
    const char *name;
    int number;
} errors[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"ENOMEM", ENOMEM},
              {"EMFILE", EMFILE}, {"EACCES", EACCES}, {"EINTR", EINTR}};

static bool ready;
static int chosen = -1, error_number;
static long at;
static bool from_there_on, halves, drops, hangs, kills;
static const char *under, *count_file;
static atomic_long counts[CALLS];

static void read_environment(void) {
    const char *call = getenv("FAULT_CALL"), *kind = getenv("FAULT_KIND"), *rank = getenv("FAULT_RANK");
    const char *mine = getenv("OMPI_COMM_WORLD_RANK"), *nth = getenv("FAULT_AT"), *on = getenv("FAULT_ON");
    for (int i = 0; i < CALLS; i++)
        if (call && strcmp(call, call_names[i]) == 0) chosen = i;
    for (size_t i = 0; kind && i < sizeof errors / sizeof *errors; i++)
        if (strcmp(kind, errors[i].name) == 0) error_number = errors[i].number;
    halves = kind && strcmp(kind, "short") == 0;
    drops = kind && strcmp(kind, "drop") == 0;
    hangs = kind && strcmp(kind, "hang") == 0;
    kills = kind && strcmp(kind, "kill") == 0;
    at = nth ? atol(nth) : 0;
    from_there_on = on && *on == '1';
    if (rank && (!mine || strcmp(rank, mine) != 0)) at = 0;
    under = getenv("FAULT_UNDER");
    count_file = getenv("FAULT_COUNT");
    ready = true;
}

__attribute__((constructor)) static void begin(void) { read_environment(); }

__attribute__((destructor)) static void write_counts(void) {
    FILE *file = count_file ? fopen(count_file, "a") : NULL;
    for (int i = 0; file && i < CALLS; i++) fprintf(file, "%s %ld\n", call_names[i], atomic_load(&counts[i]));
    if (file) fclose(file);
}

static bool path_counts(const char *path) { return !under || (path && strncmp(path, under, strlen(under)) == 0); }

static bool descriptor_counts(int descriptor) {
    if (!under) return true;
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    ssize_t n = readlink(name, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    return path_counts(path);
}

/* Counts a call. True when it shall misbehave; does not return where that means the end. */
static bool strikes(int call) {
    if (!ready) return false;
    long n = atomic_fetch_add(&counts[call], 1) + 1;
    if (call != chosen || at == 0 || (from_there_on ? n < at : n != at)) return false;
    if (kills) kill(getpid(), SIGKILL);
    while (hangs) pause();
    errno = error_number;
    return true;
}

/* Whether a caller is in the program itself, not in a library that it uses. */
static bool is_program(const void *caller) {
    Dl_info info;
    return dladdr(caller, &info) && (char *)info.dli_fbase + sizeof(ElfW(Ehdr)) == (char *)getauxval(AT_PHDR);
}
#define OURS (ready && (at || count_file) && is_program(__builtin_return_address(0)))

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
/* The call's own result, unless it fails with -1. */
#define FAIL(call, counted)                                                                                        \
    if ((counted) && strikes(call) && !halves) return -1

int open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    FAIL(OPEN, path_counts(path));
    return REAL(openat)(AT_FDCWD, path, flags, mode);
}
DIR *opendir(const char *path) {
    if (path_counts(path) && strikes(OPENDIR)) return NULL;
    return REAL(opendir)(path);
}
static size_t half(size_t bytes) { return bytes > 1 ? bytes / 2 : bytes; }
ssize_t read(int descriptor, void *data, size_t bytes) {
    if (descriptor_counts(descriptor) && strikes(READ)) {
        if (!halves) return -1;
        bytes = half(bytes);
    }
    return REAL(read)(descriptor, data, bytes);
}
ssize_t pread(int descriptor, void *data, size_t bytes, off_t first) {
    if (descriptor_counts(descriptor) && strikes(PREAD)) {
        if (!halves) return -1;
        bytes = half(bytes);
    }
    return REAL(pread)(descriptor, data, bytes, first);
}
ssize_t write(int descriptor, const void *data, size_t bytes) {
    if (descriptor_counts(descriptor) && strikes(WRITE)) {
        if (!halves) return -1;
        bytes = half(bytes);
    }
    return REAL(write)(descriptor, data, bytes);
}
int fsync(int descriptor) {
    FAIL(FSYNC, descriptor_counts(descriptor));
    return 0; // no test cuts the power: the disk is spared
}
int close(int descriptor) {
    bool counted = descriptor_counts(descriptor); // the descriptor is gone, whatever close returns
    int result = REAL(close)(descriptor);
    FAIL(CLOSE, counted);
    return result;
}
int rename(const char *from, const char *to) {
    FAIL(RENAME, path_counts(to));
    return REAL(rename)(from, to);
}
void *mmap(void *where, size_t bytes, int protection, int flags, int descriptor, off_t first) {
    if ((!under || descriptor >= 0) && descriptor_counts(descriptor) && strikes(MMAP)) return MAP_FAILED;
    return REAL(mmap)(where, bytes, protection, flags, descriptor, first);
}
void *__libc_calloc(size_t count, size_t size); // glibc's own: dlsym itself needs calloc
void *calloc(size_t count, size_t size) {
    if (!under && OURS && strikes(CALLOC)) return NULL;
    return __libc_calloc(count, size);
}
int mkdir(const char *path, mode_t mode) {
    FAIL(MKDIR, path_counts(path));
    return REAL(mkdir)(path, mode);
}
int ftruncate(int descriptor, off_t bytes) {
    FAIL(FTRUNCATE, descriptor_counts(descriptor));
    return REAL(ftruncate)(descriptor, bytes);
}
int unlink(const char *path) {
    FAIL(UNLINK, path_counts(path));
    return REAL(unlink)(path);
}
ssize_t sendto(int descriptor, const void *data, size_t bytes, int flags, const struct sockaddr *to,
               socklen_t size) {
    if (strikes(SENDTO)) return drops ? (ssize_t)bytes : -1;
    return REAL(sendto)(descriptor, data, bytes, flags, to, size);
}

// ---- the same under other names

/* Whether a path counts that begins at an open directory. */
static bool place_counts(int directory, const char *path) {
    return path[0] == '/' || directory == AT_FDCWD ? path_counts(path) : descriptor_counts(directory);
}
int openat(int directory, const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    FAIL(OPEN, place_counts(directory, path));
    return REAL(openat)(directory, path, flags, mode);
}
ssize_t pwrite(int descriptor, const void *data, size_t bytes, off_t first) {
    if (descriptor_counts(descriptor) && strikes(WRITE)) {
        if (!halves) return -1;
        bytes = half(bytes);
    }
    return REAL(pwrite)(descriptor, data, bytes, first);
}
int link(const char *from, const char *to) {
    FAIL(RENAME, path_counts(to));
    return REAL(link)(from, to);
}
int unlinkat(int directory, const char *path, int flags) {
    FAIL(UNLINK, place_counts(directory, path));
    return REAL(unlinkat)(directory, path, flags);
}
struct dirent *readdir(DIR *directory) {
    if (descriptor_counts(dirfd(directory)) && strikes(READDIR)) return NULL;
    return REAL(readdir)(directory);
}
int fstat(int descriptor, struct stat *status) {
    FAIL(STAT, descriptor_counts(descriptor));
    return REAL(fstat)(descriptor, status);
}
int stat(const char *path, struct stat *status) {
    FAIL(STAT, path_counts(path));
    return REAL(stat)(path, status);
}
int lstat(const char *path, struct stat *status) {
    FAIL(STAT, path_counts(path));
    return REAL(lstat)(path, status);
}
int access(const char *path, int mode) {
    FAIL(STAT, path_counts(path));
    return REAL(access)(path, mode);
}
void *__libc_realloc(void *block, size_t bytes);
void *realloc(void *block, size_t bytes) {
    if (!under && OURS && strikes(CALLOC)) return NULL;
    return __libc_realloc(block, bytes);
}

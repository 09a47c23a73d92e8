/* input.c: see input.h. */
#include "input.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../base/edit_distance.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes: a multiple of every page size, and the size of a huge page on x86 and most ARM. */
enum { WINDOW = 2 << 20 };

struct File {
    const char *path;
    unsigned char *bytes; // the mapping; NULL for an empty file
    size_t size;
    File *next; // of the open files
};

// all files that are mapped: when a page cannot be read, the handler below looks up whose it is
static File *open_files;

/* The pages that this process may hold: bytes from .. to of one file. */
static struct {
    File *file;
    size_t from, to;
} window;

// ---- a file that shrinks while it is mapped ---------------------------------------------------

static struct sigaction inherited; // what SIGBUS did before

/* Reading a mapped page beyond the file's present end raises SIGBUS in the reading thread: in our
 * own code, outside of the C library, so that fatal() may be called although this is a signal
 * handler. A fault elsewhere is a defect: it happens again under the former action. */
static void on_bus_error(int signal, siginfo_t *info, void *context) {
    (void)context;
    const unsigned char *address = info->si_addr;
    for (const File *file = open_files; file; file = file->next)
        if (file->bytes && address >= file->bytes && address < file->bytes + file->size)
            fatal(EXIT_INPUT,
                  "%s: byte %zu of %zu can no longer be read: the file was cut while in use, or "
                  "its disk fails; leave data in place while training",
                  file->path, (size_t)(address - file->bytes), file->size);
    sigaction(signal, &inherited, NULL);
}

// Installs the handler, once, with the first file.
static void watch_bus_errors(void) {
    static bool watched;
    if (watched) return;
    watched = true;
    // SA_SIGINFO: the handler is told the address that could not be read
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &inherited);
}

// ---- opening ----------------------------------------------------------------------------------

/* Ends the program where `path` is a link that leads nowhere. */
static void refuse_dangling(const char *path) {
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    // not a link: the caller knows what to say
    if (length < 0) return;
    target[length] = '\0';
    fatal(EXIT_INPUT, "%s: is a link to %s, which does not exist; fetch that file, or correct the link", path, target);
}

/* Ends the program because `path` does not exist; names the file beside it that may have been meant. */
static _Noreturn void missing(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char folder[PATH_MAX], best[NAME_MAX + 1] = "";
    // the directory with its slash: "data/" for "data/a.bin", "./" for a bare name
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash + 1 - path) : 2,
             slash ? path : "./");
    refuse_dangling(path);
    // Looks for the name with the fewest slips of typing. One more than slip_distance allows: such a name is never
    // taken.
    int least = slip_distance(name) + 1;
    DIR *directory = opendir(folder);
    if (!directory)
        fatal(EXIT_INPUT, "%s: no such file: there is no directory %s; check the path", path,
              folder);
    for (struct dirent *entry; (entry = readdir(directory));) {
        int distance = edit_distance(name, entry->d_name);
        // hidden files are proposed only where a hidden one was asked for
        if (entry->d_name[0] == '.' && name[0] != '.') continue;
        // of equally near names the first in the alphabet, since readdir lists in no order
        if (distance > least || (distance == least && strcmp(entry->d_name, best) >= 0)) continue;
        least = distance;
        snprintf(best, sizeof best, "%s", entry->d_name);
    }
    closedir(directory);
    if (!best[0]) fatal(EXIT_INPUT, "%s: no such file; check the path", path);
    fatal(EXIT_INPUT, "%s: no such file; did you mean %s%s?", path, slash ? folder : "", best);
}

/* An open descriptor of a regular file, and its size. */
static int open_regular(const char *path, size_t *size) {
    int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe without a writer must not hang us
    if (fd < 0 && errno == ENOENT) missing(path);
    if (fd < 0)
        fatal(EXIT_INPUT, "%s: cannot be read: %s; check its path and permissions", path,
              strerror(errno));
    struct stat status;
    if (fstat(fd, &status) != 0) fatal(EXIT_INPUT, "%s: cannot be read: %s", path, strerror(errno));
    // only a regular file has a size and can be mapped; a pipe can be read with byte_stream.h
    if (!S_ISREG(status.st_mode))
        fatal(EXIT_INPUT, "%s: is a %s, but a regular file is expected%s", path,
              S_ISDIR(status.st_mode) ? "directory" : "pipe or device",
              S_ISDIR(status.st_mode) ? "" : "; save its output to a file");
    *size = (size_t)status.st_size;
    return fd;
}

File *file_open(const char *path) {
    File *file = memory_new(1, sizeof *file, path);
    file->path = path;
    int fd = open_regular(path, &file->size);
    // mmap refuses a length of 0, so an empty file has no mapping
    if (file->size) {
        void *bytes = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED)
            fatal(EXIT_RUNTIME, "%s: %zu bytes cannot be mapped: %s", path, file->size,
                  strerror(errno));
        file->bytes = bytes;
    }
    // the mapping stays valid without the descriptor
    close(fd);
    watch_bus_errors();
    file->next = open_files;
    open_files = file;
    return file;
}

void file_close(File *file) {
    if (!file) return;
    // link: the pointer that leads to this file, the head of the list or `next` of the file before
    File **link = &open_files;
    while (*link != file) link = &(*link)->next;
    *link = file->next;
    if (window.file == file) window.file = NULL;
    if (file->bytes) munmap(file->bytes, file->size);
    free(file);
}

const char *file_path(const File *file) { return file->path; }

size_t file_size(const File *file) { return file->size; }

// ---- reading ----------------------------------------------------------------------------------

/* Moves the window to offset .. offset+count of a file. The pages it leaves stay valid and in the
 * page cache, but no longer count as this process's memory. */
static void move_window(File *file, size_t offset, size_t count) {
    if (window.file)
        madvise(window.file->bytes + window.from, window.to - window.from, MADV_DONTNEED);
    // Both ends of the window are multiples of WINDOW, or the end of the file: bytes 5 MiB .. 5.5 MiB of a large file
    // get the window 4 MiB .. 6 MiB. Small reads that follow each other then move it only once in 2 MiB.
    size_t rest = file->size - (offset + count), pad = WINDOW - (offset + count) % WINDOW;
    window.file = file;
    window.from = offset - offset % WINDOW;
    window.to = offset + count + (pad < rest ? pad : rest);
}

const unsigned char *file_at(File *file, size_t offset, size_t count) {
    // subtracted, not added: offset and count may come from a damaged header, and their sum could wrap
    if (offset > file->size || count > file->size - offset)
        fatal(EXIT_INPUT,
              "%s: size is %zu bytes, but %zu bytes at byte %zu are expected: is it cut?",
              file->path, file->size, count, offset);
    // never NULL, even for an empty file: memcpy and json_read take the pointer as it is
    if (count == 0) return (const unsigned char *)"";
    if (file != window.file || offset < window.from || offset + count > window.to)
        move_window(file, offset, count);
    return file->bytes + offset;
}

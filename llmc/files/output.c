/* output.c: see output.h. */
#define _GNU_SOURCE
#include "output.h"

#include "../base/error.h"
#include "../base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BUFFER_BYTES = 1 << 18,
    SEND_BYTES = 1 << 23, // the disk starts on so many bytes while the next are being made
};

struct Output {
    char *name, *temporary;
    OutputKind kind;
    bool renamed;
};

struct OutputFile {
    Output *output;
    char *path;
    int descriptor;
    unsigned char *buffer; // (BUFFER_BYTES), of which the first `used` wait to be written
    size_t used;
    uint64_t written, sent;
    FileChecksummer sum; // of what was written
};

/* "first" + "second" + "third"; free() releases it. */
static char *join(const char *first, const char *second, const char *third) {
    size_t bytes = strlen(first) + strlen(second) + strlen(third) + 1;
    char *joined = memory_new(bytes, 1, "a file name");
    snprintf(joined, bytes, "%s%s%s", first, second, third);
    return joined;
}

// ---------------------------------------------------------------------------------------------
// Removing

/* Removes a file, or a directory of plain files. Returns 0 or an errno. */
static int remove_all(const char *path) {
    struct stat status;
    if (lstat(path, &status) != 0) return errno == ENOENT || errno == ENOTDIR ? 0 : errno;
    if (!S_ISDIR(status.st_mode)) return unlink(path) == 0 ? 0 : errno;
    DIR *directory = opendir(path);
    if (!directory) return errno;
    int failure = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (unlinkat(dirfd(directory), entry->d_name, 0) != 0) failure = errno;
    }
    closedir(directory);
    return rmdir(path) == 0 ? 0 : failure ? failure : errno;
}

int output_remove_unfinished(const char *name) {
    char *temporary = join(name, ".tmp", "");
    int failure = remove_all(temporary);
    free(temporary);
    return failure;
}

int output_remove(const char *name) {
    char *temporary = join(name, ".tmp", "");
    int failure = output_remove_unfinished(name);
    if (!failure) failure = rename(name, temporary) == 0 ? remove_all(temporary) : errno;
    free(temporary);
    return failure;
}

/* The end of an output that could not be written. The reason is in errno. */
_Noreturn static void fail(const Output *output, const char *doing, const char *path) {
    int reason = errno;
    if (!output->renamed) remove_all(output->temporary);
    const char *advice =
        reason == ENOSPC || reason == EDQUOT ? "; free some space, then try again" : "";
    fatal(EXIT_RUNTIME, "%s: cannot %s: %s; %s is %s%s", path, doing, strerror(reason),
          output->name, output->renamed ? "there, but may not survive a power cut" : "not written",
          advice);
}

// ---------------------------------------------------------------------------------------------
// Writing

/* Makes what was renamed, created or removed in a directory last. */
static void sync_directory(const Output *output, const char *path) {
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) fail(output, "open the directory", path);
    // EINVAL: a file system that has nothing to sync for a directory
    if (fsync(descriptor) != 0 && errno != EINVAL) fail(output, "sync the directory", path);
    close(descriptor);
}

Output *output_begin(const char *name, OutputKind kind) {
    Output *output = memory_new(1, sizeof *output, "an output");
    output->name = memory_string(name);
    output->temporary = join(name, ".tmp", "");
    output->kind = kind;
    int failure = remove_all(output->temporary);
    if (failure)
        fatal(EXIT_RUNTIME, "%s: cannot remove what an interrupted run left: %s", output->temporary,
              strerror(failure));
    if (kind == OUTPUT_DIRECTORY && access(name, F_OK) == 0)
        fatal(EXIT_RUNTIME, "%s: exists already; move it away or choose another name", name);
    if (kind == OUTPUT_DIRECTORY && mkdir(output->temporary, 0777) != 0)
        fail(output, "make the directory", output->temporary);
    return output;
}

OutputFile *output_open(Output *output, const char *name) {
    OutputFile *file = memory_new(1, sizeof *file, "an output file");
    file->output = output;
    file->path = name ? join(output->temporary, "/", name) : memory_string(output->temporary);
    file->buffer = memory_new(BUFFER_BYTES, 1, "the buffer of an output file");
    file_checksum_begin(&file->sum);
    file->descriptor = open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file->descriptor < 0) fail(output, "create", file->path);
    return file;
}

/* Asks the system to start writing what it holds of the file, so that the sync at the end is short. */
static void send(OutputFile *file) {
    if (file->written - file->sent < SEND_BYTES) return;
#ifdef SYNC_FILE_RANGE_WRITE
    off_t from = (off_t)file->sent, bytes = (off_t)(file->written - file->sent);
    sync_file_range(file->descriptor, from, bytes,
                    SYNC_FILE_RANGE_WRITE); // a wish: no harm in failing
#endif
    file->sent = file->written;
}

static void write_all(OutputFile *file, const unsigned char *data, size_t bytes) {
    file_checksum_add(&file->sum, data, bytes);
    file->written += bytes;
    while (bytes > 0) {
        ssize_t n = write(file->descriptor, data, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO;
        if (n <= 0) fail(file->output, "write", file->path);
        data += n, bytes -= (size_t)n;
    }
    send(file);
}

void output_write(OutputFile *file, const void *data, size_t bytes) {
    if (bytes > BUFFER_BYTES - file->used) {
        write_all(file, file->buffer, file->used);
        file->used = 0;
    }
    if (bytes >= BUFFER_BYTES) {
        write_all(file, data, bytes);
    } else {
        memcpy(file->buffer + file->used, data, bytes);
        file->used += bytes;
    }
}

void output_print(OutputFile *file, const char *format, ...) {
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int bytes = vasprintf(&text, format, args);
    va_end(args);
    if (bytes < 0) fail(file->output, "format text for", file->path);
    output_write(file, text, (size_t)bytes);
    free(text);
}

FileChecksum output_close(OutputFile *file) {
    write_all(file, file->buffer, file->used);
    file->used = 0;
    if (fsync(file->descriptor) != 0) fail(file->output, "sync to the disk", file->path);
    if (close(file->descriptor) != 0) fail(file->output, "close", file->path);
    FileChecksum sum = file_checksum_value(&file->sum);
    free(file->buffer);
    free(file->path);
    free(file);
    return sum;
}

void output_commit(Output *output) {
    if (output->kind == OUTPUT_DIRECTORY) sync_directory(output, output->temporary);
    if (rename(output->temporary, output->name) != 0)
        fail(output, "rename to its name", output->name);
    output->renamed = true;
    char *parent = memory_string(output->name);
    char *slash = strrchr(parent, '/');
    if (slash) slash[slash == parent] = '\0';
    sync_directory(output, slash ? parent : ".");
    free(parent);
    free(output->temporary);
    free(output->name);
    free(output);
}

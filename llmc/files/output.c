/* output.c: see output.h. */
#define _GNU_SOURCE
#include "output.h"

#include "../base/activity.h"
#include "../base/error.h"
#include "../base/memory.h"
#include "path.h"
#include "temporary.h"

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
    SEND_BYTES = 1 << 23, // the disk starts to write this many bytes while the next are being computed
};

struct Output {
    char *name, *parent; // parent: the directory that it will be in
    Temporary temporary;
    OutputKind kind;
    bool renamed;
};

struct OutputFile {
    Output *output;
    char *path;
    int descriptor;
    unsigned char *buffer; // (BUFFER_BYTES), of which the first `used` wait to be written
    size_t used;
    // bytes given to the system, and how many of these it was asked to start writing
    uint64_t written, sent;
    FileChecksummer sum; // of what was written
};

// ---------------------------------------------------------------------------------------------
// Removing

int output_remove(const char *name) {
    Temporary temporary;
    int failure = temporary_make(&temporary, name);
    if (failure) return failure;
    // After this rename the name is free. If removing then fails, a marked directory is left, which temporary_clean
    // removes later.
    if (rename(name, temporary.content) != 0) failure = errno;
    int left = temporary_remove(&temporary);
    return failure ? failure : left;
}

/* The end of an output that could not be written. The reason is in errno. */
_Noreturn static void fail(Output *output, const char *doing, const char *path) {
    // kept, because the calls below change errno
    int reason = errno;
    char *where = memory_string(path); // which may be a path in the temporary directory
    temporary_remove(&output->temporary);
    const char *advice = reason == ENOSPC || reason == EDQUOT ? "; free some space, then try again"
                         : reason == EFBIG ? "; raise the limit on the size of files (ulimit -f)"
                                           : "";
    fatal(EXIT_RUNTIME, "%s: cannot %s: %s; %s is %s%s", where, doing, strerror(reason),
          output->name, output->renamed ? "there, but may not survive a power cut" : "not written",
          advice);
}

// ---------------------------------------------------------------------------------------------
// Writing

/* Fsyncs a directory, so that renames, creations and removals in it survive a power cut. */
static void sync_directory(Output *output, const char *path) {
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) fail(output, "open the directory", path);
    // EINVAL: a file system that has nothing to sync for a directory
    if (fsync(descriptor) != 0 && errno != EINVAL) fail(output, "sync the directory", path);
    close(descriptor);
}

/* The directory that `name` is in; free() releases it. */
static char *parent_of(const char *name) {
    char *parent = memory_string(name);
    char *slash = strrchr(parent, '/');
    if (!slash) {
        free(parent);
        return memory_string(".");
    }
    // "/a" has the parent "/", which keeps its slash; "a/b" has "a"
    slash[slash == parent] = '\0';
    return parent;
}

/* Promise 7: what others wrote is never removed, and two that write to one name do not mix. */
Output *output_begin(const char *name, OutputKind kind) {
    Output *output = memory_new(1, sizeof *output, "an output");
    output->name = memory_string(name);
    // "out/" means "out": the temporary directory must be made beside it, not in it
    for (size_t n = strlen(name); n > 1 && name[n - 1] == '/'; n--) output->name[n - 1] = '\0';
    name = output->name;
    output->parent = parent_of(name);
    output->kind = kind;
    const char *slash = strrchr(name, '/');
    // leftovers of killed processes go first: this output may need their space
    temporary_clean(output->parent, slash ? slash + 1 : name);
    // refused before the work begins; for a new file, rename_to_name looks once more at the end
    if (kind != OUTPUT_FILE && path_exists(name))
        fatal(EXIT_RUNTIME, "%s: exists already; move it away or choose another name", name);
    // everything is written beside the target, on the same file system, so that the rename is atomic
    int failure = temporary_make(&output->temporary, name);
    if (failure)
        fatal(EXIT_RUNTIME, "%s.*.tmp: cannot %s: %s; %s is not written", name,
              kind == OUTPUT_DIRECTORY ? "make the directory" : "create", strerror(failure), name);
    if (kind == OUTPUT_DIRECTORY && mkdir(output->temporary.content, 0777) != 0)
        fail(output, "make the directory", output->temporary.content);
    return output;
}

OutputFile *output_open(Output *output, const char *name) {
    OutputFile *file = memory_new(1, sizeof *file, "an output file");
    file->output = output;
    file->path = name ? path_join(output->temporary.content, name) : memory_string(output->temporary.content);
    file->buffer = memory_new(BUFFER_BYTES, 1, "the buffer of an output file");
    file_checksum_begin(&file->sum);
    // O_EXCL: the directory is new and has one owner, so no file of this name can be there
    file->descriptor = open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file->descriptor < 0) fail(output, "create", file->path);
    return file;
}

/* Asks the system to start writing what it holds of the file, so that the sync at the end is short. */
static void send(OutputFile *file) {
    if (file->written - file->sent < SEND_BYTES) return;
// Linux only: elsewhere the sync at the end writes everything
#ifdef SYNC_FILE_RANGE_WRITE
    off_t from = (off_t)file->sent, bytes = (off_t)(file->written - file->sent);
    sync_file_range(file->descriptor, from, bytes,
                    SYNC_FILE_RANGE_WRITE); // a hint: correctness does not depend on it
#endif
    file->sent = file->written;
}

static void write_all(OutputFile *file, const unsigned char *data, size_t bytes) {
    // computed from memory, not from the file: damage on the way to the disk shows when the file is verified
    file_checksum_add(&file->sum, data, bytes);
    file->written += bytes;
    // write(2) may take only a part, or be interrupted before the first byte: the rest is tried again
    while (bytes > 0) {
        activity_tick();
        ssize_t n = write(file->descriptor, data, bytes);
        if (n < 0 && errno == EINTR) continue;
        // neither progress nor an error: to try again could go on for ever
        if (n == 0) errno = EIO;
        if (n <= 0) fail(file->output, "write", file->path);
        data += n, bytes -= (size_t)n;
    }
    send(file);
}

void output_write(OutputFile *file, const void *data, size_t bytes) {
    // it does not fit behind what is buffered, which comes earlier in the file and so is written first
    if (bytes > BUFFER_BYTES - file->used) {
        write_all(file, file->buffer, file->used);
        file->used = 0;
    }
    // a large block, such as a tensor, goes to the system without a copy
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
    // A write may fail after write(2) has returned: fsync and close report it. Only after both may the file get its
    // name.
    if (fsync(file->descriptor) != 0) fail(file->output, "sync to the disk", file->path);
    if (close(file->descriptor) != 0) fail(file->output, "close", file->path);
    FileChecksum sum = file_checksum_value(&file->sum);
    free(file->buffer);
    free(file->path);
    free(file);
    return sum;
}

/* Gives the content its name. Returns 0, or -1 with errno. */
static int rename_to_name(const Output *output) {
    const char *content = output->temporary.content;
    // link, unlike rename, replaces nothing; content itself is removed with the temporary directory
    if (output->kind == OUTPUT_NEW_FILE && link(content, output->name) == 0) return 0;
    if (output->kind == OUTPUT_NEW_FILE && errno == EEXIST) return -1;
    return rename(content, output->name); // (a file system without hard links comes here, too)
}

void output_commit(Output *output) {
    // What NAME is after a power cut:
    //   before the rename               as it was before: absent, or the file that is to be replaced
    //   before the sync of the parent   as it was before, or complete: its entry may not be on the disk yet
    //   after it                        complete
    if (output->kind == OUTPUT_DIRECTORY) sync_directory(output, output->temporary.content);
    // contents are on the disk before the name is; then the directory is fsynced
    if (rename_to_name(output) != 0) fail(output, "rename to its name", output->name);
    output->renamed = true;
    sync_directory(output, output->parent);
    temporary_remove(&output->temporary); // empty now: it does no harm if it stays
    free(output->parent);
    free(output->name);
    free(output);
}

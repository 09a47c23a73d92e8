/* test_output.c: what output.h writes is whole or absent, whichever file call fails, and wherever
 * the process is killed. */
#include "../llmc/files/output.h"

#include "../llmc/base/error.h"
#include "faults.h"
#include "files.h"
#include "test.h"

static unsigned char large[3 * (1 << 20) + 77]; // several buffers

static void write_directory(const char *name) {
    Output *output = output_begin(name, OUTPUT_DIRECTORY);
    OutputFile *file = output_open(output, "large");
    output_write(file, large, 1000);
    output_write(file, large + 1000, sizeof large - 1000);
    FileChecksum sum = output_close(file);
    file = output_open(output, "sums");
    output_print(file, "%llu %016llx\n", (unsigned long long)sum.bytes,
                 (unsigned long long)sum.sum);
    output_close(file);
    output_commit(output);
}

static void write_file(const char *name, const char *text) {
    Output *output = output_begin(name, OUTPUT_FILE);
    OutputFile *file = output_open(output, NULL);
    output_print(file, "%s", text);
    output_close(file);
    output_commit(output);
}

/* The first bytes of a file as a string; "" when there is none. */
static const char *content(const char *path) {
    static char text[256];
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[n] = '\0';
    if (file) fclose(file);
    return text;
}

static bool exists(const char *path) { return access(path, F_OK) == 0; }

/* Whether `name` holds all that write_directory wrote. */
static bool is_whole(const char *name) {
    char path[300], want[64];
    FileChecksummer summer;
    file_checksum_begin(&summer);
    file_checksum_add(&summer, large, sizeof large);
    snprintf(want, sizeof want, "%zu %016llx\n", sizeof large,
             (unsigned long long)file_checksum_value(&summer).sum);
    snprintf(path, sizeof path, "%s/sums", name);
    if (strcmp(content(path), want) != 0) return false;
    snprintf(path, sizeof path, "%s/large", name);
    struct stat status;
    return stat(path, &status) == 0 && status.st_size == (off_t)sizeof large;
}

/* Runs write_directory in a process whose at-th file call misbehaves. Returns its exit code, or 128
 * + the signal that killed it. */
static int run_with_fault(const char *name, long at, FaultKind kind) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(99);
        faults_arm(at, kind);
        write_directory(name);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void fill(void) {
    for (size_t i = 0; i < sizeof large; i++) large[i] = (unsigned char)(i * i >> 7);
}

TEST(whole, "a directory appears with all its files and their sums") {
    fill();
    char name[256];
    strcpy(name, in_folder("whole"));
    write_directory(name);
    CHECK(is_whole(name));
    CHECK(files_matching(files_folder, "whole.") == 0);
    CHECK(output_remove(name) == 0 && !exists(name) && files_matching(files_folder, "whole.") == 0);
}

TEST(nth_call_fails,
     "whichever call fails, with EIO or a full disk: exit 1, no directory, nothing left over") {
    fill();
    char name[256];
    strcpy(name, in_folder("nth"));
    faults_arm(0, FAULT_NONE);
    write_directory(name);
    long calls = faults_calls;
    CHECK(calls >= 12, "%ld calls: mkdir, 2 opens, writes, fsyncs, the rename, the parent", calls);
    CHECK(output_remove(name) == 0);
    for (FaultKind kind = FAULT_IO; kind <= FAULT_FULL; kind++)
        for (long at = 1; at <= calls; at++) {
            int code = run_with_fault(name, at, kind);
            CHECK(code == EXIT_RUNTIME, "%s at call %ld: exit %d", fault_names[kind], at, code);
            bool renamed = at > calls - 2; // only the sync of the parent can fail after the rename
            CHECK(renamed ? is_whole(name) : !exists(name), "%s at %ld", fault_names[kind], at);
            CHECK(files_matching(files_folder, "nth.") == 0, "%s at %ld", fault_names[kind], at);
            CHECK(output_remove(name) == 0 || !renamed);
        }
}

TEST(killed, "killed before any call: absent or whole, and the next attempt cleans up") {
    fill();
    char name[256];
    strcpy(name, in_folder("killed"));
    int code = 137;
    for (long at = 1; code == 137; at++) {
        code = run_with_fault(name, at, FAULT_KILL);
        CHECK(code == 137 || code == 0, "exit %d", code);
        CHECK(!exists(name) || is_whole(name), "killed at call %ld", at);
        if (exists(name)) CHECK(output_remove(name) == 0);
        write_directory(name);
        CHECK(is_whole(name) && files_matching(files_folder, "killed.") == 0);
        CHECK(output_remove(name) == 0);
    }
}

TEST(short_writes, "a system that writes only half of what it is given changes nothing") {
    fill();
    char name[256];
    strcpy(name, in_folder("short"));
    CHECK(run_with_fault(name, 1, FAULT_SHORT_WRITE) == 0);
    CHECK(is_whole(name));
}

TEST(signals, "a write that a signal interrupts is repeated") {
    fill();
    char name[256], trace[sizeof faults_trace];
    strcpy(name, in_folder("signals"));
    faults_arm(0, FAULT_NONE);
    write_directory(name);
    memcpy(trace, faults_trace, sizeof trace);
    CHECK(output_remove(name) == 0);
    int writes = 0;
    for (long at = 1; trace[at - 1]; at++) {
        if (trace[at - 1] != 'w') continue;
        writes++;
        CHECK(run_with_fault(name, at, FAULT_SIGNAL) == 0 && is_whole(name), "call %ld", at);
        CHECK(output_remove(name) == 0);
    }
    CHECK(writes >= 2, "%d writes in %s", writes, trace);
}

TEST(synced, "each file is synced when it is written, their directory before it gets its name, and "
             "its parent after") {
    fill();
    char name[256];
    strcpy(name, in_folder("synced"));
    faults_arm(0, FAULT_NONE);
    write_directory(name);
    const char *named = strchr(faults_trace, 'n');
    CHECK(named && !strchr(named + 1, 'n') && !strchr(named + 1, 'w'),
          "one rename, the last of writes: %s", faults_trace);
    bool unsynced = false, directory = false;
    int files = 0;
    for (const char *c = faults_trace; named && c < named; c++) {
        if (*c == 'w') unsynced = true, directory = false;
        if (*c == 's') unsynced = false;
        if (*c == 'D') directory = true;
        files += *c == 's';
    }
    CHECK(!unsynced, "what was written last is not synced: %s", faults_trace);
    CHECK(files == 2, "%d of two files are synced: %s", files, faults_trace);
    CHECK(directory, "the directory is not synced before its name: %s", faults_trace);
    CHECK(named && strchr(named, 'D'), "nor its parent after: %s", faults_trace);
    CHECK(output_remove(name) == 0);
}

TEST(replaced, "a single file is replaced as a whole") {
    fill();
    char name[256];
    strcpy(name, in_folder("file"));
    write_file(name, "old");
    write_file(name, "new and longer");
    CHECK(strcmp(content(name), "new and longer") == 0);
    CHECK(files_matching(files_folder, "file.") == 0);
}

TEST(refusals, "an existing directory and a missing parent are one line each") {
    fill();
    CHECK(mkdir(in_folder("there"), 0777) == 0);
    CHECK_FATAL(EXIT_RUNTIME, "there: exists already",
                output_begin(in_folder("there"), OUTPUT_NEW_FILE));
    CHECK_FATAL(EXIT_RUNTIME, "exists already", output_begin(in_folder("there"), OUTPUT_DIRECTORY));
    CHECK_FATAL(EXIT_RUNTIME, "cannot make the directory: No such file",
                output_begin(in_folder("a/b"), OUTPUT_DIRECTORY));
    CHECK_FATAL(EXIT_RUNTIME, "cannot rename", {
        Output *output = output_begin(in_folder("there"), OUTPUT_FILE);
        output_close(output_open(output, NULL));
        output_commit(output);
    });
}

int main(int argc, char **argv) { return test_main(argc, argv); }

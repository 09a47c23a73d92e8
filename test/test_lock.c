/* test_lock.c: a lock is held by one process and released when it ends; what outputs leave is removed only when it
 * bears the mark and no process holds it; what cannot be examined is not taken for missing. */
#include "../llmc/files/lock.h"

#include "../llmc/base/error.h"
#include "../llmc/base/finite.h"
#include "../llmc/base/start.h"
#include "../llmc/files/output.h"
#include "../llmc/files/path.h"
#include "../llmc/files/temporary.h"
#include "files.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

static char holder[LOCK_HOLDER];

/* A process that takes the lock and holds it. Returns once it has it. */
static pid_t start_holder(const char *path) {
    int ready[2];
    if (pipe(ready) != 0) abort();
    pid_t child = fork();
    if (child == 0) {
        Lock *lock = NULL;
        char code = (char)lock_take(path, 0, &lock, holder);
        if (write(ready[1], &code, 1) != 1) _exit(9);
        for (;;) pause();
    }
    char code = 1;
    CHECK(read(ready[0], &code, 1) == 1 && code == 0, "the child has the lock");
    close(ready[0]);
    close(ready[1]);
    return child;
}

TEST(one_holder, "a second process gets the holder's name, and gets it as soon as the first is killed") {
    const char *path = in_folder("lock");
    pid_t child = start_holder(path);
    Lock *lock = NULL;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "process %d on ", (int)child);
    CHECK(lock_take(path, 0, &lock, holder) == EWOULDBLOCK && strstr(holder, wanted), "%s", holder);
    CHECK(lock_take(path, 0.1, &lock, holder) == EWOULDBLOCK);
    kill(child, SIGKILL);
    CHECK(lock_take(path, 30, &lock, holder) == 0, "while the other goes");
    waitpid(child, NULL, 0);
    CHECK(lock_is_in_place(lock));
    lock_release(lock);
    CHECK(lock_take(path, 0, &lock, holder) == 0, "given back");
    lock_release(lock);
}

TEST(waits, "a lock that is given back while another waits goes to that one") {
    const char *path = in_folder("waited");
    pid_t child = start_holder(path);
    if (fork() == 0) {
        usleep(300000);
        kill(child, SIGKILL);
        _exit(0);
    }
    Lock *lock = NULL;
    CHECK(lock_take(path, 60, &lock, holder) == 0);
    lock_release(lock);
    while (wait(NULL) > 0) {
    }
}

TEST(moved, "a lock file that was removed or replaced is noticed, and is not a lock for the next") {
    char path[256];
    strcpy(path, in_folder("moving"));
    Lock *first = NULL, *second = NULL;
    CHECK(lock_take(path, 0, &first, holder) == 0);
    CHECK(unlink(path) == 0 && !lock_is_in_place(first));
    CHECK(lock_take(path, 0, &second, holder) == 0, "a new file is a new lock");
    CHECK(!lock_is_in_place(first) && lock_is_in_place(second));
    lock_release(first);
    lock_release(second);
}

TEST(foreign_locks, "links, files with two names and pipes are not lock files, and stay as they are") {
    char file[256], lock_path[256];
    Lock *lock = NULL;
    strcpy(file, write_string("others", "mine"));
    strcpy(lock_path, in_folder("linked"));
    CHECK(symlink(file, lock_path) == 0 && lock_take(lock_path, 0, &lock, holder) == ELOOP);
    CHECK(unlink(lock_path) == 0 && link(file, lock_path) == 0 && lock_take(lock_path, 0, &lock, holder) == EMLINK);
    CHECK(unlink(lock_path) == 0 && mkfifo(lock_path, 0600) == 0 && lock_take(lock_path, 0, &lock, holder) == EINVAL);
    CHECK(lock_take(in_folder("no/where"), 0, &lock, holder) == ENOENT);
    struct stat status;
    CHECK(stat(file, &status) == 0 && status.st_size == 4, "the file is as it was");
}

// ---------------------------------------------------------------------------------------------

/* A process that begins an output and holds it, or is killed in the middle of it. */
static pid_t start_output(const char *name) {
    int ready[2];
    if (pipe(ready) != 0) abort();
    pid_t child = fork();
    if (child == 0) {
        Output *output = output_begin(name, OUTPUT_DIRECTORY);
        OutputFile *file = output_open(output, "part");
        output_print(file, "half");
        if (write(ready[1], "", 1) != 1) _exit(9);
        for (;;) pause();
    }
    char byte;
    CHECK(read(ready[0], &byte, 1) == 1, "the child has begun");
    close(ready[0]);
    close(ready[1]);
    return child;
}

TEST(living, "an output that a living process writes is left alone; one whose process was killed is removed") {
    char name[256];
    strcpy(name, in_folder("shared"));
    pid_t child = start_output(name);
    temporary_clean(files_folder, "shared");
    CHECK(files_matching(files_folder, "shared.train_gpt2-") == 1, "it lives");
    temporary_clean(files_folder, "share");
    temporary_clean(files_folder, "shared.x");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK(files_matching(files_folder, "shared.train_gpt2-") == 1, "of another name");
    temporary_clean(files_folder, "shared");
    CHECK(files_matching(files_folder, "shared.train_gpt2-") == 0, "it is gone");
}

TEST(unmarked, "a directory that only looks like one of ours stays, with all in it") {
    mkdir(in_folder("x.train_gpt2-0123456789abcdef.tmp"), 0777);
    write_string("x.train_gpt2-0123456789abcdef.tmp/content", "mine");
    mkdir(in_folder("x.tmp"), 0777);
    mkdir(in_folder("target"), 0777);
    write_string("target/unfinished.train_gpt2", "");
    write_string("target/content", "mine");
    CHECK(symlink(in_folder("target"), in_folder("x.train_gpt2-00000000000000aa.tmp")) == 0);
    mkdir(in_folder("x.train_gpt2-00000000000000bb.tmp"), 0777);
    write_string("x.train_gpt2-00000000000000bb.tmp/unfinished.train_gpt2", "");
    CHECK(symlink(in_folder("target"), in_folder("x.train_gpt2-00000000000000bb.tmp/content")) == 0);
    temporary_clean(files_folder, "x");
    temporary_clean(files_folder, NULL);
    CHECK(access(in_folder("x.train_gpt2-0123456789abcdef.tmp/content"), F_OK) == 0, "no mark");
    CHECK(access(in_folder("x.tmp"), F_OK) == 0, "no name of ours");
    CHECK(access(in_folder("target/content"), F_OK) == 0, "no link is followed");
    CHECK(access(in_folder("x.train_gpt2-00000000000000bb.tmp"), F_OK) != 0, "a marked one goes");
}

TEST(new_files, "a new file replaces nothing, not even what came while it was written") {
    char name[256];
    strcpy(name, in_folder("new"));
    write_string("new", "mine");
    CHECK_FATAL(EXIT_RUNTIME, "exists already", output_begin(name, OUTPUT_NEW_FILE));
    unlink(name);
    CHECK_FATAL(EXIT_RUNTIME, "cannot rename to its name: File exists", {
        Output *output = output_begin(name, OUTPUT_NEW_FILE);
        output_close(output_open(output, NULL));
        write_string("new", "mine");
        output_commit(output);
    });
    struct stat status;
    CHECK(stat(name, &status) == 0 && status.st_size == 4 && files_matching(files_folder, "new.") == 0);
}

TEST(exits, "what ends the program in the middle of an output leaves nothing of it") {
    char name[256];
    strcpy(name, in_folder("broken"));
    CHECK_FATAL(EXIT_INPUT, "in the middle", {
        Output *output = output_begin(name, OUTPUT_DIRECTORY);
        output_print(output_open(output, "part"), "half");
        fatal(EXIT_INPUT, "in the middle");
    });
    CHECK(files_matching(files_folder, "broken") == 0);
}

TEST(looking, "only a missing file is missing: a name that cannot be examined ends the program") {
    char name[600];
    snprintf(name, sizeof name, "%s/%0400d", files_folder, 0); // longer than a name may be
    CHECK(!path_exists(in_folder("missing")) && !path_exists("/dev/null/x") && path_exists("/dev/null"));
    CHECK(symlink("nowhere", in_folder("dangling")) == 0 && path_exists(in_folder("dangling")));
    CHECK_FATAL(EXIT_RUNTIME, "cannot be examined: File name too long", path_exists(name));
}

/* Reads as a user to whom permissions apply. */
static void read_unprivileged(const char *path) {
    size_t bytes;
    if (geteuid() == 0 && setuid(65534) != 0) _exit(98);
    path_read(path, 10, &bytes);
}

TEST(optional_files, "a file that may be missing is read, or is not there; one that cannot be read ends the program") {
    size_t bytes = 0;
    char path[256];
    strcpy(path, write_string("optional", "0123456789"));
    unsigned char *text = path_read(path, 4, &bytes);
    CHECK(text && bytes == 4 && memcmp(text, "0123", 4) == 0);
    free(text);
    text = path_read(path, 100, &bytes);
    CHECK(text && bytes == 10);
    free(text);
    CHECK(!path_read(in_folder("missing"), 4, &bytes) && !path_read(files_folder, 4, &bytes));
    CHECK(mkfifo(in_folder("fifo"), 0600) == 0 && !path_read(in_folder("fifo"), 4, &bytes), "nor does it hang");
    chmod(files_folder, 0755);
    chmod(path, 0);
    CHECK_FATAL(EXIT_RUNTIME, "cannot be read: Permission denied", read_unprivileged(path));
}

TEST(standard_streams, "closed standard streams are /dev/null, and a file's size limit is an error, not a signal") {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 3; i++) close(i);
        process_start(NULL);
        struct rlimit limit = {10, 10};
        setrlimit(RLIMIT_FSIZE, &limit);
        int file = open(in_folder("first"), O_WRONLY | O_CREAT, 0600);
        bool good = file == 3 && write(1, "lost", 4) == 4 && write(2, "lost", 4) == 4 && read(0, holder, 1) == 0;
        good = good && write(file, "0123456789", 10) == 10 && write(file, "x", 1) == -1 && errno == EFBIG;
        _exit(good ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
}

TEST(finite, "the first NaN or infinity is found wherever it is; denormals and the largest float are finite") {
    enum { N = 3000 };
    static float values[N];
    for (int i = 0; i < N; i++) values[i] = i % 3 == 0 ? 1e-42f : i % 3 == 1 ? -3.4028234e38f : 0;
    CHECK(first_nonfinite(values, N) == N && first_nonfinite(values, 0) == 0);
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (int i = 0; i < N; i += 97) {
        float kept = values[i];
        values[i] = bad[i % 4];
        values[N - 1] = NAN;
        CHECK(first_nonfinite(values, N) == (size_t)i && first_nonfinite(values, (size_t)i) == (size_t)i);
        values[N - 1] = 0;
        values[i] = kept;
    }
}

int main(int argc, char **argv) { return test_main(argc, argv); }

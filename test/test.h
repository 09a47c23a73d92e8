/* test.h: the whole test framework. A test says what it proves; NaN never passes; the program ends
 * with "name: N passed, N failed[, N skipped]" and exit code 1 when any failed.
 *
 *   TEST(clip_3_4, "clipping (3,4) at 1 gives (0.6,0.8): the direction stays (chapter 27.4)") {
 *       CHECK_NEAR(g[0], 0.6, 1e-15);
 *   }
 *   int main(int argc, char **argv) { return test_main(argc, argv); }
 *
 * Run one with `test_x clip_3_4`; list all with `test_x --list`.
 *
 * A test that does not end within TEST_LIMIT seconds (300) has failed: the program says which it was, and ends.
 * Its name also goes to the file $TEST_NOW, where run.sh looks when the whole program had to be ended. */
#ifndef TEST_H
#define TEST_H

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Test {
    const char *name, *proves;
    void (*run)(void);
    struct Test *next;
} Test;

// Weak: a test program may consist of several files, which then share one list.
#define SHARED __attribute__((weak))
SHARED Test *test_first, **test_last;
SHARED int test_failures;            // of the running test
SHARED const char *test_skip_reason; // of the running test

#define TEST(id, proves_)                                                                          \
    static void test_##id(void);                                                                   \
    __attribute__((constructor)) static void register_##id(void) {                                 \
        static Test test = {#id, proves_, test_##id, NULL};                                        \
        *(test_last ? test_last : &test_first) = &test;                                            \
        test_last = &test.next;                                                                    \
    }                                                                                              \
    static void test_##id(void)

/* Fails the test (and continues) unless `condition`; the message says what was seen. */
#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) test_fail(__FILE__, __LINE__, #condition, "" __VA_ARGS__);               \
    } while (0)

__attribute__((unused)) static void test_fail(const char *file, int line, const char *condition,
                                              const char *format, ...) {
    if (test_failures++ >= 10) return; // the first ten tell the story
    va_list args;
    va_start(args, format);
    printf("  %s:%d: not so: %s: ", file, line, condition);
    vprintf(format, args);
    printf("\n");
    va_end(args);
}

/* |got - want| <= tolerance; NaN and infinities fail. */
#define CHECK_NEAR(got, want, tolerance)                                                           \
    do {                                                                                           \
        double got_ = (got), want_ = (want), tolerance_ = (tolerance);                             \
        CHECK(fabs(got_ - want_) <= tolerance_, "got %.17g, wanted %.17g, error %.3g > %.3g", got_, \
              want_, fabs(got_ - want_), tolerance_);                                              \
    } while (0)

#define SKIP(reason)                                                                               \
    do {                                                                                           \
        test_skip_reason = (reason);                                                               \
        return;                                                                                    \
    } while (0)

/* What a process that ends by fatal() still holds is not a leak; LeakSanitizer, where it is linked in, asks. */
__attribute__((weak)) bool test_may_leak; // weak: programs of several files include this header in each
int __lsan_is_turned_off(void);
__attribute__((weak)) int __lsan_is_turned_off(void) { return test_may_leak; }

/* Runs `statement` in a child process that must exit with `code` and write `text` to stderr, in one
 * line. (After OpenMP has run, a forked child must not: keep such statements to host code.) */
#define CHECK_FATAL(code, text, statement)                                                         \
    do {                                                                                           \
        int pipe_[2];                                                                              \
        fflush(stdout);                                                                            \
        if (pipe(pipe_) != 0) abort();                                                             \
        pid_t child_ = fork();                                                                     \
        if (child_ == 0) {                                                                         \
            dup2(pipe_[1], 2);                                                                     \
            close(pipe_[0]);                                                                       \
            close(pipe_[1]);                                                                       \
            test_may_leak = true;                                                                  \
            statement;                                                                             \
            _exit(0);                                                                              \
        }                                                                                          \
        test_expect_fatal(__FILE__, __LINE__, pipe_, child_, (code), (text));                      \
    } while (0)

__attribute__((unused)) static void test_expect_fatal(const char *file, int line, int fd[2],
                                                      pid_t child, int code, const char *text) {
    char said[4096];
    size_t length = 0;
    ssize_t n;
    close(fd[1]);
    while (length < sizeof said - 1 && (n = read(fd[0], said + length, sizeof said - 1 - length)) > 0)
        length += (size_t)n;
    said[length] = '\0';
    close(fd[0]);
    int status;
    waitpid(child, &status, 0);
    int got = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    const char *end = strchr(said, '\n');
    bool one_line = end && end[1] == '\0';
    if (got != code || !strstr(said, text) || (code != 0 && !one_line)) {
        test_failures++;
        printf("  %s:%d: wanted exit %d and one line with \"%s\"; got exit %d and: %s\n", file, line,
               code, text, got, said);
    }
}

// ---------------------------------------------------------------------------------------------
// The time limit

static struct {
    char says[600]; // what is printed when the limit is over; made before, as a signal handler may not format
    size_t length;
} test_late;

static void test_is_late(int signal) {
    (void)signal;
    ssize_t written = write(1, test_late.says, test_late.length);
    _exit(written < 0 ? 2 : 1);
}

/* Starts the clock of a test; `limit` 0 stops it. Children made by fork have no clock. */
__attribute__((unused)) static void test_clock(const char *program, const Test *test, int passed,
                                               int failed, unsigned limit) {
    alarm(0);
    if (limit == 0) return;
    int length = snprintf(test_late.says, sizeof test_late.says,
                          "  FAILED %s: %.300s\n  it did not end within %u seconds; the rest was not tried\n"
                          "%s: %d passed, %d failed\n",
                          test->name, test->proves, limit, program, passed, failed + 1);
    test_late.length = (size_t)length;
    const char *now = getenv("TEST_NOW");
    int file = now ? (int)syscall(SYS_openat, AT_FDCWD, now, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
    if (file >= 0) { // by system calls, as a test may stand in for the library's
        (void)!syscall(SYS_write, file, test->name, strlen(test->name));
        syscall(SYS_close, file);
    }
    signal(SIGALRM, test_is_late);
    alarm(limit);
}

__attribute__((unused)) static int test_main(int argc, char **argv) {
    const char *program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    int passed = 0, failed = 0, skipped = 0;
    const char *limit = getenv("TEST_LIMIT");
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (Test *test = test_first; test; test = test->next) {
        if (argc > 1 && strcmp(argv[1], "--list") == 0) {
            printf("%s: %s\n", test->name, test->proves);
            continue;
        }
        if (argc > 1 && !strstr(test->name, argv[1])) continue;
        test_failures = 0;
        test_skip_reason = NULL;
        test_clock(program, test, passed, failed, limit ? (unsigned)atoi(limit) : 300);
        test->run();
        test_clock(program, test, passed, failed, 0);
        if (test_failures) {
            failed++;
            printf("  FAILED %s: %s\n", test->name, test->proves);
            if (getenv("TEST_FIRST")) break; // one is enough
        } else if (test_skip_reason) {
            skipped++;
            printf("  skipped %s: %s\n", test->name, test_skip_reason);
        } else {
            passed++;
        }
    }
    printf("%s: %d passed, %d failed", program, passed, failed);
    if (skipped) printf(", %d skipped", skipped);
    printf("\n");
    return failed != 0;
}

#endif

/* error.c: messages to stderr, and the end of the program. A message is formatted into one buffer and written
 * by one call, so that the lines of several ranks do not mix. Control characters in it become '?', because
 * names of files and arguments are part of messages and must not break the line.
 *
 * fatal() and warning() are for the main thread. fatal_now() and warning_now() are for the watchdog's thread:
 * they wait for nothing that the main thread may hold. */
#include "error.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANK_0_FIRST_US = 1000000, PATIENCE_MS = 1000 };

static int error_rank = 0;
static int error_ranks = 1;
static void (*error_end)(int code) = NULL;
static void (*error_before)(void) = NULL;
static void (*error_note)(const char *message) = NULL;

void error_set_rank(int rank, int size) {
    error_rank = rank;
    error_ranks = size;
}

void error_set_end(void (*end)(int code)) { error_end = end; }

void error_set_before(void (*before)(void)) { error_before = before; }

void error_set_note(void (*note)(const char *message)) { error_note = note; }

/* Writes "train_gpt2: [rank R: ]<kind><message>" into line and returns where the message starts in it. */
static const char *compose(char *line, size_t size, const char *kind, const char *format, va_list args) {
    int n = error_ranks > 1
                ? snprintf(line, size, "train_gpt2: rank %d: %s", error_rank, kind)
                : snprintf(line, size, "train_gpt2: %s", kind);
    vsnprintf(line + n, size - (size_t)n - 1, format, args);
    for (char *c = line; *c; c++) // names of files and arguments must not break the line
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
    return line + n;
}

/* Composes the message and writes it as one line. Earlier output is flushed first. */
static const char *write_line(char *line, size_t size, const char *kind, const char *format, va_list args) {
    const char *message = compose(line, size, kind, format, args);
    size_t length = strlen(line);
    line[length] = '\n';
    if (error_before) error_before();
    fflush(stdout);
    for (size_t done = 0; done < length + 1;) {
        ssize_t wrote = write(STDERR_FILENO, line + done, length + 1 - done);
        if (wrote <= 0) break; // stderr is closed or broken: the message cannot be shown
        done += (size_t)wrote;
    }
    line[length] = '\0';
    return message;
}

/* If all ranks find the same error, only rank 0 prints it. The other ranks wait one second first; rank 0 ends in
 * that time, and the launcher then ends the others by SIGTERM. */
static void wait_for_rank_0(void) {
    signal(SIGTERM, SIG_DFL); // the program may catch it to save a checkpoint; not now
    usleep(RANK_0_FIRST_US);
}

void fatal(int code, const char *format, ...) {
    char line[2048];
    if (error_rank > 0) wait_for_rank_0();
    va_list args;
    va_start(args, format);
    write_line(line, sizeof line, "", format, args);
    va_end(args);
    if (error_end) error_end(code);
    exit(code);
}

void notice(const char *format, ...) {
    if (error_rank > 0) return;
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
}

void warning(const char *format, ...) {
    char line[2048];
    va_list args;
    va_start(args, format);
    const char *message = write_line(line, sizeof line, "warning: ", format, args);
    va_end(args);
    if (error_note) error_note(message);
}

/* Writes the message to stderr, waiting at most a second: a pipe without a reader may be full. */
static void write_line_now(const char *kind, const char *format, va_list args) {
    char line[2048];
    compose(line, sizeof line, kind, format, args);
    size_t length = strlen(line);
    line[length] = '\n';
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&out, 1, PATIENCE_MS) == 1 && write(STDERR_FILENO, line, length + 1) < 0) return;
}

void fatal_now(int code, const char *format, ...) {
    if (error_rank > 0) wait_for_rank_0();
    va_list args;
    va_start(args, format);
    write_line_now("", format, args);
    va_end(args);
    _exit(code); // the launcher then ends the other ranks
}

void warning_now(const char *format, ...) {
    va_list args;
    va_start(args, format);
    write_line_now("warning: ", format, args);
    va_end(args);
}

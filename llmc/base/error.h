/* error.h: how the program fails. One line on stderr, one documented exit code, all ranks together.
 *
 * A message names what, where (file, field, rank), what was found and expected, and what to do.
 * Any error that a user can cause goes through fatal(), never through assert. Lowest module: it
 * includes nothing of the project. Next: start.h, memory.h. */
#ifndef LLMC_ERROR_H
#define LLMC_ERROR_H

enum {
    EXIT_DONE = 0,       // finished
    EXIT_RUNTIME = 1,    // run-time failure: memory, disk, device, a lost rank
    EXIT_USAGE = 2,      // the command line asks for something impossible
    EXIT_INPUT = 3,      // an input file is not what it claims to be, or holds weights that are not finite
    EXIT_NONFINITE = 4,  // a loss or gradient is NaN or infinite
    EXIT_RESUMABLE = 75, // stopped early on request; the checkpoint resumes (sysexits' EX_TEMPFAIL)
};

#define PRINTF_LIKE(string, first) __attribute__((format(printf, string, first)))

/* Prints "train_gpt2: [rank R: ]message\n" to stderr and ends every rank with `code`. */
_Noreturn void fatal(int code, const char *format, ...) PRINTF_LIKE(2, 3);

/* Prints "train_gpt2: [rank R: ]warning: message\n" to stderr and returns. */
void warning(const char *format, ...) PRINTF_LIKE(1, 2);

/* The same two from a thread that watches the main thread, which may hang while it holds any lock: they use neither
 * stdio nor the log, wait for no other thread, and fatal_now ends this process at once. */
_Noreturn void fatal_now(int code, const char *format, ...) PRINTF_LIKE(2, 3);
void warning_now(const char *format, ...) PRINTF_LIKE(1, 2);
/* Prints a line to stdout once, on rank 0, and returns: useful information that is not an error. */
void notice(const char *format, ...) PRINTF_LIKE(1, 2);

/* From now on messages name the rank that prints them (nothing is added when size is 1). */
void error_set_rank(int rank, int size);

/* `end` is called by fatal() after its message, in place of exit(); it must end all ranks. */
void error_set_end(void (*end)(int code));

/* `before` is called before a message is written: to clear a status line away. NULL turns that off. */
void error_set_before(void (*before)(void));

/* `note` is called by warning() with the message, for the log; NULL turns that off. */
void error_set_note(void (*note)(const char *message));

#endif

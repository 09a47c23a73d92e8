/* screen.h: standard output while training: lines, and on a terminal a status line below them.
 *
 * Elsewhere (a pipe, a file, TERM=dumb) there is no status line, no \r and no escape sequence.
 * Every line is flushed. If the reader of the output ends, training must continue: nothing here fails. */
#ifndef LLMC_SCREEN_H
#define LLMC_SCREEN_H

#include <stdarg.h>
#include <stdbool.h>

/* What to show while training. */
typedef enum {
    SCREEN_AUTO, // a bar where standard output is a terminal, else lines
    SCREEN_BAR,
    SCREEN_LINES,
} ScreenStyle;

/* The style of screens that are opened from now on. */
void screen_choose(ScreenStyle style);

/* Finds out what standard output is. From now on SIGPIPE is ignored, and the status line makes way
 * for messages of error.h. */
void screen_open(void);

/* Whether a status line is shown. */
bool screen_is_terminal(void);

/* Columns that a status line may take, read again each time; 79 where that is unknown. */
int screen_width(void);

/* Prints text and a line break above the status line. */
void screen_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void screen_vprint(const char *format, va_list args);

/* Shows `text` (ASCII, at most screen_width() characters) as the status line, "" for none. */
void screen_status(const char *text);

/* Takes the status line away, for good, and prints like any program again. */
void screen_close(void);

#endif

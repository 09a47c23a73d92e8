/* screen.c: see screen.h. The status line is the last line of the terminal; \r and "erase to the
 * end of the line" (ECMA-48's EL) are all that is needed to redraw it. */
#include "screen.h"

#include "../base/error.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ERASE "\r\033[K"

static struct {
    ScreenStyle style;
    bool terminal;
    char status[512]; // the text on the last line
} screen;

/* Clears an error of standard output: the next line is tried again. */
static void flush(void) {
    // A closed pipe or a full disk behind standard output does not end a run; the log's files have every line.
    fflush(stdout);
    clearerr(stdout);
}

/* Removes the status line. */
static void erase(void) {
    if (!screen.status[0]) return;
    fputs(ERASE, stdout);
    flush();
}

/* Prints it again. */
static void redraw(void) {
    if (screen.status[0]) fputs(screen.status, stdout);
    flush();
}

void screen_choose(ScreenStyle style) { screen.style = style; }

static bool is_terminal(void) {
    const char *kind = getenv("TERM");
    return isatty(STDOUT_FILENO) && kind && *kind && strcmp(kind, "dumb") != 0;
}

void screen_open(void) {
    screen.terminal = screen.style == SCREEN_AUTO ? is_terminal() : screen.style == SCREEN_BAR;
    screen.status[0] = '\0';
    // `train_gpt2 | head` ends the reader: writing then fails instead of ending the run. Before an error message the
    // status line is removed, so that the message stands on a line of its own.
    signal(SIGPIPE, SIG_IGN);
    error_set_before(erase);
}

bool screen_is_terminal(void) { return screen.terminal; }

int screen_width(void) {
    struct winsize size;
    int width = 79;
    // One column less than the terminal has: a full last line would scroll. 79 where the size is not known.
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) width = size.ws_col - 1;
    int most = (int)sizeof screen.status - 1;
    return width < most ? width : most;
}

void screen_vprint(const char *format, va_list args) {
    erase();
    vfprintf(stdout, format, args);
    fputc('\n', stdout);
    redraw();
}

void screen_print(const char *format, ...) {
    va_list args;
    va_start(args, format);
    screen_vprint(format, args);
    va_end(args);
}

void screen_status(const char *text) {
    if (!screen.terminal) return;
    erase();
    snprintf(screen.status, sizeof screen.status, "%s", text);
    redraw();
}

void screen_close(void) {
    screen_status("");
    error_set_before(NULL);
}

/* start.c: the first call in main: it establishes what must hold before a file is opened. */
#include "start.h"

#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

void process_start(void) {
    // Promise 4: no file of a run is ever taken for a standard stream. open() gives the lowest free
    // descriptor, so each closed one gets its own.
    for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; standard++)
        if (fcntl(standard, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != standard)
            exit(EXIT_RUNTIME); // stderr may be closed, so no message
    // Promise 4: a limit on the size of files ends a run with a message, not with a signal.
    signal(SIGXFSZ, SIG_IGN);
}

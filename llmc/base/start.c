/* start.c: the first call in main: it establishes what must hold before a file is opened. */
#include "start.h"

#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef _OPENMP
/* GCC's library spins for up to 16 ms at the end of each parallel loop, clang's for 200 ms. On a machine with
 * other work, the thread that is waited for may need just the core on which another one spins: a run took four
 * times as long. A thousand turns, 20 to 50 us, bridge the gap between two loops, and waking a thread that sleeps costs
 * less than the loops that are longer. */
static void wait_asleep(char **argv) {
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || getenv("KMP_BLOCKTIME")) return;
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program);
    if (setenv("GOMP_SPINCOUNT", "1000", 1) != 0 || setenv("KMP_BLOCKTIME", "1", 1) != 0) return; // 1 ms
    if (length <= 0 || length == sizeof program) return; // no /proc
    program[length] = '\0';
    execv(program, argv); // it comes back only where that fails; then threads spin
}
#endif

void process_start(char **argv) {
#ifdef _OPENMP
    if (argv) wait_asleep(argv);
#else
    (void)argv;
#endif
    // Promise 4: no file of a run is ever taken for a standard stream. open() gives the lowest free
    // descriptor, so each closed one gets its own.
    for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; standard++)
        if (fcntl(standard, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != standard)
            exit(EXIT_RUNTIME); // stderr may be closed, so no message
    // Promise 4: a limit on the size of files ends a run with a message, not with a signal.
    signal(SIGXFSZ, SIG_IGN);
}

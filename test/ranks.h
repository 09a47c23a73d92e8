/* ranks.h: tests that need several processes run their own program again under mpirun. */
#ifndef TEST_RANKS_H
#define TEST_RANKS_H

#include "test.h"

static const char *ranks_program; // argv[0]

/* Whether mpirun can start this build's ranks. */
static bool ranks_available(void) {
#ifdef USE_MPI
    return system("command -v mpirun >/dev/null 2>&1") == 0;
#else
    return false;
#endif
}

/* Runs this program with `arguments` as `ranks` processes; returns mpirun's exit code. What they
 * print is kept in `said` (size bytes). Root and fewer cores than ranks are allowed: tests run in
 * containers. */
static int ranks_run(int ranks, const char *arguments, char *said, size_t size) {
    char command[1024];
    snprintf(command, sizeof command,
             "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 "
             "ASAN_OPTIONS=detect_leaks=0 "
             "mpirun --oversubscribe -np %d '%s' %s 2>&1 </dev/null",
             ranks, ranks_program, arguments);
    FILE *pipe = popen(command, "r");
    if (!pipe) return -1;
    size_t length = fread(said, 1, size - 1, pipe);
    said[length] = '\0';
    while (fgetc(pipe) != EOF) {
    }
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif

/* world.c: see world.h. How this process finds its place; the communication itself is in
 * world_mpi.c or, in a build without MPI, in world_alone.c. */
#define _GNU_SOURCE // sched_getaffinity
#include "world_parts.h"

#include "../base/error.h"
#include "launcher.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_THREADS = 4096 }; // as --threads

static World world = {.size = 1, .local_size = 1, .launcher = "none"};

/* Whether the launcher's ranks cannot find each other; then why, and what to do. Known before MPI is called, because
 * Open MPI prints a page where it was not started by its own launcher, or takes the process for a run of one. */
static bool cannot_join(const Launcher *launcher, char why[200]) {
    const char *library = world_library();
    *why = '\0';
    if (!launcher->speaks_mpi)
        snprintf(why, 200, "finds its ranks over MPI only; start it with mpirun, or without RANK and WORLD_SIZE in the "
                 "environment");
    else if (strcmp(library, "none") == 0)
        snprintf(why, 200, "was built without MPI; install Open MPI and run make again, or start one process");
    else if (strncmp(library, "Open MPI", 8) == 0 && !launcher->open_mpi)
        snprintf(why, 200, "was built with %s, which joins no ranks without PMIx; start it with the mpirun of that "
                 "Open MPI, also inside a Slurm job, or with srun --mpi=pmix", library);
    return *why != '\0';
}

World world_open(int *argc, char ***argv) {
    Launcher launcher = launcher_detect();
    world.launcher = launcher.name;
    // A run of one needs no MPI, even under mpirun -np 1.
    if (launcher.size == 1) return world;
    world.rank = launcher.rank; // for messages, until MPI is open
    // Errors from here on name the rank, although MPI has not been asked yet.
    error_set_rank(launcher.rank, launcher.size);
    char why[200];
    if (cannot_join(&launcher, why))
        fatal(EXIT_USAGE, "%s started %d ranks, but this program %s", launcher.name, launcher.size, why);
    world_join(&world, argc, argv);
    // Such as the mpirun of another MPI: each process then is alone in a world of 1, and would train by itself.
    if (world.size != launcher.size)
        fatal(EXIT_USAGE,
              "%s started %d ranks, but MPI sees %d; start with the mpirun of the MPI that this "
              "program was built with (srun needs --mpi=pmix)",
              launcher.name, launcher.size, world.size);
    // exit() anywhere leaves MPI in order; mpirun takes a rank that ends without MPI_Finalize for a failure.
    atexit(world_close);
    return world;
}

int world_rank(void) { return world.rank; }

int world_size(void) { return world.size; }

/* What the environment asks for, 0 where it does not. OpenMP lets it be a list, a number for each level of
 * nesting; there is one level here. */
static int threads_of_environment(void) {
    const char *text = getenv("OMP_NUM_THREADS");
    if (!text || !*text) return 0;
    char *end;
    long threads = strtol(text, &end, 10);
    // "8", or "8,2": strchr also finds the 0 at the text's end.
    if (end == text || !strchr(" ,", *end) || threads < 1 || threads > MOST_THREADS)
        fatal(EXIT_USAGE, "environment: OMP_NUM_THREADS is \"%.80s\", expected a whole number from 1 to %d; "
              "unset it or give --threads", text, MOST_THREADS);
    return (int)threads;
}

/* Cores that the ranks on this machine may use, all together; from world_cores. */
static int machine_cores = 1;

int world_threads(int wanted, const char **source) {
    int share = world_cores(); // first, because all ranks must be there
    int asked = wanted > 0 ? 0 : threads_of_environment();
    const char *from = wanted > 0 ? "--threads" : asked ? "OMP_NUM_THREADS"
                       : world.local_size > 1 ? "its share of the cores" : "one a core";
    int threads = wanted > 0 ? wanted : asked ? asked : share;
    static char text[128];
    snprintf(text, sizeof text, "%s", from);
    // A launcher that binds several ranks to one core makes them wait for each other; the table is where users look.
    int all = world_local_sum(threads);
    if (world.local_size > 1 && all > machine_cores)
        snprintf(text, sizeof text, "%s; %d ranks with %d threads share %d core%s", from, world.local_size, all,
                 machine_cores, machine_cores == 1 ? "" : "s");
    *source = text;
    return threads;
}

#ifdef CPU_COUNT
int world_cores(void) {
    cpu_set_t mine, all;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0) return 1; // over 1024 cores: give --threads
    all = mine;
    world_local_or(&all, sizeof all);
    // Example: 2 ranks on 8 cores. Bound to 4 each: all = 8, share 4. Both free on all 8: all = 8, share 4.
    // Bound unevenly to 2 and 6: the share is 4, but the first rank may use only 2.
    machine_cores = CPU_COUNT(&all);
    int allowed = CPU_COUNT(&mine), share = machine_cores / world.local_size;
    if (share > allowed) share = allowed;
    return share > 0 ? share : 1;
}
#else
int world_cores(void) {
    // Systems without affinity masks: the cores of the machine, divided evenly.
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    machine_cores = online > 0 ? (int)online : 1;
    return online > world.local_size ? (int)online / world.local_size : 1;
}
#endif

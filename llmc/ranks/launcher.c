/* launcher.c: finds out from the environment which launcher started this process, and what rank it has. Every
 * launcher sets variables of its own; a set of variables that contradict each other is a usage error. */
#include "launcher.h"

#include "../base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_CHARS = 4096 };

typedef struct {
    const char *name;
    bool speaks_mpi;
    const char *rank, *size; // variables
    const char *only_with;   // a variable without which the others mean nothing, or NULL
} Variables;

/* In order of precedence. torchrun's own variable comes first: it is often started once on each machine, by srun or
 * mpirun, whose variables then number the machines and not its processes. An MPI launcher comes before RANK and
 * WORLD_SIZE, which scripts export beside it; mpirun inside a Slurm job sees Slurm's variables too. A Slurm batch
 * script itself has these as well: only inside a step (srun) do they number this process, and SLURM_NTASKS may be
 * that of the whole job there. */
static const Variables launchers[] = {
    {"torchrun", false, "RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
    {"Open MPI", true, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL},
    {"MPICH or Intel MPI", true, "PMI_RANK", "PMI_SIZE", NULL},
    {"srun", true, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS"},
    {"srun", true, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID"},
    {"torchrun", false, "RANK", "WORLD_SIZE", NULL},
};

/* The variable's value, a whole number in least .. 2^20, or -1 when it is not set. */
static int number(const char *variable, int least) {
    const char *text = getenv(variable);
    if (!text) return -1;
    char *end;
    long value = strtol(text, &end, 10);
    // An overflow is caught as well: strtol then returns the largest long, which is above the bound.
    if (end == text || *end != '\0' || value < least || value > 1 << 20)
        fatal(EXIT_USAGE,
              "environment: %s is \"%s\", expected a whole number from %d; unset it or start "
              "with mpirun",
              variable, text, least);
    return (int)value;
}

Launcher launcher_detect(void) {
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const Variables *v = &launchers[i];
        // Slurm's variables alone do not mean that this process is one of many.
        if (v->only_with && !getenv(v->only_with)) continue;
        int rank = number(v->rank, 0), size = number(v->size, 1);
        if (rank < 0 && size < 0) continue;
        // Half a set is refused: with a guess for the other half, each process could take itself for the whole run.
        if (rank < 0 || size < 0)
            fatal(EXIT_USAGE, "environment: %s is set without %s; unset it or start with mpirun",
                  rank < 0 ? v->size : v->rank, rank < 0 ? v->rank : v->size);
        if (rank >= size)
            fatal(EXIT_USAGE,
                  "environment: %s is %d, but there are only %s = %d ranks; unset both or "
                  "start with mpirun",
                  v->rank, rank, v->size, size);
        // The first set decides; those further down are not looked at.
        bool open_mpi = strncmp(v->rank, "OMPI_", 5) == 0 || getenv("PMIX_RANK") != NULL;
        return (Launcher){v->name, v->speaks_mpi, open_mpi, rank, size};
    }
    // Some launcher that speaks PMIx is there, but how many ranks it started is not known.
    if (getenv("PMIX_RANK"))
        fatal(EXIT_USAGE, "environment: PMIX_RANK is set, but no variable of a launcher that this program knows; start "
              "with mpirun or srun --mpi=pmix, or unset PMIX_RANK");
    return (Launcher){"none", false, false, 0, 1};
}

/* Where a process's standard output leads: "/dev/pts/3", "pipe:[4711]", a file. False where the system has no such
 * information. */
static bool output_of(long pid, char path[PATH_CHARS]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/%ld/fd/1", pid);
    ssize_t length = readlink(link, path, PATH_CHARS - 1);
    path[length < 0 ? 0 : length] = '\0';
    return length > 0;
}

/* The parent of a process, 0 where there is none or it is not known. */
static long parent_of(long pid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid); // "PID (NAME) STATE PARENT ..."
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    // NAME may itself contain blanks and ')', so it ends at the last one.
    const char *name_end = strrchr(text, ')');
    long parent = 0;
    return name_end && sscanf(name_end + 1, " %*c %ld", &parent) == 1 ? parent : 0;
}

bool launcher_output_is_terminal(void) {
    // A file or a pipe is never a terminal, whoever started this process.
    if (!isatty(STDOUT_FILENO)) return false;
    Launcher launcher = launcher_detect();
    // No launcher, or one that passes its own output on to its processes.
    if (!launcher.speaks_mpi) return true;
    char ours[PATH_CHARS], theirs[PATH_CHARS];
    long pid = getpid();
    if (!output_of(pid, ours)) return false;
    // A shell between us and the launcher shares our output: the first that does not is the launcher.
    do {
        pid = parent_of(pid);
        // 1 is the system's first process: there was no launcher above us, or it is gone.
        if (pid <= 1 || !output_of(pid, theirs)) return false;
    } while (strcmp(ours, theirs) == 0);
    // Names of terminals on Linux: of windows and ssh, of the machine's own screens, and of its console.
    return strncmp(theirs, "/dev/pts/", 9) == 0 || strncmp(theirs, "/dev/tty", 8) == 0 ||
           strcmp(theirs, "/dev/console") == 0;
}

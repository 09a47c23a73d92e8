/* launcher.c: see launcher.h. */
#include "launcher.h"

#include "../base/error.h"

#include <stdlib.h>

typedef struct {
    const char *name;
    bool speaks_mpi;
    const char *rank, *size; // variables
    const char *only_with;   // a variable without which the others mean nothing, or NULL
} Variables;

/* In the order in which they are believed. An MPI launcher comes first: scripts often export RANK
 * and WORLD_SIZE beside it, and mpirun inside a Slurm job sees Slurm's variables too. A Slurm batch
 * script itself has them as well; only inside a step (srun) do they number this process. */
static const Variables launchers[] = {
    {"Open MPI", true, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL},
    {"MPICH", true, "PMI_RANK", "PMI_SIZE", NULL},
    {"srun", true, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID"},
    {"torchrun", false, "RANK", "WORLD_SIZE", NULL},
};

/* The variable's value, a whole number in least .. 2^20, or -1 when it is not set. */
static int number(const char *variable, int least) {
    const char *text = getenv(variable);
    if (!text) return -1;
    char *end;
    long value = strtol(text, &end, 10);
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
        if (v->only_with && !getenv(v->only_with)) continue;
        int rank = number(v->rank, 0), size = number(v->size, 1);
        if (rank < 0 && size < 0) continue;
        if (rank < 0 || size < 0)
            fatal(EXIT_USAGE, "environment: %s is set without %s; unset it or start with mpirun",
                  rank < 0 ? v->size : v->rank, rank < 0 ? v->rank : v->size);
        if (rank >= size)
            fatal(EXIT_USAGE,
                  "environment: %s is %d, but there are only %s = %d ranks; unset both or "
                  "start with mpirun",
                  v->rank, rank, v->size, size);
        return (Launcher){v->name, v->speaks_mpi, rank, size};
    }
    return (Launcher){"none", false, 0, 1};
}

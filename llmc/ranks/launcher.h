/* launcher.h: which launcher started this process, from the environment. Open MPI's mpirun, MPICH's and
 * Intel's mpiexec, srun and torchrun each leave their variables there; none means one process.
 * Not here: joining the other ranks (world.h). */
#ifndef LLMC_LAUNCHER_H
#define LLMC_LAUNCHER_H

#include <stdbool.h>

typedef struct {
    const char *name; // for messages: "Open MPI", "srun", ..., "none"
    bool speaks_mpi;  // its processes can find each other over MPI
    bool open_mpi;    // over Open MPI, which needs mpirun's own variables or PMIx
    int rank, size;   // 0 of 1 when there is no launcher
} Launcher;

/* Reads the environment. Fatal (EXIT_USAGE) when variables contradict each other or are half set.
 */
Launcher launcher_detect(void);

/* Whether what this process prints ends on a terminal. mpirun gives ranks a pseudo-terminal whatever its own
 * output is, so under a launcher the launcher's output counts; false where that is not known. */
bool launcher_output_is_terminal(void);

#endif

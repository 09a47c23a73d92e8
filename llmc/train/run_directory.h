/* run_directory.h: where a run's files go. Two runs never mix. */
#ifndef LLMC_RUN_DIRECTORY_H
#define LLMC_RUN_DIRECTORY_H

#include "../files/lock.h"

#include <stdbool.h>

/* Takes the lock of the directory `out` of a run, OUT/.train_gpt2.lock (lock.h): before anything in it is read, and
 * until the process ends. It waits some seconds for a process that has it: one that was killed takes a while to go.
 * Fatal (EXIT_RUNTIME), naming host and process, when it is in use, and when it cannot be locked. make: the
 * directory (with its parents) is made where it is missing; else NULL. */
Lock *run_directory_lock(const char *out, bool make);

/* Fatal (EXIT_RUNTIME) when the directory is no longer where it was locked: it was moved, removed or replaced,
 * and what would now be written there might fall into another run. */
void run_directory_check(const Lock *lock, const char *out);

/* Makes the next free out/run-NNNN and returns its path; free() releases it. */
char *run_directory_next(void);

/* Refuses (EXIT_USAGE) a locked directory that already holds a run. */
void run_directory_refuse_used(const char *out);

/* Removes the run that a locked directory holds: logs and checkpoints, and nothing else. */
void run_directory_clear(const char *out);

#endif

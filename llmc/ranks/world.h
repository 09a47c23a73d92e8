/* world.h: the ranks of one run. The number of this rank, how many ranks there are, and all-reduces of small host
 * values. Built with Open MPI or without; without it there is one rank. Gradients do not pass here but through
 * ops.h's reduction (which on the CPU calls world_all_reduce_begin). What the two builds share is in world_parts.h.
 * Next: stop.h, watchdog.h. */
#ifndef LLMC_WORLD_H
#define LLMC_WORLD_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int rank, size;             // of all ranks
    int local_rank, local_size; // of the ranks on this machine
    const char *launcher;       // "none", "Open MPI", ...: what started us, for the start-up table
} World;

/* Joins the world that the launcher (mpirun, srun) describes in the environment, or a world of one.
 * One process never calls MPI. Fatal (EXIT_USAGE) when a launcher asks for more ranks than this
 * build can have. From then on fatal() on any rank ends all of them, and messages name the rank. */
World world_open(int *argc, char ***argv);

/* Leaves it: all ranks together, at a normal end. exit() calls it too; a second call does nothing.
 */
void world_close(void);

/* How many ranks there are, 1 before world_open; and which of them this is. */
int world_size(void);
int world_rank(void);

/* The MPI library of this build, such as "Open MPI 4.1.4"; "none". */
const char *world_library(void);

/* This rank's share of the cores that its machine gives to the ranks there, at least 1. A launcher
 * may bind each rank to cores of its own, or all to the same ones, or not at all. */
int world_cores(void);

/* The threads that this rank shall have: `wanted` (--threads) if above 0, else OMP_NUM_THREADS (the first
 * number of its list), else world_cores. *source becomes which of them it was, for the start-up table, and
 * whether the ranks of this machine have more threads than cores. Fatal
 * (EXIT_USAGE) when OMP_NUM_THREADS is not a number of threads. All ranks call it together. */
int world_threads(int wanted, const char **source);

/* A barrier: every rank waits for all others. */
void world_barrier(void);

/* In place: values become the sum over ranks (for u64 modulo 2^64), the minimum, or rank 0's. */
void world_all_reduce_doubles(double *values, size_t count);
void world_all_reduce_u64(uint64_t *values, size_t count);
void world_all_reduce_min(int64_t *values, size_t count);
void world_broadcast(void *bytes, size_t count, int root);

/* Large sums of host memory that run while the caller computes. begin returns at once; wait ends
 * all that were begun. Every rank begins the same ones in the same order. Communication moves on
 * whenever one of these three is called; progress does nothing else. */
typedef enum { WORLD_FLOAT, WORLD_DOUBLE, WORLD_INT64 } WorldType;
void world_all_reduce_begin(void *values, size_t count, WorldType type);
void world_all_reduce_progress(void);
void world_all_reduce_wait(void);

/* Where all ranks are on one machine they share memory, through which large sums go several times faster
 * than through messages: every rank has a part of world_shared_bytes() bytes (0: there is none) that
 * all can read and write, and world_spin_barrier is a barrier fast enough to be used a thousand times in an
 * update. After it each rank sees what the others wrote before it. The environment variable TRAIN_GPT2_SHARED is
 * the size of all parts together, in bytes; 0 disables them. */
size_t world_shared_bytes(void);
void *world_shared(int rank);
void world_spin_barrier(void);

#endif

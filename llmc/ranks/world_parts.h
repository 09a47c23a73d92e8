/* world_parts.h: between world.c and the one of world_mpi.c and world_alone.c that is built. No other file includes
 * it. */
#ifndef LLMC_WORLD_PARTS_H
#define LLMC_WORLD_PARTS_H

#include "world.h"

/* Finds the other ranks that the launcher started and fills world's ranks and sizes. Not called in a build without
 * MPI. */
void world_join(World *world, int *argc, char ***argv);

/* In place: the bits of `bytes` that any rank on this machine has set. */
void world_local_or(void *bytes, int count);

/* The sum of `value` over the ranks on this machine. */
int world_local_sum(int value);

#endif

/* world_alone.c: world.h's communication in a build without MPI, where there is one rank: a sum
 * over ranks is the value itself, and there is no other rank to wait for. */
#include "world_parts.h"

#ifndef USE_MPI

void world_join(World *world, int *argc, char ***argv) {
    // Not called: world_open has refused a launcher of several ranks.
    (void)world, (void)argc, (void)argv;
}

const char *world_library(void) { return "none"; }

void world_close(void) {}
void world_local_or(void *bytes, int count) { (void)bytes, (void)count; }
int world_local_sum(int value) { return value; }

void world_barrier(void) {}
void world_all_reduce_doubles(double *values, size_t count) { (void)values, (void)count; }
void world_all_reduce_u64(uint64_t *values, size_t count) { (void)values, (void)count; }
void world_all_reduce_min(int64_t *values, size_t count) { (void)values, (void)count; }
void world_broadcast(void *bytes, size_t count, int root) { (void)bytes, (void)count, (void)root; }

void world_all_reduce_begin(void *values, size_t count, WorldType type) {
    (void)values, (void)count, (void)type;
}
void world_all_reduce_progress(void) {}
void world_all_reduce_wait(void) {}

// 0: the caller must not use the two functions below.
size_t world_shared_bytes(void) { return 0; }
void *world_shared(int rank) { return (void)rank, NULL; }
void world_spin_barrier(void) {}

#endif

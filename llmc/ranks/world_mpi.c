/* world_mpi.c: world.h's communication over MPI; the one file that calls it. A world of one never
 * does: then every function returns at once, because a sum over ranks is the value itself. */
#include "world_parts.h"

#ifdef USE_MPI

#include "../base/error.h"
#include "../base/memory.h"

#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { PIECE = 1 << 22 }; // elements of one call: its buffers stay small, and MPI counts in int

static bool joined = false;
static MPI_Comm local; // the ranks on this machine

static MPI_Request *running = NULL; // sums that were begun, in pieces
static int running_count = 0, running_room = 0;

/* Each rank's part of the memory shared on this machine: how often it has met the others, and what
 * world_shared gives out. */
typedef struct {
    _Alignas(128) atomic_ulong meetings;
    _Alignas(128) char bytes[];
} Part;

enum { SHARED_TOTAL = 16 << 20, LEAST_PART = 64 << 10 }; // bytes

static MPI_Win window;
static Part **parts = NULL;
static size_t shared_bytes = 0; // of a part
static int my_rank, part_count;

static void end_all_ranks(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

static void share_memory(const World *world) {
    const char *wanted = getenv("TRAIN_GPT2_SHARED");
    MPI_Aint size = (wanted ? atoi(wanted) : SHARED_TOTAL) / world->size & ~4095;
    void *mine;
    if (size < LEAST_PART) return;
    MPI_Comm_set_errhandler(local, MPI_ERRORS_RETURN); // without shared memory, messages will do
    int64_t ok =
        MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, local, &mine, &window) == MPI_SUCCESS;
    MPI_Comm_set_errhandler(local, MPI_ERRORS_ARE_FATAL);
    world_all_reduce_min(&ok, 1);
    if (!ok) return;
    parts = memory_new((size_t)world->size, sizeof *parts, "shared memory");
    for (int rank = 0; rank < world->size; rank++) {
        MPI_Aint bytes;
        int unit;
        char *part;
        MPI_Win_shared_query(window, rank, &bytes, &unit, &part);
        parts[rank] = (Part *)(part + -(uintptr_t)part % sizeof(Part)); // alike in every process
    }
    my_rank = world->rank;
    part_count = world->size;
    atomic_store(&parts[my_rank]->meetings, 0);
    world_barrier();
    shared_bytes = (size_t)size - 2 * sizeof(Part);
}

bool world_join(World *world, int *argc, char ***argv) {
    int level;
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &world->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world->size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL, &local);
    MPI_Comm_rank(local, &world->local_rank);
    MPI_Comm_size(local, &world->local_size);
    error_set_rank(world->rank, world->size);
    error_set_end(end_all_ranks);
    joined = true;
    if (world->local_size == world->size) share_memory(world);
    return true;
}

void world_close(void) {
    if (!joined) return;
    joined = false;
    error_set_end(NULL);
    if (shared_bytes) MPI_Win_free(&window);
    shared_bytes = 0;
    MPI_Comm_free(&local);
    MPI_Finalize();
    free(running);
    running = NULL;
    running_room = 0;
}

void world_local_or(void *bytes, int count) {
    if (joined) MPI_Allreduce(MPI_IN_PLACE, bytes, count, MPI_BYTE, MPI_BOR, local);
}

void world_barrier(void) {
    if (joined) MPI_Barrier(MPI_COMM_WORLD);
}

/* Elements of the piece that starts at `done`. */
static int piece(size_t count, size_t done) {
    return (int)(count - done < PIECE ? count - done : PIECE);
}

static void reduce(void *values, size_t count, size_t size, MPI_Datatype type, MPI_Op op) {
    for (size_t done = 0; joined && done < count; done += PIECE)
        MPI_Allreduce(MPI_IN_PLACE, (char *)values + done * size, piece(count, done), type, op,
                      MPI_COMM_WORLD);
}

void world_all_reduce_doubles(double *values, size_t count) {
    reduce(values, count, sizeof *values, MPI_DOUBLE, MPI_SUM);
}

void world_all_reduce_u64(uint64_t *values, size_t count) {
    reduce(values, count, sizeof *values, MPI_UINT64_T, MPI_SUM);
}

void world_all_reduce_min(int64_t *values, size_t count) {
    reduce(values, count, sizeof *values, MPI_INT64_T, MPI_MIN);
}

void world_broadcast(void *bytes, size_t count, int root) {
    for (size_t done = 0; joined && done < count; done += PIECE)
        MPI_Bcast((char *)bytes + done, piece(count, done), MPI_BYTE, root, MPI_COMM_WORLD);
}

static MPI_Request *next_request(void) {
    if (running_count == running_room) {
        running_room = running_room ? 2 * running_room : 64;
        running = memory_grow(running, (size_t)running_room, sizeof *running, "sums over ranks");
    }
    return &running[running_count++];
}

void world_all_reduce_begin(void *values, size_t count, WorldType type) {
    static const struct {
        MPI_Datatype type;
        size_t size;
    } of[] = {
        [WORLD_FLOAT] = {MPI_FLOAT, sizeof(float)},
        [WORLD_DOUBLE] = {MPI_DOUBLE, sizeof(double)},
        [WORLD_INT64] = {MPI_INT64_T, sizeof(int64_t)},
    };
    for (size_t done = 0; joined && done < count; done += PIECE)
        MPI_Iallreduce(MPI_IN_PLACE, (char *)values + done * of[type].size, piece(count, done),
                       of[type].type, MPI_SUM, MPI_COMM_WORLD, next_request());
    world_all_reduce_progress();
}

void world_all_reduce_progress(void) {
    int done;
    if (running_count > 0) MPI_Testall(running_count, running, &done, MPI_STATUSES_IGNORE);
}

void world_all_reduce_wait(void) {
    if (running_count > 0) MPI_Waitall(running_count, running, MPI_STATUSES_IGNORE);
    running_count = 0;
}

size_t world_shared_bytes(void) { return shared_bytes; }

void *world_shared(int rank) { return parts[rank]->bytes; }

/* Spins, then lets others run, then sleeps: more ranks than cores, or one that is late. */
static void wait_a_little(int turn) {
    if (turn > 20000)
        usleep(50);
    else if (turn > 1000)
        sched_yield();
}

void world_spin_barrier(void) {
    unsigned long meeting = atomic_fetch_add(&parts[my_rank]->meetings, 1) + 1;
    for (int rank = 0; rank < part_count; rank++)
        for (int turn = 0; atomic_load(&parts[rank]->meetings) < meeting;) wait_a_little(turn++);
}

#endif

/* world_mpi.c: world.h's communication over MPI; the one file that calls it. A world of one never
 * does: then every function returns at once, because a sum over ranks is the value itself. */
#include "world_parts.h"

#ifdef USE_MPI

#include "../base/activity.h"
#include "../base/error.h"
#include "../base/memory.h"

#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PIECE = 1 << 22 }; // elements of one call: its buffers stay small, and MPI counts in int

static bool joined = false;
static MPI_Comm local; // the ranks on this machine

static MPI_Request *running = NULL; // sums that were begun, in pieces
static int running_count = 0, running_room = 0;

/* Each rank's part of the memory shared on this machine: how many barriers it has entered, and what world_shared
 * returns. */
typedef struct {
    // The alignment keeps each counter on a cache line of its own: a rank that writes data does not slow down those
    // that spin on the counter.
    _Alignas(128) atomic_ulong meetings;
    _Alignas(128) char bytes[];
} Part;

enum { SHARED_TOTAL = 16 << 20, LEAST_PART = 64 << 10 }; // bytes

static char *shared_memory = NULL; // of all parts, one after the other
static Part **parts = NULL;
static size_t shared_bytes = 0; // of a part
static int my_rank, part_count;

/* For fatal(): MPI ends the other ranks too. */
static void end_all_ranks(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

/* Room for bytes first .. first+count of a file, so that there is enough when it is written to. False where there
 * is not enough. */
static bool reserve(int file, off_t first, off_t count) {
#ifdef __APPLE__
    // macOS has no posix_fallocate.
    return ftruncate(file, first + count) == 0;
#else
    // Memory is taken here, where its lack is an error code. A write to a page that cannot be had is a SIGBUS.
    return posix_fallocate(file, first, count) == 0;
#endif
}

/* Rank 0 makes a file that lies in memory where the system has a place for it, and broadcasts its name; every
 * rank reserves its own part (so that it lies near its cores) and maps all. NULL unless all could: an MPI library
 * notices that memory is full only when it is too late for the other ranks. */
static char *map_together(const World *world, size_t part) {
    char name[64] = "";
    const size_t all = part * (size_t)world->size;
    int file = -1;
    if (world->rank == 0) {
        snprintf(name, sizeof name, "%s/train_gpt2.XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        file = mkstemp(name);
    }
    // An empty or useless name reaches the others too; their open() fails, and all agree below.
    world_broadcast(name, sizeof name, 0);
    if (world->rank > 0) file = open(name, O_RDWR | O_CLOEXEC);
    int64_t ok = file >= 0 && reserve(file, (off_t)(part * (size_t)world->rank), (off_t)part);
    world_all_reduce_min(&ok, 1);
    // All have it open, so its name can go: the memory then ends with the last process, even a killed one.
    if (file >= 0 && world->rank == 0) unlink(name);
    void *memory = MAP_FAILED;
    if (ok) memory = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    ok = memory != MAP_FAILED;
    world_all_reduce_min(&ok, 1);
    if (ok) return memory;
    if (memory != MAP_FAILED) munmap(memory, all);
    return NULL;
}

/* Maps memory that all ranks of one machine share. Where that is not possible, messages are used. */
static void share_memory(const World *world) {
    const char *wanted = getenv("TRAIN_GPT2_SHARED");
    // Whole pages. Of 16 MiB 4 ranks have 4 MiB each, and up to 256 ranks have at least 64 KiB.
    size_t part = (size_t)(wanted ? atoi(wanted) : SHARED_TOTAL) / (size_t)world->size & ~(size_t)4095;
    if (part < LEAST_PART) return;
    shared_memory = map_together(world, part);
    if (!shared_memory) return; // messages are used instead
    parts = memory_new((size_t)world->size, sizeof *parts, "shared memory");
    for (int rank = 0; rank < world->size; rank++) parts[rank] = (Part *)(shared_memory + part * (size_t)rank);
    my_rank = world->rank;
    part_count = world->size;
    // No rank may enter world_spin_barrier before all counters are 0.
    atomic_store(&parts[my_rank]->meetings, 0);
    world_barrier();
    shared_bytes = part - sizeof(Part);
}

void world_join(World *world, int *argc, char ***argv) {
    int level;
    activity_begin(ACTIVITY_JOIN);
    // FUNNELED: only the main thread calls MPI, while OpenMP's threads compute beside it.
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &world->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world->size);
    // A communicator of the ranks that can share memory, that is, those on this machine.
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL, &local);
    MPI_Comm_rank(local, &world->local_rank);
    MPI_Comm_size(local, &world->local_size);
    error_set_rank(world->rank, world->size);
    error_set_end(end_all_ranks);
    // From here on the functions below talk to MPI; share_memory uses them.
    joined = true;
    activity_begin(ACTIVITY_START);
    if (world->local_size == world->size) share_memory(world);
}

const char *world_library(void) {
    static char name[64];
#ifdef OMPI_MAJOR_VERSION
    snprintf(name, sizeof name, "Open MPI %d.%d.%d", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
#else
    snprintf(name, sizeof name, "of the standard %d.%d", MPI_VERSION, MPI_SUBVERSION);
#endif
    return name;
}

void world_close(void) {
    if (!joined) return;
    joined = false;
    // After MPI_Finalize no MPI call is allowed, so fatal() must not reach MPI_Abort any more.
    error_set_end(NULL);
    if (shared_bytes) munmap(shared_memory, (size_t)part_count * (shared_bytes + sizeof(Part)));
    shared_bytes = 0;
    free(parts);
    MPI_Comm_free(&local);
    MPI_Finalize();
    free(running);
    running = NULL;
    running_room = 0;
}

void world_local_or(void *bytes, int count) {
    if (!joined) return;
    Activity before = activity_begin(ACTIVITY_WAIT);
    MPI_Allreduce(MPI_IN_PLACE, bytes, count, MPI_BYTE, MPI_BOR, local);
    activity_begin(before);
}

int world_local_sum(int value) {
    if (!joined) return value;
    Activity before = activity_begin(ACTIVITY_WAIT);
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, local);
    activity_begin(before);
    return value;
}

void world_barrier(void) {
    if (!joined) return;
    Activity before = activity_begin(ACTIVITY_WAIT);
    MPI_Barrier(MPI_COMM_WORLD);
    activity_begin(before);
}

/* Elements of the piece that starts at `done`. */
static int piece(size_t count, size_t done) {
    // Such as 10 Mi elements: pieces of 4 Mi, 4 Mi and 2 Mi.
    return (int)(count - done < PIECE ? count - done : PIECE);
}

/* An all-reduce in pieces: MPI counts in int. */
static void reduce(void *values, size_t count, size_t size, MPI_Datatype type, MPI_Op op) {
    Activity before = activity_begin(ACTIVITY_WAIT);
    // Each piece is progress for the watchdog, so that a large sum over a slow network is not taken for a hang.
    for (size_t done = 0; joined && done < count; done += PIECE, activity_tick())
        MPI_Allreduce(MPI_IN_PLACE, (char *)values + done * size, piece(count, done), type, op,
                      MPI_COMM_WORLD);
    activity_begin(before);
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
    Activity before = activity_begin(ACTIVITY_WAIT);
    for (size_t done = 0; joined && done < count; done += PIECE, activity_tick())
        MPI_Bcast((char *)bytes + done, piece(count, done), MPI_BYTE, root, MPI_COMM_WORLD);
    activity_begin(before);
}

/* Room for one more running all-reduce. */
static MPI_Request *next_request(void) {
    // A request is only a handle, so the array may move while the sums run.
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
    // MPI matches non-blocking sums by their order alone; the pieces come in the same order on every rank.
    for (size_t done = 0; joined && done < count; done += PIECE)
        MPI_Iallreduce(MPI_IN_PLACE, (char *)values + done * of[type].size, piece(count, done),
                       of[type].type, MPI_SUM, MPI_COMM_WORLD, next_request());
    world_all_reduce_progress();
}

void world_all_reduce_progress(void) {
    int done;
    // Whether all are done does not matter here: MPI sends and receives within such calls.
    if (running_count > 0) MPI_Testall(running_count, running, &done, MPI_STATUSES_IGNORE);
}

void world_all_reduce_wait(void) {
    Activity before = activity_begin(ACTIVITY_WAIT);
    // Finished requests have become null; waiting for them returns at once.
    if (running_count > 0) MPI_Waitall(running_count, running, MPI_STATUSES_IGNORE);
    running_count = 0;
    activity_begin(before);
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
    Activity before = activity_begin(ACTIVITY_WAIT);
    // Counters only rise, so a rank may already be in the next barrier: hence < and not !=. The atomic operations order
    // memory: what a rank wrote before its count rose is seen by all that have seen the count.
    unsigned long meeting = atomic_fetch_add(&parts[my_rank]->meetings, 1) + 1;
    for (int rank = 0; rank < part_count; rank++)
        for (int turn = 0; atomic_load(&parts[rank]->meetings) < meeting;) wait_a_little(turn++);
    activity_begin(before);
}

#endif

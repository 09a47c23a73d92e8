/* emulator.h: what the stand-in headers and the tests ask of the engine that runs kernels on a CPU.
 *
 * One block runs at a time, each of its threads on a fiber of its own. A thread runs until it reaches
 * a barrier or a warp collective; which thread runs next is decided by the order (forward, reversed,
 * random), so that whatever depends on luck fails in one of them. What a GPU would leave undefined is
 * a fault here: one line on stderr that names kernel, block and thread, and exit code 70.
 *
 * Environment, read at every launch:
 *   EMULATOR_ORDER    forward (default), reversed, random or random:SEED
 *   EMULATOR_DEVICES  how many devices there seem to be (8); negative: not even a driver
 *   EMULATOR_MEMORY   bytes on each (16e9); EMULATOR_CAPABILITY: of each (80)
 *   CUDA_VISIBLE_DEVICES   as in CUDA: numbers, GPU-NN, or, with EMULATOR_MIG=1, MIG-NN-SLICE (devices.cpp)
 *   EMULATOR_NAME, EMULATOR_SMS, EMULATOR_CLOCK   of each: what it is called, multiprocessors, kHz
 *   EMULATOR_FAULT    KIND:N:RANK: the rank's Nth launch hangs, fails, or from there each is slow (50 ms)
 *   EMULATOR_NCCL_FAULT   KIND:N:RANK: the rank's Nth all-reduce hangs, has an async error, a mismatched length,
 *                     or is the last thing that the process does: lost (it is stopped)
 *   EMULATOR_REFUSE   epilogues: cuBLASLt offers none, as on hardware that does not fuse them
 *   EMULATOR_KERNELS  a file to which the kernels that ran are appended at exit, each with the order
 * Next: engine.cpp (threads), faults.cpp, runtime.cpp (memory and streams). */
#ifndef EMULATOR_H
#define EMULATOR_H

#include <functional>
#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__)
#define EMULATOR_ASAN // gcc says it like this,
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATOR_ASAN // and clang like that
#endif
#endif

enum { FAULT_EXIT = 70, WARP_SIZE = 32, BLOCK_THREADS_MAX = 1024, SHARED_BYTES_MAX = 101376 };

enum class Order { FORWARD, REVERSED, RANDOM };
Order emulator_order();

/* A pseudo-random number below `limit`, from EMULATOR_ORDER's seed. */
uint32_t emulator_random(uint32_t limit);

/* Reports what a GPU would leave undefined and ends the process. */
[[noreturn]] void emulator_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From now on bad addresses are reported in the same way (engine.cpp calls it). */
void emulator_watch_signals();

/* Where in the source a thread waits. */
struct Site {
    const char *file;
    int line;
};

/* Runs `thread` once for every thread of every block of the grid, at once. */
struct Grid {
    unsigned blocks[3], threads[3];
    size_t shared_bytes; // dynamic
};
void emulator_run(const char *kernel, const Grid &grid, const std::function<void()> &thread);
/* The running kernel, or NULL. */
const char *emulator_kernel();

/* __syncthreads(). */
void emulator_barrier(Site site);

/* A warp collective: waits until all live lanes of `mask` have come to the same one, then `run` is called
 * once with every lane's data (NULL for lanes that take no part). whole_warp: no lane may be missing. */
struct Collective {
    const char *name;
    void (*run)(void *data[WARP_SIZE]);
    uint32_t mask;
    bool whole_warp;
    Site site;
    void *data;
};
void emulator_collective(Collective *collective);

/* The exchange behind shuffles and votes: every lane gives `value`; afterwards *values has those of the
 * lanes in the returned set, to be read before the next collective. */
uint32_t emulator_exchange(const char *name, uint32_t mask, Site site, uint64_t value,
                           const uint64_t **values);

/* Dynamic shared memory of the running block, and whether an address is shared at all. */
unsigned char *emulator_shared();
bool emulator_is_shared(const void *address, size_t bytes);

/* cp.async: `read` of `size` bytes are copied and the rest zeroed, no sooner than the wait. */
void emulator_copy_async(void *shared, const void *global, size_t size, size_t read);
void emulator_copy_commit();
void emulator_copy_wait(int newest_left);

/* Bytes that show: NaN as float, double and bf16, -1 as an integer. */
void emulator_poison(void *memory, size_t bytes);

/* Says which allocation an address is in or near; used when a fault is reported (runtime.cpp). */
void emulator_describe(const void *address, char *text, size_t size);

/* Appends work to a stream (runtime.cpp): the stand-ins of cuBLASLt and NCCL use it. */
struct CUstream_st;
void emulator_enqueue(CUstream_st *stream, std::function<void()> work);
/* Likewise, work that is called until it returns true. */
void emulator_enqueue_polled(CUstream_st *stream, std::function<bool()> work);

/* From now on the device answers with this error (cudaError_t), as after a faulting kernel. */
void emulator_device_fails(int error);

/* The 16 bytes that identify this process's device. */
const unsigned char *emulator_device_uuid();

/* Whether the Nth call of this kind (calls: how many there were) has the fault `kind` of EMULATOR_FAULT or
 * EMULATOR_NCCL_FAULT on this rank. */
bool emulator_fault_is(const char *variable, const char *kind, long calls, bool later_too);

#endif

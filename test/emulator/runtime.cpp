/* runtime.cpp: devices, memory, streams and events of the emulator. See emulator.h; next: cublaslt.cpp.
 *
 * A stream's work runs as late as it may, or as early: in forward order everything waits until the host
 * asks for it, in reversed order the side streams run at once while the first one waits, in random
 * order a coin decides. So work that needs an event between two streams and has none goes wrong. */
#include "cuda_runtime.h"
#include "devices.h"

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#ifdef EMULATOR_ASAN
#include <sanitizer/asan_interface.h>
#endif

static cudaError_t last_error = cudaSuccess;
static cudaError_t failing = cudaSuccess; // for ever, after a faulting kernel
void emulator_device_fails(int error) { failing = (cudaError_t)error; }
static cudaError_t failed(cudaError_t error) { return last_error = error; }

cudaError_t cudaGetLastError() {
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

const char *cudaGetErrorString(cudaError_t error) {
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
        return "invalid resource handle";
    case cudaErrorIllegalAddress:
        return "an illegal memory access was encountered";
    case cudaErrorNotReady:
        return "device not ready";
    }
    return "unknown error";
}

// ---- memory -----------------------------------------------------------------------------------

namespace {
struct Allocation {
    size_t bytes, mapped; // asked for; mapped around it, with an inaccessible page on each side
    char *map;
    bool pinned;
};
std::map<char *, Allocation> allocations;
size_t device_bytes;
const size_t ALIGNMENT = 256;
const unsigned char CANARY = 0xa5;
} // namespace

static size_t slack(const Allocation &a) { return (ALIGNMENT - a.bytes % ALIGNMENT) % ALIGNMENT; }

/* The allocation that holds an address, or ends just before it; NULL when there is none. */
static const std::pair<char *const, Allocation> *allocation_near(const void *address) {
    auto after = allocations.upper_bound((char *)address);
    if (after == allocations.begin()) return NULL;
    return &*--after;
}

void emulator_describe(const void *address, char *text, size_t size) {
    const std::pair<char *const, Allocation> *near = allocation_near(address);
    if (near && (char *)address < near->second.map + near->second.mapped)
        snprintf(text, size, "%p, %zd bytes into an allocation of %zu", address,
                 (ssize_t)((char *)address - near->first), near->second.bytes);
    else
        snprintf(text, size, "%p", address);
}

/* Ends, within its 256-byte granules, at an inaccessible page. */
static char *allocate(size_t bytes, bool pinned) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    Allocation a = {bytes, 0, NULL, pinned};
    size_t body = (bytes + slack(a) + page - 1) / page * page;
    a.mapped = body + 2 * page;
    a.map = (char *)mmap(NULL, a.mapped, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (a.map == MAP_FAILED) return NULL;
    mprotect(a.map, page, PROT_NONE);
    mprotect(a.map + page + body, page, PROT_NONE);
    char *memory = a.map + page + body - bytes - slack(a);
    emulator_poison(memory, bytes);
    memset(memory + bytes, CANARY, slack(a));
#ifdef EMULATOR_ASAN
    __asan_poison_memory_region(memory + bytes, slack(a));
#endif
    allocations[memory] = a;
    return memory;
}

static cudaError_t release(void *memory, bool pinned) {
    if (!memory) return cudaSuccess;
    auto found = allocations.find((char *)memory);
    if (found == allocations.end() || found->second.pinned != pinned)
        return failed(cudaErrorInvalidValue);
    Allocation a = found->second;
#ifdef EMULATOR_ASAN
    __asan_unpoison_memory_region((char *)memory + a.bytes, slack(a));
#endif
    for (size_t i = 0; i < slack(a); i++)
        if (((unsigned char *)memory)[a.bytes + i] != CANARY)
            emulator_fault("byte %zu beyond an allocation of %zu was written", i, a.bytes);
    allocations.erase(found);
    munmap(a.map, a.mapped);
    if (!pinned) device_bytes -= a.bytes;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
    if ((double)device_bytes + (double)bytes > emulator_setting("EMULATOR_MEMORY", 16e9) ||
        !(*memory = allocate(bytes, false)))
        return failed(cudaErrorMemoryAllocation);
    device_bytes += bytes;
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **memory, size_t bytes) {
    return (*memory = allocate(bytes, true)) ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *memory) { return release(memory, true); }

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    *total = (size_t)emulator_setting("EMULATOR_MEMORY", 16e9);
    *free = *total - device_bytes;
    return cudaSuccess;
}

// ---- streams ----------------------------------------------------------------------------------

namespace {
struct Work {
    std::function<bool()> run; // true when it is done
    CUevent_st *awaited; // with `ticket`: which of its records
    uint64_t ticket;
};
std::map<CUstream_st *, int> streams; // and how many were created before
} // namespace

struct CUstream_st {
    std::deque<Work> queue;
};

struct CUevent_st {
    CUstream_st *stream; // of the newest record
    uint64_t recorded, done;
};

/* Runs the oldest work of a stream; first, what it waits for in others. False: it is not done yet. */
static bool step(CUstream_st *stream) {
    Work &work = stream->queue.front();
    while (work.awaited && work.awaited->done < work.ticket)
        if (!step(work.awaited->stream)) return false;
    if (work.run && !work.run()) return false;
    stream->queue.pop_front();
    return true;
}

/* For ever, if work hangs: as CUDA's own waits. */
static void drain(CUstream_st *stream) {
    while (!stream->queue.empty())
        if (!step(stream)) usleep(100);
}

/* As far as it goes now. */
static void advance(CUstream_st *stream) {
    while (!stream->queue.empty() && step(stream)) {
    }
}

static CUstream_st *checked(CUstream_st *stream) {
    if (emulator_kernel()) emulator_fault("a runtime call inside a kernel");
    if (!streams.count(stream))
        emulator_fault("the default stream or one that does not exist is used");
    return stream;
}

static void enqueue(CUstream_st *stream, Work work) {
    checked(stream)->queue.push_back(std::move(work));
    Order order = emulator_order();
    if ((order == Order::REVERSED && streams[stream] > 0) ||
        (order == Order::RANDOM && emulator_random(4) == 0))
        advance(stream);
}

void emulator_enqueue(CUstream_st *stream, std::function<void()> work) {
    enqueue(stream, {[work] { return work(), true; }, NULL, 0});
}

void emulator_enqueue_polled(CUstream_st *stream, std::function<bool()> work) {
    enqueue(stream, {std::move(work), NULL, 0});
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    if (flags != cudaStreamNonBlocking) return failed(cudaErrorInvalidValue);
    *stream = new CUstream_st();
    int before = (int)streams.size();
    streams[*stream] = before;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    drain(checked(stream));
    streams.erase(stream);
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    drain(checked(stream));
    return failing;
}

cudaError_t cudaFree(void *memory) { // like the real one, after all work
    for (auto &stream : streams) drain(stream.first);
    return release(memory, false);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
    *event = new CUevent_st{NULL, 0, 0};
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    if (event->done < event->recorded)
        emulator_fault("an event is destroyed before it has happened");
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    uint64_t ticket = ++event->recorded;
    event->stream = stream;
    enqueue(stream, {[=] { return event->done = ticket, true; }, NULL, 0});
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    if (event->recorded) enqueue(stream, {NULL, event, event->recorded});
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    while (event->done < event->recorded)
        if (!step(event->stream)) usleep(100);
    return failing;
}

/* Each question runs one piece of the event's stream, so that a host that asks again sees progress. */
cudaError_t cudaEventQuery(cudaEvent_t event) {
    if (event->done < event->recorded) step(event->stream);
    if (failing) return failing;
    return event->done < event->recorded ? failed(cudaErrorNotReady) : cudaSuccess;
}

// ---- copies -----------------------------------------------------------------------------------

static void check_device(const void *memory, size_t bytes, const char *what) {
    const std::pair<char *const, Allocation> *near = allocation_near(memory);
    if (!near || near->second.pinned || (char *)memory + bytes > near->first + near->second.bytes)
        emulator_fault("%s: %zu bytes at %p do not lie in one device allocation", what, bytes,
                       memory);
}

static bool is_pinned(const void *memory) {
    const std::pair<char *const, Allocation> *near = allocation_near(memory);
    return near && near->second.pinned && (char *)memory < near->first + near->second.bytes;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    if (kind != cudaMemcpyHostToDevice) check_device(from, bytes, "copy from");
    if (kind != cudaMemcpyDeviceToHost) check_device(to, bytes, "copy to");
    if (kind == cudaMemcpyHostToDevice &&
        !is_pinned(from)) { // staged: taken before the call returns
        std::string staged((const char *)from, bytes);
        emulator_enqueue(stream, [=] { memcpy(to, staged.data(), bytes); });
        return cudaSuccess;
    }
    emulator_enqueue(stream, [=] { memcpy(to, from, bytes); });
    if (kind == cudaMemcpyDeviceToHost && !is_pinned(to)) drain(stream);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t stream) {
    check_device(memory, bytes, "memset");
    emulator_enqueue(stream, [=] { memset(memory, byte, bytes); });
    return cudaSuccess;
}

// ---- launches ---------------------------------------------------------------------------------

static std::map<const void *, int> &shared_limits() {
    static std::map<const void *, int> limits;
    return limits;
}

cudaError_t emulator_function_attribute(const void *kernel, cudaFuncAttribute, int value) {
    if (value > SHARED_BYTES_MAX) return failed(cudaErrorInvalidValue);
    shared_limits()[kernel] = value;
    return cudaSuccess;
}

bool emulator_launchable(const void *kernel, const Grid &grid) {
    const unsigned *b = grid.blocks, *t = grid.threads;
    uint64_t threads = (uint64_t)t[0] * t[1] * t[2];
    auto limit = shared_limits().find(kernel);
    size_t shared = limit == shared_limits().end() ? 48 << 10 : (size_t)limit->second;
    if (!b[0] || !b[1] || !b[2] || !threads || threads > BLOCK_THREADS_MAX || t[2] > 64 ||
        b[0] > 0x7fffffff || b[1] > 65535 || b[2] > 65535)
        return failed(cudaErrorInvalidConfiguration), false;
    if (grid.shared_bytes > shared) return failed(cudaErrorInvalidValue), false;
    return true;
}

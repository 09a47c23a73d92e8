/* wait.cuh: how the host waits for the device: never for ever, and so that the watchdog (ranks/watchdog.h) can say
 * what a rank waits for. A wait polls its event, NCCL's errors, and the marks that show the device's progress. Limits
 * are the watchdog's: while the device makes no progress nothing ticks here, and --hang-timeout ends the run.
 * Next: gpu.cuh. */
#ifndef LLMC_CUDA_WAIT_CUH
#define LLMC_CUDA_WAIT_CUH

#include "cuda.cuh"

extern "C" {
#include "../base/activity.h"
}

#include <unistd.h>
#ifdef USE_NCCL
#include <nccl.h>
#endif

constexpr int MARKS = 64;        // more buckets than this in flight share a mark
constexpr int EAGER_POLLS = 200; // without sleeping: most waits are short
constexpr unsigned POLL_US = 20;

#ifdef USE_NCCL
static ncclComm_t exchange_comm; // NULL: there is none

/* Ends all ranks when NCCL has found an error in the background: a lost peer, a dead link, a wrong call. */
static void exchange_check() {
    ncclResult_t state = ncclSuccess;
    if (!exchange_comm || ncclCommGetAsyncError(exchange_comm, &state) != ncclSuccess || state == ncclSuccess) return;
    ncclCommAbort(exchange_comm); // its kernels end, so that this process can
    exchange_comm = NULL;
    fatal(EXIT_RUNTIME,
          "the exchange of gradients failed: NCCL: %s, so all ranks end; look at the GPUs, links and network of the "
          "machines (NCCL_DEBUG=INFO says more)",
          ncclGetErrorString(state));
}
#else
static void exchange_check() {}
#endif

/* Points in the compute stream, oldest first: passing one is the device's progress. */
static struct {
    cudaEvent_t events[MARKS];
    int first, count;
} marks;

/* From now on the device is seen to make progress when it comes to this point of the compute stream. */
static void device_mark() {
    if (marks.count == MARKS) return;
    cudaEvent_t *event = &marks.events[(marks.first + marks.count) % MARKS];
    if (!*event) CUDA(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    CUDA(cudaEventRecord(*event, device.stream));
    marks.count++;
}

/* Whether an event has happened; an error of the device ends the program. */
static bool has_happened(cudaEvent_t event) {
    cudaError_t state = cudaEventQuery(event);
    if (state == cudaErrorNotReady) {
        cudaGetLastError(); // clears the code, which the next check would take for an error
        return false;
    }
    if (state != cudaSuccess)
        fatal(EXIT_RUNTIME, "the GPU at %s failed: CUDA error %d (%s); start again with TRAIN_GPT2_SYNC=1, which names "
                            "the kernel", device.bus, (int)state, cudaGetErrorString(state));
    return true;
}

/* Tells the watchdog how far the device has come. */
static void see_progress() {
    while (marks.count > 0 && has_happened(marks.events[marks.first])) {
        marks.first = (marks.first + 1) % MARKS;
        marks.count--;
        activity_tick();
    }
}

/* Waits for an event; `doing` is ACTIVITY_DEVICE or ACTIVITY_EXCHANGE. */
static void device_wait(cudaEvent_t event, Activity doing) {
    Activity before = activity_begin(doing);
    for (int polls = 0; !has_happened(event); polls++) {
        see_progress();
        exchange_check();
        if (polls > EAGER_POLLS) usleep(POLL_US);
    }
    activity_begin(before);
}

/* Waits for all that was enqueued on the compute stream. */
static void device_synchronize() {
    static cudaEvent_t end;
    if (!end) CUDA(cudaEventCreateWithFlags(&end, cudaEventDisableTiming));
    CUDA(cudaEventRecord(end, device.stream));
    device_wait(end, ACTIVITY_DEVICE);
}

/* With TRAIN_GPT2_SYNC=1, after each launch: the kernel that faults is named, and not a later call. */
static void device_check_launch(const char *kernel) {
    cuda_check(cudaGetLastError(), kernel);
    if (device.sync) cuda_check(cudaStreamSynchronize(device.stream), kernel);
}

#endif

/* cuda.cuh: what every file of the CUDA backend includes first: the seam's element types, how errors
 * are reported, how kernels are launched, and the device's state that launchers need.
 *
 * By default weights and activations are bf16, and every sum or stored state float: gradients,
 * statistics, moments and the master copy of the weights. With -DPRECISION_FP32 all are float.
 * Each file of llmc/cuda/ is one family: kernels, then the launchers behind ops.h. Reading order:
 * this file, vector_access.cuh, warp_reduce.cuh, tensor_core.cuh, then any. train_gpt2.cu includes them all. */
#ifndef LLMC_CUDA_CUH
#define LLMC_CUDA_CUH

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <stdint.h>

typedef __nv_bfloat16 bf16;
#ifdef PRECISION_FP32
typedef float Param, Act;
#else
typedef bf16 Param, Act;
#endif
typedef float Grad, RowStat, OptimizerState;
typedef int32_t Id;
#define OPS_BACKEND

#define _Noreturn [[noreturn]] // C's word in error.h
extern "C" {
#include "../base/error.h"
#include "../base/memory.h"
#include "../ops.h"
#include "../ranks/world.h"
}
#undef _Noreturn

// ---- errors and launches ------------------------------------------------------------------------

/* Ends the program when a runtime call or a launch has failed: one line that names it. */
static inline void cuda_check(cudaError_t error, const char *what) {
    if (error != cudaSuccess)
        fatal(EXIT_RUNTIME, "%s: CUDA error %d (%s)", what, (int)error, cudaGetErrorString(error));
}
#define CUDA(call) cuda_check(call, #call)

/* Enqueues a kernel on the compute stream. Write `kernel` in parentheses when it has template arguments; `shared`
 * is its dynamic shared memory in bytes. */
#ifdef __CUDACC__
#define LAUNCH(kernel, grid, block, shared, ...)                                                   \
    do {                                                                                           \
        kernel<<<grid, block, shared, device.stream>>>(__VA_ARGS__);                               \
        device_check_launch(#kernel);                                                              \
    } while (0)
#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#else // the emulator: see test/emulator
#define LAUNCH(kernel, grid, block, shared, ...)                                                   \
    do {                                                                                           \
        emulator_launch(#kernel, kernel, grid, block, shared, device.stream, __VA_ARGS__);         \
        device_check_launch(#kernel);                                                              \
    } while (0)
#define DYNAMIC_SHARED(name) unsigned char *name = emulator_shared()
#endif

// ---- the device (train_gpt2.cu) -----------------------------------------------------------------

typedef struct {
    cudaStream_t stream; // everything but the exchange of gradients between ranks
    int major;           // of the compute capability
    bool absent;         // there is none: only `plan` works
    int number, visible; // the visible device that is this rank's, and how many it sees
    char bus[24];        // PCI bus id
    bool sync;           // wait after each launch
    void *scratch;       // for one operation at a time; grows, see scratch_take
    size_t scratch_bytes;
} Device;
static Device device;

/* Ends the program when a launch has failed (wait.cuh). */
static void device_check_launch(const char *kernel);

/* At least `bytes` of device memory, 256-byte aligned, until the next call. */
static void *scratch_take(size_t bytes);

static inline int divide_up(int a, int b) { return (a + b - 1) / b; }

#endif

/* cuda_runtime.h: the emulator's stand-in for CUDA's header of the same name; as much of it as
 * train_gpt2.cu and llmc/cuda use. Device functions run on the fibers of engine.cpp; memory, streams
 * and events are in runtime.cpp. What it leaves out fails to compile, which is the point. */
#ifndef EMULATOR_CUDA_RUNTIME_H
#define EMULATOR_CUDA_RUNTIME_H
#define CUDART_VERSION 13000 // as cudaDriverGetVersion says

#include "emulator.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ static __attribute__((section("emulated_shared"), used)) // used: never constant

// ---- thread indices, vectors --------------------------------------------------------------------

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static const int warpSize = WARP_SIZE;

// ---- barriers and warp collectives: each knows its place in the source --------------------------

#define CALL_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(CALL_SITE) { emulator_barrier({file, line}); }

inline void __syncwarp(uint32_t mask = 0xffffffff, CALL_SITE) {
    Collective collective = {"__syncwarp", NULL, mask, false, {file, line}, &collective};
    emulator_collective(&collective);
}

/* The value of lane `source`: undefined on a GPU, poison here, when that lane does not take part. */
template <typename T>
T emulator_shuffle(const char *name, uint32_t mask, T value, int source, Site site) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value,
                  "shuffles move 4 or 8 bytes");
    uint64_t bits = 0;
    const uint64_t *values;
    memcpy(&bits, &value, sizeof value);
    uint32_t present = emulator_exchange(name, mask, site, bits, &values);
    bits = present >> source & 1 ? values[source] : ~(uint64_t)0;
    memcpy(&value, &bits, sizeof value);
    return value;
}
inline int emulator_lane() {
    return (int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % WARP_SIZE);
}
template <typename T> T __shfl_sync(uint32_t mask, T value, int source, CALL_SITE) {
    return emulator_shuffle("__shfl_sync", mask, value, source % WARP_SIZE, {file, line});
}
template <typename T> T __shfl_xor_sync(uint32_t mask, T value, int bits, CALL_SITE) {
    int source = (emulator_lane() ^ bits) % WARP_SIZE;
    return emulator_shuffle("__shfl_xor_sync", mask, value, source, {file, line});
}
template <typename T> T __shfl_down_sync(uint32_t mask, T value, int delta, CALL_SITE) {
    int source = emulator_lane() + delta < WARP_SIZE ? emulator_lane() + delta : emulator_lane();
    return emulator_shuffle("__shfl_down_sync", mask, value, source, {file, line});
}
inline uint32_t __ballot_sync(uint32_t mask, int predicate, CALL_SITE) {
    const uint64_t *values;
    Site site = {file, line};
    uint32_t present = emulator_exchange("__ballot_sync", mask, site, predicate != 0, &values);
    uint32_t set = 0;
    for (int i = 0; i < WARP_SIZE; i++) set |= (uint32_t)(present >> i & values[i] & 1) << i;
    return set;
}

// ---- arithmetic and atomics -----------------------------------------------------------------------

template <typename T> T min(T a, T b) { return a < b ? a : b; }
template <typename T> T max(T a, T b) { return a > b ? a : b; }
inline uint32_t __float_as_uint(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
inline float __uint_as_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
inline int __popc(uint32_t x) { return __builtin_popcount(x); }
inline long long __double2ll_rn(double x) { return llrint(x); }

// Fibers change only at barriers and collectives, so a plain read and write is atomic.
inline unsigned long long atomicMax(unsigned long long *p, unsigned long long value) {
    unsigned long long old = *p;
    if (value > old) *p = value;
    return old;
}

// ---- the runtime ----------------------------------------------------------------------------------

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
};
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();

struct cudaUUID_t {
    char bytes[16];
};
struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    int major, minor, multiProcessorCount;
    size_t totalGlobalMem, sharedMemPerBlockOptin;
};
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
enum cudaDeviceAttr { cudaDevAttrClockRate = 13 };
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device);
cudaError_t cudaDriverGetVersion(int *version);

cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMallocHost(void **memory, size_t bytes);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3
};
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t);
cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
cudaError_t emulator_function_attribute(const void *kernel, cudaFuncAttribute attribute, int value);
template <typename F>
cudaError_t cudaFuncSetAttribute(F *kernel, cudaFuncAttribute attribute, int value) {
    return emulator_function_attribute((const void *)kernel, attribute, value);
}

// ---- launches: what kernel<<<grid, block, shared, stream>>>(...) does -----------------------------

bool emulator_launchable(const void *kernel, const Grid &grid);
/* A launch, with EMULATOR_FAULT's fault if this is the one: it hangs, fails or is slow (devices.cpp). */
std::function<bool()> emulator_faulty(std::function<void()> launch);

template <typename... P, typename... A>
void emulator_launch(const char *name, void (*kernel)(P...), dim3 blocks, dim3 threads,
                     size_t shared, cudaStream_t stream, A... args) {
    Grid grid = {{blocks.x, blocks.y, blocks.z}, {threads.x, threads.y, threads.z}, shared};
    if (!emulator_launchable((const void *)kernel, grid)) return; // cudaGetLastError() says why
    emulator_enqueue_polled(stream, emulator_faulty([=] { emulator_run(name, grid, [=] { kernel(args...); }); }));
}

#endif

/* train_gpt2.cu: the CUDA backend: the device, its memory, and copies to and from it. The kernels are in
 * llmc/cuda/, one family a file, each with its launchers; they are included at the end and complete what
 * llmc/ops.h asks for. The program is train_gpt2.c, the same for both backends.
 *
 * Everything is enqueued on one stream; gradients are exchanged on a second one (gradient_reduction.cuh). The host
 * waits only where a value is read. Next: llmc/cuda/cuda.cuh, then llmc/cuda/flash.cuh for the heart. */
#include "llmc/cuda/cuda.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the device ---------------------------------------------------------------------------------

static cudaDeviceProp properties;

static void matmul_open();

/* Ends with one line when there is no GPU that this program can use. */
static int usable_devices() {
    int count = 0, driver = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    cudaDriverGetVersion(&driver);
    if (error == cudaErrorInsufficientDriver && driver == 0)
        fatal(EXIT_RUNTIME,
              "no NVIDIA driver was found; install one, or use the CPU build (make train_gpt2)");
    if (error == cudaErrorInsufficientDriver)
        fatal(EXIT_RUNTIME,
              "the NVIDIA driver serves CUDA %d.%d, older than this program needs; update it",
              driver / 1000, driver % 100 / 10);
    if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0))
        fatal(
            EXIT_RUNTIME,
            "no GPU is visible; look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use the CPU build "
            "(make train_gpt2)");
    cuda_check(error, "looking for GPUs");
    return count;
}

void backend_open(int local_rank, int local_size, int threads) {
    (void)threads;
    // A kernel that is loaded while ranks exchange may wait for a peer that waits for us (NCCL guide).
    if (world_size() > 1) setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    int count = usable_devices();
    if (local_size > count) {
        if (local_rank == 0)
            fatal(EXIT_RUNTIME,
                  "%d ranks were started on a machine with %d GPU%s to be seen; start at most one "
                  "a GPU, and "
                  "let every rank see all of them",
                  local_size, count, count == 1 ? "" : "s");
        world_barrier(); // rank 0 ends us all
    }
    CUDA(cudaSetDevice(local_rank));
    CUDA(cudaGetDeviceProperties(&properties, local_rank));
    if (properties.major < 8)
        fatal(EXIT_RUNTIME, "%s has compute capability %d.%d; this program needs 8.0 or newer",
              properties.name, properties.major, properties.minor);
    device.major = properties.major;
    CUDA(cudaStreamCreateWithFlags(&device.stream, cudaStreamNonBlocking));
    matmul_open();
}

const char *backend_build(void) {
    static char text[64];
#ifdef USE_NCCL
    const char *ranks = "NCCL";
#else
    const char *ranks = "one GPU";
#endif
    snprintf(text, sizeof text, "CUDA %d.%d, %s, %s", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10,
             sizeof(Act) == 2 ? "bf16" : "float32", ranks);
    return text;
}

const char *backend_name(void) {
    static char name[384];
    const char *precision = sizeof(Act) == 2 ? "bf16 with float master weights" : "float32";
    snprintf(name, sizeof name, "%s (sm_%d%d, %.0f GB), %s", properties.name, properties.major,
             properties.minor, (double)properties.totalGlobalMem / 1e9, precision);
    return name;
}

/* Dense bf16 tensor core peaks as the vendor's data sheets state them; the first name that fits counts. */
double backend_peak_flops(void) {
    static const struct {
        const char *name;
        double teraflops;
    } known[] = {{"H200", 989},       {"H100 PCIe", 756},  {"H100", 989},   {"A100", 312},
                 {"NVIDIA A40", 150}, {"NVIDIA A10", 125}, {"L40S", 362},   {"L40", 181},
                 {"NVIDIA L4", 121},  {"RTX 4090", 165},   {"RTX 3090", 71}};
    for (const auto &device_peak : known)
        if (sizeof(Act) == 2 && strstr(properties.name, device_peak.name))
            return device_peak.teraflops * 1e12;
    return 0;
}

// ---- memory -------------------------------------------------------------------------------------

size_t element_size(ElementKind kind) {
    switch (kind) {
    case OF_PARAM:
        return sizeof(Param);
    case OF_ACT:
        return sizeof(Act);
    case OF_ID:
        return sizeof(Id);
    default:
        return sizeof(float);
    }
}

size_t device_memory(void) {
    size_t available = 0, total = 0;
    CUDA(cudaMemGetInfo(&available, &total));
    return available;
}

static void out_of_memory(size_t bytes, const char *what) {
    size_t available = 0, total = 0;
    cudaMemGetInfo(&available, &total);
    fatal(EXIT_RUNTIME,
          "%s: %.2f GB are needed and %.2f of the GPU's %.2f GB are free; use a smaller --batch, "
          "--recompute or a smaller model (plan prints the figures)",
          what, (double)bytes / 1e9, (double)available / 1e9, (double)total / 1e9);
}

void *device_alloc(size_t bytes, const char *what) {
    void *memory = NULL;
    cudaError_t error = cudaMalloc(&memory, bytes ? bytes : 1);
    if (error == cudaErrorMemoryAllocation) out_of_memory(bytes, what);
    cuda_check(error, what);
    CUDA(cudaMemsetAsync(memory, 0, bytes ? bytes : 1, device.stream));
    return memory;
}

void device_free(void *memory, size_t) { CUDA(cudaFree(memory)); }

static void *scratch_take(size_t bytes) {
    if (bytes <= device.scratch_bytes) return device.scratch;
    CUDA(cudaFree(device.scratch)); // waits for its users
    device.scratch = device_alloc(bytes, "scratch memory");
    device.scratch_bytes = bytes;
    return device.scratch;
}

void gradient_zero(Grad *grads, size_t count) {
    CUDA(cudaMemsetAsync(grads, 0, count * sizeof *grads, device.stream));
}

// ---- between host and device --------------------------------------------------------------------

/* Pinned memory through which everything passes. A stage is used again when its copy has been made, so
 * that the host may run ahead of the device by a few writes and does not wait otherwise. */
constexpr int STAGES = 4, STAGE_ELEMENTS = 1 << 20;

typedef struct {
    void *memory;
    size_t bytes;
    cudaEvent_t used;
} Stage;

static Stage *stage_take(size_t bytes) {
    static Stage stages[STAGES];
    static int next = 0;
    Stage *stage = &stages[next++ % STAGES];
    if (!stage->used) CUDA(cudaEventCreateWithFlags(&stage->used, cudaEventDisableTiming));
    CUDA(cudaEventSynchronize(stage->used));
    if (stage->bytes < bytes) {
        CUDA(cudaFreeHost(stage->memory));
        CUDA(cudaMallocHost(&stage->memory, bytes));
        stage->bytes = bytes;
    }
    return stage;
}

static void stage_send(Stage *stage, void *to, size_t bytes) {
    CUDA(cudaMemcpyAsync(to, stage->memory, bytes, cudaMemcpyHostToDevice, device.stream));
    CUDA(cudaEventRecord(stage->used, device.stream));
}

/* Waits for all that was enqueued, and for the copy. */
static const void *stage_receive(const void *from, size_t bytes) {
    Stage *stage = stage_take(bytes);
    CUDA(cudaMemcpyAsync(stage->memory, from, bytes, cudaMemcpyDeviceToHost, device.stream));
    CUDA(cudaStreamSynchronize(device.stream));
    return stage->memory;
}

static bool is_bf16(ElementKind kind) { return element_size(kind) == sizeof(bf16); }

static size_t piece(size_t left) { return left < STAGE_ELEMENTS ? left : STAGE_ELEMENTS; }

void write_floats(void *to, ElementKind kind, const float *host, size_t count) {
    for (size_t done = 0, n; done < count; done += n) {
        n = piece(count - done);
        Stage *stage = stage_take(STAGE_ELEMENTS * sizeof(float));
        if (is_bf16(kind))
            for (size_t i = 0; i < n; i++)
                ((bf16 *)stage->memory)[i] = __float2bfloat16(host[done + i]);
        else
            memcpy(stage->memory, host + done, n * sizeof(float));
        stage_send(stage, device_at(to, kind, done), n * element_size(kind));
    }
}

void read_floats(float *host, const void *from, ElementKind kind, size_t count) {
    for (size_t done = 0, n; done < count; done += n) {
        n = piece(count - done);
        const void *values = stage_receive(device_at(from, kind, done), n * element_size(kind));
        if (is_bf16(kind))
            for (size_t i = 0; i < n; i++)
                host[done + i] = __bfloat162float(((const bf16 *)values)[i]);
        else
            memcpy(host + done, values, n * sizeof(float));
    }
}

void write_ids(Id *to, const int32_t *host, size_t count) {
    Stage *stage = stage_take(count * sizeof *to);
    memcpy(stage->memory, host, count * sizeof *to);
    stage_send(stage, to, count * sizeof *to);
}

void read_stats(double *host, const RowStat *from, size_t count) {
    for (size_t done = 0, n; done < count; done += n) {
        n = piece(count - done);
        const float *values = (const float *)stage_receive(from + done, n * sizeof *from);
        for (size_t i = 0; i < n; i++) host[done + i] = (double)values[i];
    }
}

// ---- the kernels, and the rest of ops.h -----------------------------------------------------------

#include "llmc/cuda/adamw.cuh"
#include "llmc/cuda/attention.cuh"
#include "llmc/cuda/classifier.cuh"
#include "llmc/cuda/embedding.cuh"
#include "llmc/cuda/layernorm.cuh"
#include "llmc/cuda/matmul.cuh"
#include "llmc/cuda/gradient_reduction.cuh"

/* train_gpt2.cu: the CUDA backend: the device, its memory, and copies to and from it. The kernels are in
 * llmc/cuda/, one family a file, each with its launchers; they are included at the end and complete what
 * llmc/ops.h asks for. The program is train_gpt2.c, the same for both backends.
 *
 * Everything is enqueued on one stream; gradients are exchanged on a second one (gradient_reduction.cuh). The host
 * waits only where a value is read. Next: llmc/cuda/cuda.cuh, then llmc/cuda/flash.cuh for the heart. */
#include "llmc/cuda/gpu.cuh"
#include "llmc/cuda/wait.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the device ---------------------------------------------------------------------------------

static void matmul_open();

void backend_open(int local_rank, int local_size, int threads) {
    (void)local_size;
    (void)threads;
    gpu_open(local_rank, false);
    const char *sync = getenv("TRAIN_GPT2_SYNC");
    device.sync = sync && strcmp(sync, "1") == 0;
    CUDA(cudaStreamCreateWithFlags(&device.stream, cudaStreamNonBlocking));
    matmul_open();
}

bool backend_open_to_plan(int local_rank, int local_size, int threads) {
    (void)local_size;
    (void)threads;
    return gpu_open(local_rank, true);
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

void device_free(void *memory, size_t) {
    device_synchronize(); // cudaFree would wait too, but for ever
    CUDA(cudaFree(memory));
}

static void *scratch_take(size_t bytes) {
    if (bytes <= device.scratch_bytes) return device.scratch;
    device_synchronize(); // its users
    CUDA(cudaFree(device.scratch));
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
    device_wait(stage->used, ACTIVITY_DEVICE);
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
    device_synchronize();
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

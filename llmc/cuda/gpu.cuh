/* gpu.cuh: which GPU is this rank's, and what it is. Launchers show a rank all GPUs of its machine, some, or one
 * (CUDA_VISIBLE_DEVICES, srun --gpus-per-task): a rank takes the visible device with the number of its local rank,
 * counted round. All ranks then compare what they have: the same GPU twice is refused. */
#ifndef LLMC_CUDA_GPU_CUH
#define LLMC_CUDA_GPU_CUH

#include "cuda.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static cudaDeviceProp properties;

/* What identifies a rank's GPU. A UUID is one card's, or one MIG slice's, in the whole world. */
typedef struct {
    char uuid[16], bus[24], host[64];
} Gpu;

static char machine_gpus[256]; // bus ids of the ranks here, for the start-up table

/* Ends with one line when there is no GPU that this program can use. to_plan: none at all is 0. */
static int usable_devices(bool to_plan) {
    int count = 0, driver = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    cudaDriverGetVersion(&driver);
    bool none = error == cudaErrorNoDevice || (error == cudaSuccess && count == 0);
    if (to_plan && (none || error == cudaErrorInsufficientDriver)) {
        cudaGetLastError();
        return 0;
    }
    if (error == cudaErrorInsufficientDriver && driver == 0)
        fatal(EXIT_RUNTIME,
              "no NVIDIA driver was found; install one, or use the CPU build (make train_gpt2)");
    if (error == cudaErrorInsufficientDriver)
        fatal(EXIT_RUNTIME,
              "the NVIDIA driver serves CUDA %d.%d, older than this program needs; update it",
              driver / 1000, driver % 100 / 10);
    if (none)
        fatal(
            EXIT_RUNTIME,
            "no GPU is visible; look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use the CPU build "
            "(make train_gpt2)");
    cuda_check(error, "looking for GPUs");
    return count;
}

/* Two ranks that have the same GPU end the run; rank 0 says so. */
static void refuse_twins(const Gpu *gpus, int ranks) {
    for (int a = 0; a < ranks; a++)
        for (int b = a + 1; b < ranks; b++) {
            if (memcmp(gpus[a].uuid, gpus[b].uuid, sizeof gpus[a].uuid) != 0) continue;
            if (world_rank() == 0)
                fatal(EXIT_RUNTIME,
                      "ranks %d and %d on %s have the same GPU, the one at %s; start at most one rank a GPU, and let "
                      "each rank see all GPUs of its machine or one of its own (CUDA_VISIBLE_DEVICES)",
                      a, b, gpus[a].host, gpus[a].bus);
            world_barrier(); // rank 0 ends us all
        }
}

/* Compares the GPUs of all ranks, and notes those of this machine. */
static void compare_gpus(const Gpu *mine) {
    int ranks = world_size();
    Gpu *gpus = (Gpu *)memory_new((size_t)ranks, sizeof *gpus, "the ranks' GPUs");
    gpus[world_rank()] = *mine;
    for (int rank = 0; rank < ranks; rank++) world_broadcast(&gpus[rank], sizeof *gpus, rank);
    refuse_twins(gpus, ranks);
    size_t length = 0;
    for (int rank = 0; rank < ranks && length + 32 < sizeof machine_gpus; rank++)
        if (strcmp(gpus[rank].host, mine->host) == 0)
            length += (size_t)snprintf(machine_gpus + length, sizeof machine_gpus - length, "%s%s",
                                       length ? ", " : "", gpus[rank].bus);
    free(gpus);
}

/* Takes a GPU for this rank. to_plan: alone, and false when there is none. */
static bool gpu_open(int local_rank, bool to_plan) {
    int count = usable_devices(to_plan);
    device.absent = count == 0;
    if (device.absent) return false;
    device.number = local_rank % count;
    device.visible = count;
    CUDA(cudaSetDevice(device.number));
    CUDA(cudaGetDeviceProperties(&properties, device.number));
    if (properties.major < 8)
        fatal(EXIT_RUNTIME, "%s has compute capability %d.%d; this program needs 8.0 or newer",
              properties.name, properties.major, properties.minor);
    CUDA(cudaDeviceGetPCIBusId(device.bus, sizeof device.bus, device.number));
    device.major = properties.major;
    Gpu mine = {};
    memcpy(mine.uuid, &properties.uuid, sizeof mine.uuid);
    memcpy(mine.bus, device.bus, sizeof mine.bus);
    gethostname(mine.host, sizeof mine.host - 1);
    if (!to_plan) compare_gpus(&mine);
    return true;
}

// ---- what it is -----------------------------------------------------------------------------------

/* Dense bf16 FLOPs a clock and multiprocessor, with sums in float. */
static double flops_a_clock() {
    bool consumer = strstr(properties.name, "GeForce") != NULL; // half the rate of the professional cards
    switch (properties.major * 10 + properties.minor) {
    case 80:
        return 2048;
    case 86:
    case 89:
        return consumer ? 512 : 1024;
    case 90:
        return 4096;
    case 100:
        return 8192;
    case 120:
        return consumer ? 512 : 1024;
    }
    return 0;
}

/* Dense bf16 tensor core peaks as the vendor's data sheets state them; the first name that fits counts. A part of a
 * card (MIG) has its multiprocessors' share. Cards that are not listed: multiprocessors x clock. */
double backend_peak_flops(void) {
    static const struct {
        const char *name;
        double teraflops;
        int multiprocessors;
    } known[] = {{"H200", 989, 132},      {"H100 NVL", 835, 132},   {"H100 PCIe", 756, 114},
                 {"H100", 989, 132},      {"A100", 312, 108},       {"NVIDIA A40", 150, 84},
                 {"NVIDIA A10G", 70, 80}, {"NVIDIA A10", 125, 72},  {"L40S", 362, 142},
                 {"L40", 181, 142},       {"NVIDIA L4", 121, 58},   {"RTX 4090", 165, 128},
                 {"RTX 3090", 71, 82}};
    if (sizeof(Act) != 2 || device.absent) return 0;
    for (const auto &card : known)
        if (strstr(properties.name, card.name))
            return card.teraflops * 1e12 *
                   fmin(1, (double)properties.multiProcessorCount / card.multiprocessors);
    int kilohertz = 0;
    CUDA(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, device.number));
    return flops_a_clock() * properties.multiProcessorCount * kilohertz * 1e3;
}

const char *backend_name(void) {
    static char name[768];
    const char *precision = sizeof(Act) == 2 ? "bf16 with float master weights" : "float32";
    char peak[48] = "";
    if (device.absent) {
        snprintf(name, sizeof name, "no GPU on this machine, to plan only; %s", precision);
        return name;
    }
    double flops = backend_peak_flops();
    if (flops > 0) snprintf(peak, sizeof peak, ", peak %.0f TFLOP/s", flops * 1e-12);
    snprintf(name, sizeof name, "%s (sm_%d%d, %.0f GB%s), device %d of %d at %s%s%s, %s", properties.name,
             properties.major, properties.minor, (double)properties.totalGlobalMem / 1e9, peak, device.number,
             device.visible, device.bus, world_size() > 1 ? "; ranks here: " : "",
             world_size() > 1 ? machine_gpus : "", precision);
    return name;
}

/* What the plan does not count: kernels that load when first used, cuBLASLt's own memory, and, with several
 * ranks, NCCL's buffers. An estimate with room: a run that does not fit shall say so before its first step. */
static size_t device_reserve() { return world_size() > 1 ? 1500000000 : 750000000; }

size_t device_memory(void) {
    size_t available = 0, total = 0;
    if (device.absent) return SIZE_MAX;
    CUDA(cudaMemGetInfo(&available, &total));
    return available > device_reserve() ? available - device_reserve() : 0;
}

#endif

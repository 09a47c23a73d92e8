/* device.c: the CPU as a device: its threads and its memory. "Device memory" is host memory here,
 * and the queue is immediate: a call has finished when it returns. */
#include "cpu.h"

#include "../base/memory.h"
#include "../ranks/world.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PARALLEL_WORTH = 1 << 16 }; // numbers from which it pays to wake the other threads

static int sharers = 1; // ranks on this machine
static const char *threads_from = "no OpenMP";

void backend_open(int local_rank, int local_size, int threads) {
    (void)local_rank; // every rank on this machine has the same device
    sharers = local_size;
#ifdef _OPENMP
    omp_set_num_threads(world_threads(threads, &threads_from));
#else
    (void)threads;
#endif
}

bool backend_open_to_plan(int local_rank, int local_size, int threads) {
    backend_open(local_rank, local_size, threads);
    return true;
}

/* The vectors that the kernels of this build use: vec.h chooses by the same macros. The bits of a run are the same for
 * the first three. */
#if defined(__AVX512F__)
static const char vectors[] = "AVX-512";
#elif defined(__AVX2__) && defined(__FMA__)
static const char vectors[] = "AVX2";
#elif defined(__ARM_NEON)
static const char vectors[] = "NEON";
#else
static const char vectors[] = "no fused multiply-add";
#endif

const char *backend_build(void) {
    static char text[64];
#ifdef _OPENMP
    const char *threads = "OpenMP";
#else
    const char *threads = "one thread";
#endif
    snprintf(text, sizeof text, "CPU, %s, float%d, %s", vectors, (int)(8 * sizeof(real)), threads);
    return text;
}

const char *backend_name(void) {
    static char name[208];
    int threads = omp_get_max_threads();
    snprintf(name, sizeof name, "CPU, %d thread%s (%s), float%d, %s", threads, threads == 1 ? "" : "s",
             threads_from, (int)(8 * sizeof(real)), vectors);
    return name;
}

/* Without a peak, the status line shows no MFU. */
double backend_peak_flops(void) { return 0; } // varies with clock and vector unit: not claimed

size_t element_size(ElementKind kind) { return kind == OF_ID ? sizeof(Id) : sizeof(real); }

/* A rank may use its share of the machine. SIZE_MAX where the system does not say how much there is: then no plan is
 * refused for its size. */
size_t device_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (size_t)pages * (size_t)bytes / (size_t)sharers : SIZE_MAX;
}

void *device_alloc(size_t bytes, const char *what) { return memory_map(bytes, what); }

void device_free(void *device, size_t bytes) { memory_unmap(device, bytes); }

/* Conversions run on all threads from some size on: a model of 1.5 billion weights takes seconds on one. */
void write_floats(void *device, ElementKind kind, const float *host, size_t count) {
    (void)kind; // every kind of number is a real here
    real *to = device;
    PARALLEL_SIMD_FOR_IF(count > PARALLEL_WORTH)
    for (size_t i = 0; i < count; i++) to[i] = (real)host[i];
}

void write_ids(Id *device, const int32_t *host, size_t count) {
    memcpy(device, host, count * sizeof *device);
}

void read_floats(float *host, const void *device, ElementKind kind, size_t count) {
    (void)kind;
    const real *from = device;
    PARALLEL_SIMD_FOR_IF(count > PARALLEL_WORTH)
    for (size_t i = 0; i < count; i++) host[i] = (float)from[i];
}

void read_stats(double *host, const RowStat *device, size_t count) {
    for (size_t i = 0; i < count; i++) host[i] = (double)device[i];
}

/* device.c: the CPU as a device. "Device memory" is ordinary memory here, and every call has finished
 * when it returns, so copies are loops and no call needs to wait. The end of this folder; next, what is
 * built from these operations: ../model/block.c. */
#include "plain.h"

#include "../base/memory.h"
#include "../ranks/world.h"

#include <stdio.h>
#include <unistd.h>

static int ranks_here = 1; // ranks on this machine
static const char *threads_from = "no OpenMP";

void backend_open(int local_rank, int local_size, int threads) {
    (void)local_rank, (void)threads; // every rank on this machine has the same device
    ranks_here = local_size;
#ifdef _OPENMP
    omp_set_num_threads(world_threads(threads, &threads_from));
#endif
}

bool backend_open_to_plan(int local_rank, int local_size, int threads) {
    backend_open(local_rank, local_size, threads);
    return true;
}

const char *backend_build(void) { return "CPU in plain loops"; }

const char *backend_name(void) {
    static char name[96];
    int threads = omp_get_max_threads();
    snprintf(name, sizeof name, "CPU in plain loops, %d thread%s (%s), float%d", threads,
             threads == 1 ? "" : "s", threads_from, (int)(8 * sizeof(real)));
    return name;
}

double backend_peak_flops(void) { return 0; } // not known

size_t element_size(ElementKind kind) { return kind == OF_ID ? sizeof(Id) : sizeof(real); }

/* Ranks of a machine share its memory evenly. */
size_t device_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (size_t)pages * (size_t)bytes / (size_t)ranks_here : SIZE_MAX;
}

void *device_alloc(size_t bytes, const char *what) { return memory_map(bytes, what); }

void device_free(void *device, size_t bytes) { memory_unmap(device, bytes); }

void write_floats(void *device, ElementKind kind, const float *host, size_t count) {
    real *to = device; // (count)
    (void)kind;        // every kind of number is a real here
    for (size_t i = 0; i < count; i++) to[i] = (real)host[i];
}

void write_ids(Id *device, const int32_t *host, size_t count) {
    for (size_t i = 0; i < count; i++) device[i] = host[i];
}

void read_floats(float *host, const void *device, ElementKind kind, size_t count) {
    const real *from = device; // (count)
    (void)kind;
    for (size_t i = 0; i < count; i++) host[i] = (float)from[i];
}

void read_stats(double *host, const real *device, size_t count) {
    for (size_t i = 0; i < count; i++) host[i] = (double)device[i];
}

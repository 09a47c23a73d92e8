/* adamw.cuh: the update: squares of the gradient summed per tensor, and AdamW over the whole tensor table
 * in one launch. A block takes one chunk of one tensor; which, it finds in the table. */
#ifndef LLMC_CUDA_ADAMW_CUH
#define LLMC_CUDA_ADAMW_CUH

#include "vector_access.cuh"
#include "warp_reduce.cuh"

#include <string.h>

constexpr int UPDATE_THREADS = 256, UPDATE_CHUNK = 4 * UPDATE_THREADS * PACK;

/* A span as the device sees it: its chunks are first_chunk and the following. */
typedef struct {
    size_t offset, count;
    int first_chunk;
    int decayed;
} DeviceSpan;

/* The last span whose first chunk is not after `chunk`: spans (count), every one with a chunk or more. */
__device__ inline const DeviceSpan *span_of(const DeviceSpan *spans, int count, int chunk) {
    int low = 0, high = count;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (spans[middle].first_chunk <= chunk)
            low = middle;
        else
            high = middle;
    }
    return spans + low;
}

/* partial[chunk] = sum of squares over one chunk, in double. A block a chunk. */
__global__ void square_sums_kernel(double *partial, const Grad *grads, const DeviceSpan *spans,
                                   int count) {
    const DeviceSpan *span = span_of(spans, count, blockIdx.x);
    size_t first = (size_t)(blockIdx.x - span->first_chunk) * UPDATE_CHUNK;
    size_t end = min(span->count, first + UPDATE_CHUNK);
    double sum = 0;
    for (size_t i = first + threadIdx.x * PACK; i < end; i += UPDATE_THREADS * PACK) {
        float g[PACK];
        load(g, grads + span->offset + i, end - i < PACK ? (int)(end - i) : PACK);
#pragma unroll
        for (int k = 0; k < PACK; k++) sum += (double)g[k] * g[k];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/* sums[span] = the sum of its chunks' partial sums, in a fixed order. A block a span. */
__global__ void square_sums_finish_kernel(double *sums, const double *partial,
                                          const DeviceSpan *spans, int count, int chunks) {
    int first = spans[blockIdx.x].first_chunk;
    int end = (int)blockIdx.x + 1 < count ? spans[blockIdx.x + 1].first_chunk : chunks;
    double sum = 0;
    for (int i = first + threadIdx.x; i < end; i += UPDATE_THREADS) sum += partial[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/* The scalars of AdamWScalars as the kernel uses them. */
typedef struct {
    float grad_scale, beta2, rest1, rest2; // rest = 1 - beta
    float step_size;                       // lr / correction1
    float root_correction2, eps;
    float keep; // 1 - lr * lambda, for decayed spans
} KernelScalars;

/* The formula of ops.h. Buffers are packed; master NULL: params are float and their own masters. */
__global__ void __launch_bounds__(UPDATE_THREADS)
    adamw_kernel(Param *params, OptimizerState *master, OptimizerState *m, OptimizerState *v, const Grad *grads,
                 const DeviceSpan *spans, int count, KernelScalars s) {
    const DeviceSpan *span = span_of(spans, count, blockIdx.x);
    size_t first = (size_t)(blockIdx.x - span->first_chunk) * UPDATE_CHUNK;
    size_t end = min(span->count, first + UPDATE_CHUNK);
    for (size_t i = first + threadIdx.x * PACK; i < end; i += UPDATE_THREADS * PACK) {
        size_t at = span->offset + i;
        int valid = end - i < PACK ? (int)(end - i) : PACK;
        float weight[PACK], first_moment[PACK], second_moment[PACK], g[PACK];
        if (master)
            load(weight, master + at, valid);
        else
            load(weight, params + at, valid);
        load(first_moment, m + at, valid);
        load(second_moment, v + at, valid);
        load(g, grads + at, valid);
#pragma unroll
        for (int k = 0; k < PACK; k++) {
            float gradient = s.grad_scale * g[k];
            float decayed = span->decayed ? weight[k] * s.keep : weight[k];
            first_moment[k] += s.rest1 * (gradient - first_moment[k]);
            second_moment[k] = s.beta2 * second_moment[k] + s.rest2 * gradient * gradient;
            float root = sqrtf(second_moment[k]) / s.root_correction2 + s.eps;
            weight[k] = decayed - s.step_size * first_moment[k] / root;
        }
        store(m + at, first_moment, valid);
        store(v + at, second_moment, valid);
        if (master) store(master + at, weight, valid);
        store(params + at, weight, valid); // rounds to nearest
    }
}

// ---- launchers ----------------------------------------------------------------------------------

static struct {
    Span *host; // what was uploaded
    DeviceSpan *spans;
    int count, chunks;
    double *sums, *partial; // (count), (chunks)
} update_table;

static void update_table_free() {
    free(update_table.host);
    CUDA(cudaFree(update_table.spans));
    CUDA(cudaFree(update_table.sums));
    CUDA(cudaFree(update_table.partial));
    memset(&update_table, 0, sizeof update_table);
}

/* Uploads the tensor table, unless it is the one that is already there. */
static void update_table_set(const Span *spans, int count) {
    size_t bytes = (size_t)count * sizeof(Span);
    if (count == update_table.count && memcmp(update_table.host, spans, bytes) == 0) return;
    update_table_free();
    update_table.count = count;
    update_table.host = (Span *)memory_new((size_t)count, sizeof(Span), "the tensor table");
    memcpy(update_table.host, spans, bytes);
    DeviceSpan *table = (DeviceSpan *)memory_new((size_t)count, sizeof *table, "the tensor table");
    int chunks = 0;
    for (int i = 0; i < count; i++) {
        table[i] = {spans[i].offset, spans[i].count, chunks, spans[i].decayed};
        chunks += (int)((spans[i].count + UPDATE_CHUNK - 1) / UPDATE_CHUNK);
    }
    update_table.chunks = chunks;
    CUDA(cudaMalloc((void **)&update_table.spans, (size_t)count * sizeof *table));
    CUDA(cudaMalloc((void **)&update_table.sums, (size_t)count * sizeof(double)));
    CUDA(cudaMalloc((void **)&update_table.partial, (size_t)chunks * sizeof(double)));
    CUDA(cudaMemcpyAsync(update_table.spans, table, (size_t)count * sizeof *table,
                         cudaMemcpyHostToDevice, device.stream));
    device_synchronize();
    free(table);
}

void gradient_square_sums(double *sums, const Grad *grads, const Span *spans, int count) {
    update_table_set(spans, count);
    LAUNCH(square_sums_kernel, update_table.chunks, UPDATE_THREADS, 0, update_table.partial, grads,
           update_table.spans, count);
    LAUNCH(square_sums_finish_kernel, count, UPDATE_THREADS, 0, update_table.sums,
           update_table.partial, update_table.spans, count, update_table.chunks);
    device_synchronize(); // first: a copy to pageable memory waits inside the driver
    CUDA(cudaMemcpyAsync(sums, update_table.sums, (size_t)count * sizeof(double),
                         cudaMemcpyDeviceToHost, device.stream));
    CUDA(cudaStreamSynchronize(device.stream));
}

void adamw_update(Param *params, OptimizerState *master, OptimizerState *m, OptimizerState *v, const Grad *grads,
                  const Span *spans, int count, const AdamWScalars *step) {
    update_table_set(spans, count);
    KernelScalars s = {(float)step->grad_scale,
                       (float)step->beta2,
                       (float)(1 - step->beta1),
                       (float)(1 - step->beta2),
                       (float)(step->learning_rate / step->correction1),
                       (float)sqrt(step->correction2),
                       (float)step->eps,
                       (float)(1 - step->learning_rate * step->weight_decay)};
    LAUNCH(adamw_kernel, update_table.chunks, UPDATE_THREADS, 0, params, master, m, v, grads,
           update_table.spans, count, s);
}

#endif

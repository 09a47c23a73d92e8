/* gradient_reduction.cuh: gradients summed over micro-batches and ranks, bucket by bucket; the rules are those of
 * cpu/reduction.c, and with exact sums the bits are too. NCCL exchanges a bucket on a stream of its own
 * as soon as its last micro-batch is complete, while backward continues. Numbers that are not finite, or beyond
 * the fixed-point range, are found before they are sent: a bucket's largest magnitude is kept with the
 * index of the element that has it, as one integer, whose maximum does not depend on the order of threads. */
#ifndef LLMC_CUDA_REDUCTION_CUH
#define LLMC_CUDA_REDUCTION_CUH

#include "vector_access.cuh"
#include "wait.cuh"
#include "warp_reduce.cuh"

#include <math.h>
#include <string.h>
#ifdef USE_NCCL
#include <nccl.h>
#endif

constexpr int REDUCTION_THREADS = 256, BUCKETS_MAX = 1 << 14; // a bucket a layer
constexpr size_t REDUCTION_CHUNK = REDUCTION_THREADS * PACK;  // elements of a block, PACK a thread

/* A magnitude in the upper half, and below it how far its element is from the bucket's end: the larger
 * of two is the larger magnitude, and of equal ones the first. */
typedef unsigned long long Extreme;

__device__ inline Extreme extreme_of(float magnitude, size_t index, size_t count) {
    return (Extreme)__float_as_uint(magnitude) << 32 | (unsigned)(count - 1 - index);
}
__device__ inline Extreme larger(Extreme a, Extreme b) { return a > b ? a : b; }

/* A sum beyond the range is refused by its bound; until then it may wrap. */
__device__ inline long long wrapping_sum(long long a, long long b) {
    return (long long)((unsigned long long)a + (unsigned long long)b);
}

/* Every thread's `mine` to one: their largest, entered by one atomic operation a block. */
static __device__ inline void enter_largest(Extreme *to, Extreme mine) {
    __shared__ Extreme partial[REDUCTION_THREADS / WARP];
    for (int bits = WARP / 2; bits > 0; bits /= 2)
        mine = larger(mine, __shfl_xor_sync(FULL_WARP, mine, bits));
    if (threadIdx.x % WARP == 0) partial[threadIdx.x / WARP] = mine;
    __syncthreads(); // every warp has its largest
    if (threadIdx.x != 0) return;
    for (int warp = 1; warp < REDUCTION_THREADS / WARP; warp++) mine = larger(mine, partial[warp]);
    atomicMax(to, mine);
}

/* sums[i] = p[i] and back, i < min(PACK, valid): in 16-byte accesses where the address allows. */
struct __align__(16) TwoSums { long long sum[2]; };
__device__ inline bool is_whole_pack(const long long *p, int valid) {
    return valid >= PACK && (uintptr_t)p % 16 == 0;
}
__device__ inline void load_sums(long long sums[PACK], const long long *p, int valid) {
    bool whole = is_whole_pack(p, valid);
#pragma unroll
    for (int i = 0; i < PACK; i += 2) {
        if (whole) {
            TwoSums two = reinterpret_cast<const TwoSums *>(p)[i / 2];
            sums[i] = two.sum[0], sums[i + 1] = two.sum[1];
        } else {
            sums[i] = i < valid ? p[i] : 0;
            sums[i + 1] = i + 1 < valid ? p[i + 1] : 0;
        }
    }
}
__device__ inline void store_sums(long long *p, const long long sums[PACK], int valid) {
    bool whole = is_whole_pack(p, valid);
#pragma unroll
    for (int i = 0; i < PACK; i += 2) {
        if (whole) {
            reinterpret_cast<TwoSums *>(p)[i / 2] = {{sums[i], sums[i + 1]}};
        } else {
            if (i < valid) p[i] = sums[i];
            if (i + 1 < valid) p[i + 1] = sums[i + 1];
        }
    }
}

/* Where this thread's PACK elements of `count` begin, and how many there are: none where it begins at the end. */
__device__ inline size_t my_pack(size_t count, int *valid) {
    size_t at = min(count, ((size_t)blockIdx.x * REDUCTION_THREADS + threadIdx.x) * PACK);
    *valid = (int)min(count - at, (size_t)PACK);
    return at;
}

/* The state of a bucket in this update. */
typedef struct {
    double bound;  // sum over micro-batches of the largest magnitude
    Extreme micro_batch;  // the running micro-batch's largest magnitude
    Extreme worst; // the largest of all micro-batches
} BucketState;

/* One micro-batch's bucket: notes the largest magnitude; `limit` is noted for any magnitude at or above it and for
 * NaN. exact: grads go to fixed point, 48 fractional bits, rounded to nearest even: written or added to sums, or,
 * sums NULL, rounded in place. Elements beyond the limit are left out; the update is refused. */
__global__ void reduction_add_fixed_point_kernel(Grad *grads, long long *sums, size_t count, float limit,
                                      bool exact, bool first_micro_batch, BucketState *state) {
    int valid;
    size_t at = my_pack(count, &valid);
    float g[PACK];
    long long total[PACK] = {0};
    Extreme mine = 0;
    load(g, grads + at, valid);
    if (sums && !first_micro_batch) load_sums(total, sums + at, valid);
#pragma unroll
    for (int i = 0; i < PACK; i++) {
        bool inside = fabsf(g[i]) < limit;
        if (i < valid) mine = larger(mine, extreme_of(inside ? fabsf(g[i]) : limit, at + i, count));
        long long fixed = inside && exact ? __double2ll_rn((double)g[i] * 0x1p48) : 0;
        g[i] = (float)((double)fixed * 0x1p-48);
        total[i] = wrapping_sum(total[i], fixed);
    }
    if (sums)
        store_sums(sums + at, total, valid);
    else if (exact)
        store(grads + at, g, valid);
    enter_largest(&state->micro_batch, mine);
}

/* Enters the micro-batch's largest magnitude into the bucket. One thread. */
__global__ void reduction_record_largest_kernel(BucketState *state, bool first_micro_batch) {
    if (first_micro_batch) state->bound = 0, state->worst = 0;
    state->bound += (double)__uint_as_float((unsigned)(state->micro_batch >> 32));
    state->worst = larger(state->worst, state->micro_batch);
    state->micro_batch = 0;
}

/* grads = sums back from fixed point; rounded once. */
__global__ void reduction_read_kernel(Grad *grads, const long long *sums, size_t count) {
    int valid;
    size_t at = my_pack(count, &valid);
    long long total[PACK];
    float g[PACK];
    load_sums(total, sums + at, valid);
#pragma unroll
    for (int i = 0; i < PACK; i++) g[i] = (float)total[i] * 0x1p-48f;
    store(grads + at, g, valid);
}

// ---- launchers ----------------------------------------------------------------------------------

typedef struct {
    size_t first, count;
} Bucket;

static struct {
    Grad *grads;     // (count)
    long long *sums; // (count) or NULL where rounding in place is enough
    size_t count;
    bool exact;
    float limit;              // magnitudes must be smaller
    BucketState *states;      // (BUCKETS_MAX) on the device
    BucketState *host_states; // the same on the host, for reading
    Bucket buckets[BUCKETS_MAX];
    int bucket_count;
    bool checked; // in this update something was entered into states
#ifdef USE_NCCL
    cudaStream_t stream;
    cudaEvent_t computed, exchanged; // all gradients of this rank, and the sums of all
#endif
} reduction;

#ifdef USE_NCCL
static void nccl_check(ncclResult_t result, const char *what) {
    if (result != ncclSuccess)
        fatal(EXIT_RUNTIME, "%s: NCCL: %s", what, ncclGetErrorString(result));
}
#define NCCL(call) nccl_check(call, #call)

static void exchange_open() {
    ncclUniqueId id;
    memset(&id, 0, sizeof id);
    if (world_rank() == 0) NCCL(ncclGetUniqueId(&id));
    world_broadcast(&id, sizeof id, 0);
    Activity before = activity_begin(ACTIVITY_EXCHANGE);
    NCCL(ncclCommInitRank(&exchange_comm, world_size(), id, world_rank()));
    activity_begin(before);
    CUDA(cudaStreamCreateWithFlags(&reduction.stream, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&reduction.computed, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&reduction.exchanged, cudaEventDisableTiming));
}

static void exchange_close() {
    Activity before = activity_begin(ACTIVITY_EXCHANGE);
    NCCL(ncclCommDestroy(exchange_comm));
    activity_begin(before);
    exchange_comm = NULL;
    CUDA(cudaStreamDestroy(reduction.stream));
    CUDA(cudaEventDestroy(reduction.computed));
    CUDA(cudaEventDestroy(reduction.exchanged));
}

/* Sums a bucket over ranks, after all that is enqueued so far. */
static void exchange_begin(size_t first, size_t count) {
    CUDA(cudaEventRecord(reduction.computed, device.stream));
    CUDA(cudaStreamWaitEvent(reduction.stream, reduction.computed, 0));
    void *data =
        reduction.sums ? (void *)(reduction.sums + first) : (void *)(reduction.grads + first);
    NCCL(ncclAllReduce(data, data, count, reduction.sums ? ncclInt64 : ncclFloat32, ncclSum,
                       exchange_comm, reduction.stream));
}

/* Calls enqueued from now on read the sums. */
static void exchange_end() {
    CUDA(cudaEventRecord(reduction.computed, device.stream));
    CUDA(cudaEventRecord(reduction.exchanged, reduction.stream));
    CUDA(cudaStreamWaitEvent(device.stream, reduction.exchanged, 0));
}

/* Waits first for this rank's own device, then for the others: so a watchdog can tell who is late. */
static void exchange_wait() {
    device_wait(reduction.computed, ACTIVITY_DEVICE);
    device_wait(reduction.exchanged, ACTIVITY_EXCHANGE);
}
#else
static void exchange_open() {
    fatal(EXIT_RUNTIME,
          "this program was built without NCCL and serves one GPU, but there are %d ranks; start "
          "one, "
          "or install NCCL and run make again",
          world_size());
}
static void exchange_close() {}
static void exchange_begin(size_t, size_t) {}
static void exchange_end() {}
static void exchange_wait() {}
#endif

static size_t sums_bytes(size_t count, bool exact, int micro_batches, int ranks) {
    return exact && (micro_batches > 1 || ranks > 1) ? size_mul(count, sizeof(long long), "exact sums") : 0;
}

size_t reduction_bytes(size_t count, bool exact, int micro_batches, int ranks) {
    return sums_bytes(count, exact, micro_batches, ranks) + BUCKETS_MAX * sizeof(BucketState);
}

void reduction_open(Grad *grads, size_t count, bool exact, int micro_batches) {
    memset(&reduction, 0, sizeof reduction);
    reduction.grads = grads;
    reduction.count = count;
    reduction.exact = exact;
    reduction.limit = exact ? 0x1p15f : INFINITY;
    reduction.states =
        (BucketState *)device_alloc(BUCKETS_MAX * sizeof(BucketState), "the gradient's buckets");
    reduction.host_states =
        (BucketState *)memory_new(BUCKETS_MAX, sizeof(BucketState), "the gradient's buckets");
    size_t bytes = sums_bytes(count, exact, micro_batches, world_size());
    if (bytes)
        reduction.sums =
            (long long *)device_alloc(bytes, "exact gradient sums (--no-exact needs none)");
    if (world_size() > 1) exchange_open();
}

void reduction_close(void) {
    if (world_size() > 1) exchange_close();
    size_t bytes = reduction.sums ? reduction.count * sizeof *reduction.sums : 0;
    device_free(reduction.sums, bytes);
    device_free(reduction.states, BUCKETS_MAX * sizeof(BucketState));
    free(reduction.host_states);
}

/* The number of the bucket that starts at `first`. */
static int bucket_at(size_t first, size_t count) {
    int i = 0;
    while (i < reduction.bucket_count && reduction.buckets[i].first != first) i++;
    if (i == BUCKETS_MAX) fatal(EXIT_USAGE, "more than %d layers; use fewer --layers", BUCKETS_MAX);
    reduction.buckets[i] = {first, count};
    if (i == reduction.bucket_count) reduction.bucket_count++;
    return i;
}

/* Notes one micro-batch's bucket, and with --exact adds it up. */
static void add_fixed_point(size_t first, size_t count, bool first_micro_batch) {
    BucketState *state = reduction.states + bucket_at(first, count);
    long long *sums = reduction.sums ? reduction.sums + first : NULL;
    LAUNCH(reduction_add_fixed_point_kernel, (unsigned)((count + REDUCTION_CHUNK - 1) / REDUCTION_CHUNK),
           REDUCTION_THREADS, 0, reduction.grads + first, sums, count, reduction.limit,
           reduction.exact, first_micro_batch, state);
    LAUNCH(reduction_record_largest_kernel, 1, 1, 0, state, first_micro_batch);
    reduction.checked = true;
}

/* A rank without a micro-batch contributes zeros. */
static void contribute_zeros(size_t first, size_t count) {
    BucketState *state = reduction.states + bucket_at(first, count);
    CUDA(cudaMemsetAsync(state, 0, sizeof *state, device.stream));
    if (reduction.sums)
        CUDA(cudaMemsetAsync(reduction.sums + first, 0, count * sizeof *reduction.sums,
                             device.stream));
    else
        gradient_zero(reduction.grads + first, count);
}

void reduction_ready(size_t first, size_t count, bool first_micro_batch, bool last_micro_batch, bool has_micro_batch) {
    bool exchange = last_micro_batch && world_size() > 1;
    if (count == 0) return;
    if (!has_micro_batch)
        contribute_zeros(first, count);
    else if (reduction.exact)
        add_fixed_point(first, count, first_micro_batch);
    else if (exchange)
        add_fixed_point(first, count, true); // only to find what is not finite before it is sent
    device_mark();
    if (exchange) exchange_begin(first, count);
}

/* Reads the buckets' states; then, as in cpu/reduction.c, an element of this rank beyond the limit, or a
 * bucket whose micro-batches together may be: -1 when there is none. */
static int64_t offending_element() {
    int n = reduction.bucket_count;
    int64_t offending = -1;
    double *bounds = (double *)memory_new((size_t)n, sizeof *bounds, "the gradient's bounds");
    device_synchronize(); // first: a copy to pageable memory waits inside the driver
    CUDA(cudaMemcpyAsync(reduction.host_states, reduction.states, (size_t)n * sizeof(BucketState),
                         cudaMemcpyDeviceToHost, device.stream));
    CUDA(cudaStreamSynchronize(device.stream));
    for (int pass = 0; pass < 2; pass++) { // single elements first, then sums
        for (int i = 0; i < n; i++) {
            const BucketState *state = &reduction.host_states[i];
            const Bucket *bucket = &reduction.buckets[i];
            uint32_t bits = (uint32_t)(state->worst >> 32);
            float magnitude;
            memcpy(&magnitude, &bits, sizeof magnitude);
            int64_t where = (int64_t)(bucket->first + bucket->count - 1 - (uint32_t)state->worst);
            bool beyond = pass ? !(bounds[i] < reduction.limit) : !(magnitude < reduction.limit);
            if (beyond && offending < 0) offending = where;
        }
        if (pass || !reduction.exact) break;
        for (int i = 0; i < n; i++) bounds[i] = offending < 0 ? reduction.host_states[i].bound : 0;
        world_all_reduce_doubles(bounds, (size_t)n);
    }
    free(bounds);
    return offending;
}

int64_t reduction_finish(void) {
    if (world_size() > 1) exchange_end();
    bool checked = reduction.checked || reduction.exact; // with --exact every rank must ask
    reduction.checked = false;
    if (reduction.sums)
        LAUNCH(reduction_read_kernel,
               (unsigned)((reduction.count + REDUCTION_CHUNK - 1) / REDUCTION_CHUNK),
               REDUCTION_THREADS, 0, reduction.grads, reduction.sums, reduction.count);
    if (world_size() > 1) exchange_wait();
    return checked ? offending_element() : -1;
}

#endif

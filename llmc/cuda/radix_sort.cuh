/* radix_sort.cuh: the positions of a batch sorted by token id, for the embedding's gradient: a radix sort from the
 * lowest digit of eight bits to the highest that any id has. Every pass is stable, so that equal ids stay in the order
 * of the batch; nothing is atomic, so that the result depends on the ids alone.
 *
 * One block does it, in one launch: for 65536 tokens and two digits about 0.1 ms [estimate], a thousandth of
 * their forward and backward pass, in which a sort by the whole grid would need six launches. */
#ifndef LLMC_CUDA_RADIX_SORT_CUH
#define LLMC_CUDA_RADIX_SORT_CUH

#include "warp_reduce.cuh"

constexpr int SORT_THREADS = 1024, SORT_WARPS = SORT_THREADS / WARP;
constexpr int DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS;

/* The lanes of the warp that have the same digit, this one among them; lanes without an item have digit DIGITS. */
__device__ inline uint32_t lanes_with(int digit) {
    uint32_t lanes = FULL_WARP;
#pragma unroll
    for (int bit = 0; bit <= DIGIT_BITS; bit++) {
        bool set = digit >> bit & 1;
        uint32_t others = __ballot_sync(FULL_WARP, set);
        lanes &= set ? others : ~others;
    }
    return lanes;
}

/* The largest of all ids. ids (N), none negative. Every thread of the block gets it. */
static __device__ inline Id largest_id(const Id *ids, int N) {
    __shared__ Id largest[SORT_WARPS];
    Id mine = 0;
    for (int n = threadIdx.x; n < N; n += SORT_THREADS) mine = max(mine, ids[n]);
    mine = warp_max_int(mine);
    if (threadIdx.x % WARP == 0) largest[threadIdx.x / WARP] = mine;
    __syncthreads(); // every warp has written its largest
    return warp_max_int(largest[threadIdx.x % WARP]);
}

/* places[warp][digit] from counts becomes the place of the warp's first item with that digit: after all smaller digits,
 * and after the same digit's items of the warps before. All threads must call. */
static __device__ inline void places_from_counts(int places[SORT_WARPS][DIGITS]) {
    __shared__ int totals[DIGITS];
    int digit = threadIdx.x, before = 0;
    if (digit < DIGITS) {
        int total = 0;
        for (int warp = 0; warp < SORT_WARPS; warp++) total += places[warp][digit];
        totals[digit] = total;
    }
    __syncthreads(); // all totals are there
    if (digit >= DIGITS) return;
    for (int smaller = 0; smaller < digit; smaller++) before += totals[smaller];
    for (int warp = 0; warp < SORT_WARPS; warp++) {
        int count = places[warp][digit];
        places[warp][digit] = before;
        before += count;
    }
}

/* order (N) becomes the positions 0 .. N-1, sorted by id, equal ids by position; other (N) is scratch. ids (N).
 * Each warp takes a stretch of the last pass's order: it counts its digits, then moves its items, 32 at a time. */
__global__ void __launch_bounds__(SORT_THREADS)
    radix_sort_kernel(int *order, int *other, const Id *ids, int N) {
    __shared__ int places[SORT_WARPS][DIGITS];
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    int stretch = (N + SORT_THREADS - 1) / SORT_THREADS * WARP;
    int first = min(N, warp * stretch), end = min(N, first + stretch);
    Id largest = largest_id(ids, N);
    int passes = 1;
    while (passes * DIGIT_BITS < 31 && largest >> passes * DIGIT_BITS) passes++;
    for (int pass = 0; pass < passes; pass++) {
        const int *from = (passes - pass) % 2 ? other : order; // the last pass writes into order
        int *to = (passes - pass) % 2 ? order : other;
        for (int digit = lane; digit < DIGITS; digit += WARP) places[warp][digit] = 0;
        __syncwarp();
        for (int moving = 0; moving < 2; moving++) { // first all are counted, then they move
            for (int i = first + lane; i - lane < end; i += WARP) {
                int n = i >= end ? -1 : pass == 0 ? i : from[i];
                int digit = n < 0 ? DIGITS : ids[n] >> pass * DIGIT_BITS & (DIGITS - 1);
                uint32_t same = lanes_with(digit), before = same & ((1u << lane) - 1);
                int place = n < 0 ? 0 : places[warp][digit];
                if (moving && n >= 0) to[place + __popc(before)] = n;
                __syncwarp(); // all lanes have read the place
                if (before == 0 && n >= 0) places[warp][digit] = place + __popc(same);
                __syncwarp();
            }
            __syncthreads();
            if (!moving) places_from_counts(places);
            __syncthreads(); // before the places are used, or the next pass reads the order
        }
    }
}

/* order (N) becomes the positions 0 .. N-1, sorted by id, equal ids by position; other (N) is scratch. */
static void sort_positions(int *order, int *other, const Id *ids, int N) {
    LAUNCH(radix_sort_kernel, 1, SORT_THREADS, 0, order, other, ids, N);
}

#endif

/* test_emulator.cpp: the emulator itself: that fragments lie where the PTX ISA says, that rounding is the
 * tensor cores', and that each kind of wrong a GPU would hide is reported, with kernel, block and thread.
 * Independent of the kernels in llmc/cuda/. */
#include "cublasLt.h"
#include "cuda_bf16.h"
#include "cuda_runtime.h"
#include "../llmc/cuda/tensor_core.cuh"
#include "tensor_core.h"
#include "test.h"

static cudaStream_t stream;

static void set_order(const char *order) { setenv("EMULATOR_ORDER", order, 1); }

template <typename... P, typename... A>
static void launch(void (*kernel)(P...), dim3 blocks, dim3 threads, size_t shared, A... args) {
    emulator_launch("kernel", kernel, blocks, threads, shared, stream, args...);
    cudaStreamSynchronize(stream);
}

/* `count` elements that kernels may use: device memory, on a CPU readable by the host too. */
template <typename T> static T *device_array(size_t count) {
    void *memory = NULL;
    cudaMalloc(&memory, count * sizeof(T));
    return (T *)memory;
}

// ---- fragments: the tables of the PTX ISA, written out again ----------------------------------------

/* Row and column of operand A in register r, half h of a lane (9.7.14.5.8). */
static void a_place(int lane, int r, int h, int *row, int *column) {
    static const int row_of[] = {0, 8, 0, 8}, column_of[] = {0, 0, 8, 8};
    *row = lane / 4 + row_of[r];
    *column = 2 * (lane % 4) + h + column_of[r];
}

/* One mma on A[i][k] = bit pattern of one element set, B = identity-like: see the test. */
static void mma_kernel(const float *a, const float *b, float *c) { // (16,16), (16,8), (16,8)
    int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
    uint32_t ra[4], rb[2];
    float rc[4] = {0, 0, 0, 0};
    for (int r = 0; r < 4; r++) {
        int row, low, high;
        a_place(lane, r, 0, &row, &low);
        a_place(lane, r, 1, &row, &high);
        ra[r] = pack_bf16(a[row * 16 + low], a[row * 16 + high]);
    }
    rb[0] = pack_bf16(b[2 * t * 8 + g], b[(2 * t + 1) * 8 + g]);
    rb[1] = pack_bf16(b[(2 * t + 8) * 8 + g], b[(2 * t + 9) * 8 + g]);
    mma(rc, ra, rb);
    c[g * 8 + 2 * t] = rc[0];
    c[g * 8 + 2 * t + 1] = rc[1];
    c[(g + 8) * 8 + 2 * t] = rc[2];
    c[(g + 8) * 8 + 2 * t + 1] = rc[3];
}

TEST(mma_layout, "mma.m16n8k16: registers of A, B and C lie where the PTX ISA's table says") {
    float *a = device_array<float>(256), *b = device_array<float>(128),
          *c = device_array<float>(128);
    for (int i = 0; i < 256; i++) a[i] = (float)(i % 13 - 6);
    for (int i = 0; i < 128; i++) b[i] = (float)(i % 7 - 3);
    for (const char *order : {"forward", "reversed", "random"}) {
        set_order(order);
        launch(mma_kernel, 1, 32, 0, (const float *)a, (const float *)b, c);
        for (int row = 0; row < 16; row++)
            for (int column = 0; column < 8; column++) {
                float want = 0; // small integers: exact in any order
                for (int k = 0; k < 16; k++) want += a[row * 16 + k] * b[k * 8 + column];
                CHECK(c[row * 8 + column] == want, "[%d][%d]: %g, wanted %g", row, column,
                      (double)c[row * 8 + column], (double)want);
            }
    }
}

/* registers (32, 4): what each lane receives from four 8x8 matrices whose element says where it lies. */
static void ldmatrix_kernel(uint32_t *registers, bool transposed) {
    __nv_bfloat16 *tile =
        (__nv_bfloat16 *)emulator_shared(); // (32, 8): matrix i is rows 8i .. 8i+7
    for (int i = (int)threadIdx.x; i < 256; i += 32) tile[i].bits = (uint16_t)i;
    __syncthreads();
    uint32_t r[4];
    if (transposed)
        load_matrix_transposed(r, tile + threadIdx.x * 8);
    else
        load_matrix(r, tile + threadIdx.x * 8);
    for (int i = 0; i < 4; i++) registers[threadIdx.x * 4 + i] = r[i];
}

TEST(ldmatrix_layout,
     "ldmatrix.x4: a lane gets M[g][2t], M[g][2t+1] of each matrix, or with .trans M[2t][g], "
     "M[2t+1][g]") {
    uint32_t *registers = device_array<uint32_t>(128);
    for (int transposed = 0; transposed < 2; transposed++) {
        launch(ldmatrix_kernel, 1, 32, 512, registers, transposed != 0);
        for (int lane = 0; lane < 32; lane++)
            for (int i = 0; i < 4; i++) {
                int g = lane / 4, t = lane % 4;
                unsigned low = transposed ? 2 * t * 8 + g : g * 8 + 2 * t;
                unsigned high = transposed ? (2 * t + 1) * 8 + g : g * 8 + 2 * t + 1;
                CHECK(registers[lane * 4 + i] == ((low + 64 * i) | (high + 64 * i) << 16),
                      "lane %d register %d", lane, i);
            }
    }
}

TEST(pack_order,
     "the first of two packed numbers is in the low half; rounding is to nearest even") {
    CHECK(pack_bf16(1.0f, 2.0f) == 0x40003f80);
    CHECK(pack_bf16(0x1.010002p0f, 0x1.00fffep0f) == 0x3f803f81, "above half a unit, and below");
    CHECK(__float2bfloat16(1.00390625f).bits == 0x3f80 &&
          __float2bfloat16(1.01171875f).bits == 0x3f82);
    CHECK(__float2bfloat16(NAN).bits == 0x7fff && __float2bfloat16(3.4e38f).bits == 0x7f80);
}

TEST(tensor_rounding,
     "tensor cores cut towards zero, where rounding to nearest would go up or stay") {
    float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1}, tiny[8] = {0};
    tiny[0] = 0x1.8p-24f; // three quarters of a unit in the last place of 1
    CHECK(tensor_block(1.0f, tiny, 1, ones, 1) == 1.0f);
    CHECK(tensor_block(-1.0f, tiny, 1, ones, 1) == -0x1.fffffep-1f);
    for (int i = 0; i < 8; i++) tiny[i] = 0x1p-25f; // each below the 24 fraction bits kept: lost
    CHECK(tensor_block(1.0f, tiny, 1, ones, 1) == 1.0f);
    for (int i = 0; i < 8; i++)
        tiny[i] = 0x1p-24f; // each kept: four units in the last place together
    CHECK(tensor_block(1.0f, tiny, 1, ones, 1) == 1.0f + 0x1p-21f);
    tiny[3] = INFINITY;
    CHECK(isinf(tensor_block(1.0f, tiny, 1, ones, 1)));
}

// ---- faults ---------------------------------------------------------------------------------------

/* Expects that launching ends with the emulator's exit code and one line with `text`. */
#define CHECK_FAULT(text, ...) CHECK_FATAL(FAULT_EXIT, text, launch(__VA_ARGS__))

static void half_barrier() {
    if (threadIdx.x < 5) __syncthreads();
    __syncwarp(threadIdx.x < 5 ? 0x1f : 0xffffffe0);
    if (threadIdx.x >= 5) __syncthreads();
}
static void missing_lanes() {
    if (threadIdx.x < 16) __shfl_xor_sync(0xffffffff, 1.0f, 1);
    __syncthreads();
}
static void not_in_mask() { __shfl_xor_sync(0x0000ffff, 1.0f, 1); }
static void exited_lane_mma() {
    float c[4] = {};
    uint32_t a[4] = {}, b[2] = {};
    if (threadIdx.x == 7) return;
    mma(c, a, b);
}
static void two_collectives() {
    if (threadIdx.x % 2)
        __shfl_xor_sync(0xffffffff, 1.0f, 1);
    else
        __shfl_xor_sync(0xffffffff, 1.0f, 2);
}
static void global_ldmatrix(const __nv_bfloat16 *global) {
    uint32_t r[4];
    load_matrix(r, global + threadIdx.x * 8);
}
static void misaligned_copy(const __nv_bfloat16 *global) {
    copy_async((__nv_bfloat16 *)emulator_shared(), global + 1, true);
}
/* Instructions whose text says something else than what the emulator can do. */
static void unknown_rounding() {
    uint32_t pair;
    PTX("cvt.rm.bf16x2.f32 %0, %1, %2;", (PTX_OUT(pair)), (PTX_IN_FLOAT(1.0f), PTX_IN_FLOAT(2.0f)));
}
static void missing_operand() {
    uint32_t pair;
    PTX("cvt.rn.bf16x2.f32 %0, %1, %5;", (PTX_OUT(pair)), (PTX_IN_FLOAT(1.0f), PTX_IN_FLOAT(2.0f)));
}
static void other_shape(const char *file = "here", int line = 1) {
    uint32_t r[4];
    PTX_WARP("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1}, [%2];", (PTX_OUT(r[0]), PTX_OUT(r[1])),
             (PTX_IN_SHARED(emulator_shared())));
}
struct alignas(16) Sixteen {
    float item[4];
};
static void misaligned_vector(float *x) {
    Sixteen *p = reinterpret_cast<Sixteen *>(x + 1 + 4 * threadIdx.x);
    p->item[0] = 1;
}
static void beyond_device(float *x, int n) { x[n + (int)threadIdx.x] = 1; }
static void beyond_shared() { emulator_shared()[1024 + 16 * threadIdx.x] = 1; }
static void beyond_static(float *out, int i) {
    __shared__ float values[8];
    *out = values[i];
}

TEST(faults, "what a GPU would leave undefined ends the program with a line that says where") {
    float *x = device_array<float>(1024);
    __nv_bfloat16 *h = (__nv_bfloat16 *)x;
    CHECK_FAULT("divergent barrier", half_barrier, 1, 32, 0);
    CHECK_FAULT("other lanes of the mask never come", missing_lanes, 1, 32, 0);
    CHECK_FAULT("leaves out the calling lane", not_in_mask, 1, 32, 0);
    CHECK_FAULT("lane 7 of the warp is missing or has exited", exited_lane_mma, 1, 32, 0);
    CHECK_FAULT("is missing or has exited", exited_lane_mma, 1, 24, 0);
    CHECK_FAULT("in one warp", two_collectives, 1, 32, 0);
    CHECK_FAULT("not in shared memory", global_ldmatrix, 1, 32, 0, (const __nv_bfloat16 *)h);
    CHECK_FAULT("does not know this instruction", unknown_rounding, 1, 32, 0);
    CHECK_FAULT("does not know this instruction", missing_operand, 1, 32, 0);
    CHECK_FAULT("does not know this instruction", other_shape, 1, 32, 512, "here", 1);
    CHECK_FAULT("misaligned", misaligned_copy, 1, 32, 64, (const __nv_bfloat16 *)h);
    CHECK_FAULT("misaligned", misaligned_vector, 1, 32, 0, x);
    CHECK_FAULT("bytes into an allocation of 4096", beyond_device, 1, 32, 0, x, 1024);
    CHECK_FAULT("bad address", beyond_shared, 1, 32, 1024);
    CHECK_FAULT("index out of bounds", beyond_static, 1, 32, 0, x, 8);
}

// ---- poison and order -----------------------------------------------------------------------------

static void reads_unwritten(float *out) {
    __shared__ float values[32];
    out[threadIdx.x] = values[threadIdx.x];
}
static void uses_before_wait(float *out, const __nv_bfloat16 *from, bool wait) {
    __nv_bfloat16 *tile = (__nv_bfloat16 *)emulator_shared();
    copy_async(tile + 8 * threadIdx.x, from + 8 * threadIdx.x, threadIdx.x < 31);
    copy_async_commit();
    if (wait) copy_async_wait<0>();
    out[threadIdx.x] = __bfloat162float(tile[8 * threadIdx.x]);
}
/* Two groups of copies, of which all but the newest are waited for. */
static void waits_for_one(float *out, const __nv_bfloat16 *from) {
    __nv_bfloat16 *tile = (__nv_bfloat16 *)emulator_shared();
    copy_async(tile, from, true);
    copy_async_commit();
    copy_async(tile + 8, from, true);
    copy_async_commit();
    copy_async_wait<1>();
    out[0] = __bfloat162float(tile[0]);
    out[1] = __bfloat162float(tile[8]);
}
/* The value of a lane that takes no part in the shuffle. */
static void absent_lane(float *out) {
    if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0x0000ffff, 1.0f, 20);
}
/* The order in which threads run: *count of them did so far. */
static void note_order(int *order, int *count) {
    order[(*count)++] = (int)(blockIdx.x * blockDim.x + threadIdx.x);
}
/* A neighbour's value without the barrier that it needs, or with it. */
static void races(int *out, bool barrier) {
    __shared__ int values[64];
    values[threadIdx.x] = (int)threadIdx.x;
    if (barrier) __syncthreads();
    out[threadIdx.x] = values[(threadIdx.x + 1) % 64];
}

TEST(poison,
     "memory that was never written reads as NaN: device, shared, and copies that were not waited for") {
    float *out = device_array<float>(32), *fresh = device_array<float>(8);
    __nv_bfloat16 *from = device_array<__nv_bfloat16>(256);
    CHECK(isnan(fresh[0]) && isnan(fresh[7]));
    launch(reads_unwritten, 1, 32, 0, out);
    for (int i = 0; i < 32; i++) CHECK(isnan(out[i]));
    for (int i = 0; i < 256; i++) from[i] = __float2bfloat16(3);
    launch(uses_before_wait, 1, 32, 512, out, (const __nv_bfloat16 *)from, false);
    for (int i = 0; i < 32; i++) CHECK(isnan(out[i]));
    launch(uses_before_wait, 1, 32, 512, out, (const __nv_bfloat16 *)from, true);
    for (int i = 0; i < 32; i++) CHECK(out[i] == (i < 31 ? 3 : 0), "zeros where nothing is read");
    launch(waits_for_one, 1, 1, 512, out, (const __nv_bfloat16 *)from);
    CHECK(out[0] == 3 && isnan(out[1]), "a wait for all but one group: %g, %g", out[0], out[1]);
    launch(absent_lane, 1, 32, 0, out);
    for (int i = 0; i < 16; i++) CHECK(isnan(out[i]), "a lane that takes no part has no value");
}

TEST(order_of_threads, "reversed is the reverse of forward, for blocks, warps and lanes; random is neither") {
    enum { COUNT = 3 * 64 };
    int *order = device_array<int>(COUNT), *count = device_array<int>(1), forward = 0, reversed = 0;
    for (const char *name : {"forward", "reversed", "random"}) {
        set_order(name);
        *count = 0;
        launch(note_order, 3, 64, 0, order, count);
        CHECK(*count == COUNT);
        for (int i = 0; i < COUNT; i++) {
            if (strcmp(name, "forward") == 0) CHECK(order[i] == i, "place %d: %d", i, order[i]);
            if (strcmp(name, "reversed") == 0) CHECK(order[i] == COUNT - 1 - i, "place %d: %d", i, order[i]);
            forward += order[i] == i;
            reversed += order[i] == COUNT - 1 - i;
        }
    }
    CHECK(forward < 2 * COUNT && reversed < 2 * COUNT);
    set_order("forward");
}

#ifndef EMULATOR_ASAN // which reports it earlier
/* One byte just behind an allocation is written, then the allocation is freed. */
static void write_behind() {
    unsigned char *p = device_array<unsigned char>(1000);
    p[1000] = 0;
    cudaFree(p);
}
TEST(canary, "a write just behind an allocation is found when it is freed") {
    CHECK_FATAL(FAULT_EXIT, "byte 0 beyond an allocation of 1000 was written", write_behind());
}
#endif

TEST(orders,
     "a missing barrier gives a wrong value in at least one order, a right kernel in none") {
    int *out = device_array<int>(64), wrong[2] = {0, 0};
    for (const char *order : {"forward", "reversed", "random"})
        for (int barrier = 0; barrier < 2; barrier++) {
            set_order(order);
            launch(races, 1, 64, 0, out, barrier != 0);
            for (int i = 0; i < 64; i++) wrong[barrier] += out[i] != (i + 1) % 64;
        }
    CHECK(wrong[0] > 0 && wrong[1] == 0, "%d without, %d with the barrier", wrong[0], wrong[1]);
}

// ---- streams --------------------------------------------------------------------------------------

static void add_one(int *x) { *x += 1; }
static void times_ten(int *x) { *x *= 10; }

/* What comes of 1 + 1 on one stream, times 10 on another, with or without an event between. */
static int two_streams(bool event_between) {
    cudaStream_t other;
    cudaEvent_t event;
    int *x = device_array<int>(1), result;
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    *x = 1;
    emulator_launch("add_one", add_one, 1, 1, 0, stream, x);
    cudaEventRecord(event, stream);
    if (event_between) cudaStreamWaitEvent(other, event, 0);
    emulator_launch("times_ten", times_ten, 1, 1, 0, other, x);
    cudaStreamSynchronize(other);
    cudaStreamSynchronize(stream);
    result = *x;
    cudaStreamDestroy(other);
    cudaEventDestroy(event);
    cudaFree(x);
    return result;
}

TEST(streams, "work on two streams without an event between them goes wrong; with one, never") {
    bool wrong = false;
    for (const char *order : {"forward", "reversed", "random"}) {
        set_order(order);
        wrong = wrong || two_streams(false) != 20;
        CHECK(two_streams(true) == 20, "%s", order);
    }
    CHECK(wrong);
}

TEST(pinned,
     "a copy from pinned memory takes what is there when it runs, not when it was enqueued") {
    set_order("forward");
    void *memory = NULL;
    cudaMallocHost(&memory, sizeof(int));
    int *host = (int *)memory, *x = device_array<int>(1);
    *host = 1;
    cudaMemcpyAsync(x, host, sizeof *x, cudaMemcpyHostToDevice, stream);
    *host = 2;
    cudaStreamSynchronize(stream);
    CHECK(*x == 2);
    cudaFreeHost(memory);
}

TEST(launch_errors,
     "an empty grid, too many threads and too much shared memory are refused as CUDA does") {
    emulator_launch("k", half_barrier, 0, 32, 0, stream);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    emulator_launch("k", half_barrier, 1, 1025, 0, stream);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    emulator_launch("k", half_barrier, 1, 32, 49153, stream);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess);
    emulator_launch("k", half_barrier, dim3(1, 65536), 32, 0, stream);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration, "y and z of a grid end at 65535");
    emulator_launch("k", half_barrier, dim3(1, 1, 65536), 32, 0, stream);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    CHECK(cudaFuncSetAttribute(half_barrier, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               SHARED_BYTES_MAX + 1) != cudaSuccess);
}

// ---- cuBLASLt -------------------------------------------------------------------------------------

/* The heuristic's answer for D (m,n), k in common, with an epilogue and its pointers. */
static int offered(cublasLtEpilogue_t epilogue, cublasOperation_t ta, cublasOperation_t tb,
                   cudaDataType_t input, cudaDataType_t result, int m, void *bias, void *aux,
                   int64_t aux_ld, int64_t ld) {
    int n = 8, k = 8, found = 0;
    uint32_t number = epilogue;
    int32_t a_operation = ta, b_operation = tb;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t best;
    cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &a_operation, 4);
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &b_operation, 4);
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &number, 4);
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, 8);
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, 8);
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &aux_ld, 8);
    cublasLtMatrixLayoutCreate(&a, input, ta ? k : m, ta ? m : k, ta ? k : m);
    cublasLtMatrixLayoutCreate(&b, input, tb ? n : k, tb ? k : n, tb ? n : k);
    cublasLtMatrixLayoutCreate(&d, result, m, n, ld);
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulAlgoGetHeuristic(NULL, desc, a, b, d, d, preference, 1, &best, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    for (cublasLtMatrixLayout_t layout : {a, b, d}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(desc);
    return found;
}

TEST(cublaslt_refusals,
     "what the library does not offer is not offered: types, leading dimensions, epilogues") {
    float v[64];
    const cublasOperation_t N = CUBLAS_OP_N, T = CUBLAS_OP_T;
    const cudaDataType_t H = CUDA_R_16BF, F = CUDA_R_32F;
    CHECK(offered(CUBLASLT_EPILOGUE_DEFAULT, T, N, H, F, 8, NULL, NULL, 0, 8));
    CHECK(!offered(CUBLASLT_EPILOGUE_DEFAULT, T, N, F, H, 8, NULL, NULL, 0, 8));
    CHECK(!offered(CUBLASLT_EPILOGUE_DEFAULT, T, N, H, H, 8, NULL, NULL, 0, 7));
    CHECK(offered(CUBLASLT_EPILOGUE_BIAS, T, N, H, H, 8, v, NULL, 0, 8));
    CHECK(!offered(CUBLASLT_EPILOGUE_BIAS, T, N, H, H, 8, NULL, NULL, 0, 8));
    CHECK(offered(CUBLASLT_EPILOGUE_DGELU, N, N, H, H, 8, NULL, v, 8, 8));
    CHECK(!offered(CUBLASLT_EPILOGUE_DGELU, N, N, H, H, 8, NULL, NULL, 8, 8));
    CHECK(!offered(CUBLASLT_EPILOGUE_DGELU, N, N, H, H, 12, NULL, v, 12, 12));
    CHECK(!offered(CUBLASLT_EPILOGUE_GELU_AUX_BIAS, T, N, H, H, 16, v, v, 8, 16));
    CHECK(offered(CUBLASLT_EPILOGUE_BGRADB, N, T, H, F, 8, v, NULL, 0, 8));
    CHECK(!offered(CUBLASLT_EPILOGUE_BGRADB, N, N, H, F, 8, v, NULL, 0, 8));
}

int main(int argc, char **argv) {
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    return test_main(argc, argv);
}

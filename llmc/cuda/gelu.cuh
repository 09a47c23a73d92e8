/* gelu.cuh: GELU in its tanh form (Hendrycks and Gimpel 2016), and the other operations after a matmul: bias and
 * residual. These kernels are used where cuBLASLt offers no epilogue (matmul.cuh). */
#ifndef LLMC_CUDA_GELU_CUH
#define LLMC_CUDA_GELU_CUH

#include "vector_access.cuh"

#define GELU_SCALE 0.7978845608028654f // sqrt(2/pi)
#define GELU_CUBIC 0.044715f

__device__ inline float gelu(float x) {
    return 0.5f * x * (1.0f + tanhf(GELU_SCALE * (x + GELU_CUBIC * x * x * x)));
}

/* d gelu(x) / dx = (1 + tanh u)/2 + x/2 (1 - tanh^2 u) du/dx */
__device__ inline float gelu_gradient(float x) {
    float t = tanhf(GELU_SCALE * (x + GELU_CUBIC * x * x * x));
    return 0.5f * (1.0f + t) +
           0.5f * x * (1.0f - t * t) * GELU_SCALE * (1.0f + 3.0f * GELU_CUBIC * x * x);
}

/* out = gelu(pre); both (count). A thread takes PACK elements. */
__global__ void gelu_forward_kernel(Act *out, const Act *pre, size_t count) {
    size_t at = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * PACK;
    if (at >= count) return;
    int valid = count - at < PACK ? (int)(count - at) : PACK;
    float x[PACK];
    load(x, pre + at, valid);
#pragma unroll
    for (int i = 0; i < PACK; i++) x[i] = gelu(x[i]);
    store(out + at, x, valid);
}

/* dx *= gelu'(pre); both (count). */
__global__ void gelu_backward_kernel(Act *dx, const Act *pre, size_t count) {
    size_t at = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * PACK;
    if (at >= count) return;
    int valid = count - at < PACK ? (int)(count - at) : PACK;
    float d[PACK], x[PACK];
    load(d, dx + at, valid);
    load(x, pre + at, valid);
#pragma unroll
    for (int i = 0; i < PACK; i++) d[i] *= gelu_gradient(x[i]);
    store(dx + at, d, valid);
}

/* out += bias, row by row. out (N,O); bias (O). A thread takes PACK elements of one row; the grid has one dimension,
 * because no other may be as long as N. */
__global__ void add_bias_kernel(Act *out, const Param *bias, int N, int O) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, packs = (O + PACK - 1) / PACK; // of a row
    size_t row = i / packs;
    int at = (int)(i % packs) * PACK;
    if (row >= (size_t)N) return;
    Act *to = out + row * O + at;
    float x[PACK], b[PACK];
    load(x, to, O - at);
    load(b, bias + at, O - at);
#pragma unroll
    for (int k = 0; k < PACK; k++) x[k] += b[k];
    store(to, x, O - at);
}

// ---- launchers ----------------------------------------------------------------------------------

constexpr int ELEMENTWISE_THREADS = 256;

/* Blocks for `count` elements at PACK a thread. */
static inline unsigned elementwise_blocks(size_t count) {
    size_t per_block = (size_t)ELEMENTWISE_THREADS * PACK;
    return (unsigned)((count + per_block - 1) / per_block);
}

static void gelu_forward(Act *out, const Act *pre, size_t count) {
    LAUNCH(gelu_forward_kernel, elementwise_blocks(count), ELEMENTWISE_THREADS, 0, out, pre, count);
}

static void gelu_backward(Act *dx, const Act *pre, size_t count) {
    LAUNCH(gelu_backward_kernel, elementwise_blocks(count), ELEMENTWISE_THREADS, 0, dx, pre, count);
}

static void add_bias(Act *out, const Param *bias, int N, int O) {
    size_t threads = (size_t)N * divide_up(O, PACK);
    LAUNCH(add_bias_kernel, elementwise_blocks(threads * PACK), ELEMENTWISE_THREADS, 0, out, bias, N, O);
}

#endif

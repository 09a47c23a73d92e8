/* tensor_core.cuh: the PTX that attention and classifier need, each instruction behind a function. sm_80 and later.
 * Fragments, with g = lane / 4 and t = lane % 4 (PTX ISA, mma.m16n8k16 and ldmatrix):
 *   A (16,16), 4 registers: rows g, g+8, g, g+8; columns 2t, 2t+1, the last two registers 8 further on
 *   B (16,8), 2 registers: rows 2t, 2t+1 of column g, the second register 8 rows further on
 *   C (16,8), 4 floats: row g columns 2t, 2t+1; row g+8 columns 2t, 2t+1 */
#ifndef LLMC_CUDA_TENSOR_CORE_CUH
#define LLMC_CUDA_TENSOR_CORE_CUH

#include <cuda_bf16.h>
#include <stdint.h>

typedef __nv_bfloat16 bf16; // as in cuda.cuh

/* PTX(text, outputs, inputs): one instruction, whose text names its operands %0, %1, ... as in `asm`. PTX_MEMORY is for
 * those that touch memory, PTX_WARP for those that all lanes of a warp execute together. nvcc assembles the text; on
 * a CPU, test/emulator/ptx_emulated.h reads the same text and does what it says. */
#ifdef __CUDACC__
#define PTX_LIST(...) __VA_ARGS__
#define PTX_IN_OUT_FLOAT(x) "+f"(x)
#define PTX_OUT_FLOAT(x) "=f"(x)
#define PTX_OUT(x) "=r"(x)
#define PTX_IN(x) "r"(x)
#define PTX_IN_FLOAT(x) "f"(x)
#define PTX_IN_SHARED(p) "r"((uint32_t)__cvta_generic_to_shared(p))
#define PTX_IN_GLOBAL(p) "l"(p)
#define PTX_IN_CONSTANT(n) "n"(n)
#define PTX(text, outputs, inputs) asm(text : PTX_LIST outputs : PTX_LIST inputs)
#define PTX_MEMORY(text, outputs, inputs) asm volatile(text : PTX_LIST outputs : PTX_LIST inputs : "memory")
#define PTX_WARP PTX_MEMORY
#define PTX_CALLER // on a CPU, the line of the call
#else
#include "ptx_emulated.h"
#endif

/* c += a @ b. */
__device__ inline void mma(float c[4], const uint32_t a[4], const uint32_t b[2] PTX_CALLER) {
    PTX_WARP("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
             "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};",
             (PTX_IN_OUT_FLOAT(c[0]), PTX_IN_OUT_FLOAT(c[1]), PTX_IN_OUT_FLOAT(c[2]), PTX_IN_OUT_FLOAT(c[3])),
             (PTX_IN(a[0]), PTX_IN(a[1]), PTX_IN(a[2]), PTX_IN(a[3]), PTX_IN(b[0]), PTX_IN(b[1])));
}

/* Four 8x8 matrices from shared memory; lane 8i + r names row r (16 aligned bytes) of matrix i. */
__device__ inline void load_matrix(uint32_t r[4], const bf16 *row PTX_CALLER) {
    PTX_WARP("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];",
             (PTX_OUT(r[0]), PTX_OUT(r[1]), PTX_OUT(r[2]), PTX_OUT(r[3])), (PTX_IN_SHARED(row)));
}
__device__ inline void load_matrix_transposed(uint32_t r[4], const bf16 *row PTX_CALLER) {
    PTX_WARP("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];",
             (PTX_OUT(r[0]), PTX_OUT(r[1]), PTX_OUT(r[2]), PTX_OUT(r[3])), (PTX_IN_SHARED(row)));
}

#define LOG2_E 1.4426950408889634f // e^x is 2^(x LOG2_E)

/* 2^x by the special function unit, to 2 units in the last place (PTX ISA, ex2.approx); results below
 * the smallest normal number become 0. */
__device__ inline float exp2_approximately(float x) {
    float y;
    PTX("ex2.approx.ftz.f32 %0, %1;", (PTX_OUT_FLOAT(y)), (PTX_IN_FLOAT(x)));
    return y;
}

/* Two floats rounded to bf16 in one register. */
__device__ inline uint32_t pack_bf16(float low, float high) {
    uint32_t pair;
    PTX("cvt.rn.bf16x2.f32 %0, %1, %2;", (PTX_OUT(pair)), (PTX_IN_FLOAT(high), PTX_IN_FLOAT(low)));
    return pair;
}

/* 16 bytes to shared memory, zeros when not valid, in the background. Copies are committed as a group;
 * a thread sees its own after the wait, the others' after a barrier that follows it. */
__device__ inline void copy_async(bf16 *shared, const bf16 *global, bool valid) {
    PTX_MEMORY("cp.async.cg.shared.global [%0], [%1], 16, %2;", (),
               (PTX_IN_SHARED(shared), PTX_IN_GLOBAL(global), PTX_IN(valid ? 16 : 0)));
}
__device__ inline void copy_async_commit() { PTX_MEMORY("cp.async.commit_group;", (), ()); }
template <int NEWEST_LEFT> __device__ inline void copy_async_wait() {
    PTX_MEMORY("cp.async.wait_group %0;", (), (PTX_IN_CONSTANT(NEWEST_LEFT)));
}

#endif

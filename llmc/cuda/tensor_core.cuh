/* tensor_core.cuh: the PTX that attention needs, each instruction behind a function. sm_80 and later.
 * Fragments, with g = lane / 4 and t = lane % 4 (PTX ISA, mma.m16n8k16 and ldmatrix):
 *   A (16,16), 4 registers: rows g, g+8, g, g+8; columns 2t, 2t+1, the last two registers 8 further on
 *   B (16,8), 2 registers: rows 2t, 2t+1 of column g, the second register 8 rows further on
 *   C (16,8), 4 floats: row g columns 2t, 2t+1; row g+8 columns 2t, 2t+1 */
#ifndef LLMC_CUDA_TENSOR_CORE_CUH
#define LLMC_CUDA_TENSOR_CORE_CUH

#include "cuda.cuh"

#ifndef __CUDACC__
#include "tensor_core_emulated.h" // the same functions on a CPU: test/emulator
#else

/* c += a @ b. */
__device__ inline void mma(float c[4], const uint32_t a[4], const uint32_t b[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Four 8x8 matrices from shared memory; lane 8i + r names row r (16 aligned bytes) of matrix i. */
__device__ inline void load_matrix(uint32_t r[4], const bf16 *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(row))
                 : "memory");
}
__device__ inline void load_matrix_transposed(uint32_t r[4], const bf16 *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(row))
                 : "memory");
}

/* 2^x to 2 units in the last place (PTX ISA, ex2.approx); results below the smallest normal number become 0. */
__device__ inline float exp2_approximately(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Two floats rounded to bf16 in one register. */
__device__ inline uint32_t pack_bf16(float low, float high) {
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

/* 16 bytes to shared memory, zeros when not valid, in the background. Copies are committed as a group;
 * a thread sees its own after the wait, the others' after a barrier that follows it. */
__device__ inline void copy_async(bf16 *shared, const bf16 *global, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(shared)),
                 "l"(global), "r"(valid ? 16 : 0)
                 : "memory");
}
__device__ inline void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int NEWEST_LEFT> __device__ inline void copy_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(NEWEST_LEFT) : "memory");
}

#endif
#endif

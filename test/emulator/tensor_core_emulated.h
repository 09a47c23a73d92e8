/* tensor_core_emulated.h: the functions of llmc/cuda/tensor_core.cuh, executed on a CPU. Fragment layouts are
 * those of the PTX ISA, sections 9.7.14.5.8 (mma) and 9.7.14.5.15 (ldmatrix); g = lane / 4 and
 * t = lane % 4; of the two elements in a register the one with the lower index is in the low half. */
#ifndef EMULATOR_TENSOR_CORE_TWIN_H
#define EMULATOR_TENSOR_CORE_TWIN_H

#include "cuda_bf16.h"
#include "cuda_runtime.h"
#include "tensor_core.h"

namespace emulator {

struct MmaLane {
    float *c;
    const uint32_t *a, *b;
};

inline float half_of(uint32_t pair, int high) {
    return __bfloat162float({(uint16_t)(high ? pair >> 16 : pair)});
}

inline void run_mma(void *data[WARP_SIZE]) {
    float a[16][16], b[8][16], c[16][8]; // b by columns: both operands have k contiguous
    for (int lane = 0; lane < WARP_SIZE; lane++) {
        MmaLane *my = (MmaLane *)data[lane];
        int g = lane / 4, t = lane % 4;
        for (int high = 0; high < 2; high++) {
            for (int r = 0; r < 4; r++)
                a[g + r % 2 * 8][2 * t + r / 2 * 8 + high] = half_of(my->a[r], high);
            for (int r = 0; r < 2; r++) b[g][2 * t + r * 8 + high] = half_of(my->b[r], high);
        }
        for (int i = 0; i < 4; i++) c[g + i / 2 * 8][2 * t + i % 2] = my->c[i];
    }
    for (int row = 0; row < 16; row++)
        for (int column = 0; column < 8; column++)
            for (int k = 0; k < 16; k += TENSOR_BLOCK)
                c[row][column] = tensor_block(c[row][column], a[row] + k, 1, b[column] + k, 1);
    for (int lane = 0; lane < WARP_SIZE; lane++)
        for (int i = 0; i < 4; i++)
            ((MmaLane *)data[lane])->c[i] = c[lane / 4 + i / 2 * 8][2 * (lane % 4) + i % 2];
}

struct LdmatrixLane {
    const uint16_t *row;
    uint32_t *registers;
    bool transposed;
};

/* Register i of a lane holds two elements of matrix i, whose row r lies where lane 8i + r points. */
inline void run_ldmatrix(void *data[WARP_SIZE]) {
    for (int lane = 0; lane < WARP_SIZE; lane++) {
        LdmatrixLane *my = (LdmatrixLane *)data[lane];
        int g = lane / 4, t = lane % 4;
        for (int matrix = 0; matrix < 4; matrix++) {
            uint32_t pair[2];
            for (int high = 0; high < 2; high++) {
                int row = my->transposed ? 2 * t + high : g,
                    column = my->transposed ? g : 2 * t + high;
                pair[high] = ((LdmatrixLane *)data[8 * matrix + row])->row[column];
            }
            my->registers[matrix] = pair[0] | pair[1] << 16;
        }
    }
}

inline void ldmatrix(uint32_t registers[4], const __nv_bfloat16 *row, bool transposed, Site site) {
    if ((uintptr_t)row % 16)
        emulator_fault("ldmatrix at %s:%d: misaligned row", site.file, site.line);
    if (!emulator_is_shared(row, 16))
        emulator_fault("ldmatrix at %s:%d: the row is not in shared memory", site.file, site.line);
    LdmatrixLane lane = {(const uint16_t *)row, registers, transposed};
    const char *name = transposed ? "ldmatrix.trans" : "ldmatrix";
    Collective collective = {name, run_ldmatrix, 0xffffffff, true, site, &lane};
    emulator_collective(&collective);
}

} // namespace emulator

inline void mma(float c[4], const uint32_t a[4], const uint32_t b[2], CALL_SITE) {
    emulator::MmaLane lane = {c, a, b};
    Collective collective = {"mma", emulator::run_mma, 0xffffffff, true, {file, line}, &lane};
    emulator_collective(&collective);
}

inline void load_matrix(uint32_t registers[4], const __nv_bfloat16 *row, CALL_SITE) {
    emulator::ldmatrix(registers, row, false, {file, line});
}

inline void load_matrix_transposed(uint32_t registers[4], const __nv_bfloat16 *row, CALL_SITE) {
    emulator::ldmatrix(registers, row, true, {file, line});
}

inline float exp2_approximately(float x) {
    float y = exp2f(x);
    return y < 0x1p-126f ? 0 : y;
}

inline uint32_t pack_bf16(float low, float high) {
    return __float2bfloat16(low).bits | (uint32_t)__float2bfloat16(high).bits << 16;
}

inline void copy_async(__nv_bfloat16 *shared, const __nv_bfloat16 *global, bool valid) {
    emulator_copy_async(shared, global, 16, valid ? 16 : 0);
}
inline void copy_async_commit() { emulator_copy_commit(); }
template <int NEWEST_LEFT> void copy_async_wait() { emulator_copy_wait(NEWEST_LEFT); }

#endif

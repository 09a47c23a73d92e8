/* ptx_emulated.h: the PTX instructions of llmc/cuda/tensor_core.cuh, executed on a CPU. What runs is chosen by the
 * text that nvcc assembles, down to the order of its operands: another text runs as what it says, or is a fault.
 *
 *     PTX("cvt.rn.bf16x2.f32 %0, %1, %2;", (PTX_OUT(pair)), (PTX_IN_FLOAT(high), PTX_IN_FLOAT(low)));
 *
 * Fragment layouts are those of the PTX ISA, sections 9.7.14.5.8 (mma) and 9.7.14.5.15 (ldmatrix); g = lane / 4 and
 * t = lane % 4; of the two elements in a register the one with the lower index is in the low half. */
#ifndef EMULATOR_PTX_EMULATED_H
#define EMULATOR_PTX_EMULATED_H

#include "cuda_bf16.h"
#include "cuda_runtime.h"
#include "tensor_core.h"

#include <initializer_list>
#include <stdio.h>
#include <stdlib.h>

namespace emulator {

// ---- texts ------------------------------------------------------------------------------------------

/* An operand of an instruction: %n stands for the n-th. */
struct Operand {
    char kind;      // f: float, r: 32-bit register, s: address in shared memory, g: elsewhere, n: constant
    void *at;       // of f and r that the instruction writes
    uint64_t value; // of the others
};
inline Operand in_float(float x) {
    Operand operand = {'f', NULL, 0};
    memcpy(&operand.value, &x, sizeof x);
    return operand;
}
inline float float_of(const Operand &operand) {
    float x;
    memcpy(&x, operand.at ? operand.at : &operand.value, sizeof x);
    return x;
}
inline uint32_t register_of(const Operand &operand) {
    return operand.at ? *(uint32_t *)operand.at : (uint32_t)operand.value;
}

enum { MOST_OPERANDS = 16 };

/* A text, read once for each place where it stands. */
struct Instruction {
    const char *text;
    char name[80];              // up to the first blank or the semicolon
    char shape[48];             // "{####},[#],$": # for each %n, $ for each number
    int numbers[MOST_OPERANDS]; // in their order: n of %n, or of a number N -1 - N
    int count;

    explicit Instruction(const char *text_) : text(text_), name(), shape(), numbers(), count(0) {
        size_t length = strcspn(text, " ;"), out = 0;
        snprintf(name, sizeof name, "%.*s", (int)length, text);
        bool braces = false; // within which commas separate registers of one operand
        for (const char *at = text + length; *at && *at != ';' && out + 1 < sizeof shape;) {
            bool operand = *at == '%', literal = *at >= '0' && *at <= '9';
            if (!operand && !literal) {
                if (*at == '{' || *at == '}') braces = *at == '{';
                if (*at != ' ' && !(braces && *at == ',')) shape[out++] = *at;
                at++;
                continue;
            }
            char *end;
            long n = strtol(at + operand, &end, 10);
            if (count == MOST_OPERANDS) fault();
            numbers[count++] = operand ? (int)n : -1 - (int)n;
            shape[out++] = operand ? '#' : '$';
            at = end;
        }
    }
    bool is(const char *wanted, const char *operands) const {
        return strcmp(name, wanted) == 0 && strcmp(shape, operands) == 0;
    }
    [[noreturn]] void fault() const {
        emulator_fault("PTX \"%s\": the emulator does not know this instruction with these operands", text);
        abort();
    }
};

// ---- instructions of a whole warp -----------------------------------------------------------------

/* One lane's part of a collective instruction. */
struct Lane {
    const Instruction *instruction;
    const Operand *operands; // as %n counts them
    const Operand &operand(int n) const { return operands[instruction->numbers[n]]; }
};

inline float half_of(uint32_t pair, int high) {
    return __bfloat162float({(uint16_t)(high ? pair >> 16 : pair)});
}

/* d (16,8) = a (16,16) @ b (16,8) + c: operands d0-d3, a0-a3, b0-b1, c0-c3. */
inline void run_mma(void *data[WARP_SIZE]) {
    float a[16][16], b[8][16], c[16][8]; // b by columns: both operands have k contiguous
    for (int lane = 0; lane < WARP_SIZE; lane++) {
        const Lane *my = (const Lane *)data[lane];
        int g = lane / 4, t = lane % 4;
        for (int high = 0; high < 2; high++) {
            for (int r = 0; r < 4; r++)
                a[g + r % 2 * 8][2 * t + r / 2 * 8 + high] = half_of(register_of(my->operand(4 + r)), high);
            for (int r = 0; r < 2; r++) b[g][2 * t + r * 8 + high] = half_of(register_of(my->operand(8 + r)), high);
        }
        for (int i = 0; i < 4; i++) c[g + i / 2 * 8][2 * t + i % 2] = float_of(my->operand(10 + i));
    }
    for (int row = 0; row < 16; row++)
        for (int column = 0; column < 8; column++)
            for (int k = 0; k < 16; k += TENSOR_BLOCK)
                c[row][column] = tensor_block(c[row][column], a[row] + k, 1, b[column] + k, 1);
    for (int lane = 0; lane < WARP_SIZE; lane++)
        for (int i = 0; i < 4; i++)
            *(float *)((const Lane *)data[lane])->operand(i).at = c[lane / 4 + i / 2 * 8][2 * (lane % 4) + i % 2];
}

/* Register i of a lane holds two elements of matrix i, whose row r lies where lane 8i + r points; with .trans, two
 * elements of a column. Operands r0-r3, address. */
template <bool TRANSPOSED> void run_ldmatrix(void *data[WARP_SIZE]) {
    for (int lane = 0; lane < WARP_SIZE; lane++) {
        const Lane *my = (const Lane *)data[lane];
        int g = lane / 4, t = lane % 4;
        for (int matrix = 0; matrix < 4; matrix++) {
            uint32_t pair[2];
            for (int high = 0; high < 2; high++) {
                int row = TRANSPOSED ? 2 * t + high : g, column = TRANSPOSED ? g : 2 * t + high;
                const Lane *source = (const Lane *)data[8 * matrix + row];
                pair[high] = ((const uint16_t *)source->operand(4).value)[column];
            }
            *(uint32_t *)my->operand(matrix).at = pair[0] | pair[1] << 16;
        }
    }
}

/* Executes an instruction that all lanes of a warp execute together. */
inline void run_warp(const Instruction &i, std::initializer_list<Operand> out, std::initializer_list<Operand> in,
                     Site site) {
    Operand operands[MOST_OPERANDS];
    int count = 0;
    for (const Operand &operand : out) operands[count++] = operand;
    for (const Operand &operand : in) operands[count++] = operand;
    Lane lane = {&i, operands};
    void (*run)(void *[WARP_SIZE]) = NULL;
    if (i.is("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "{####},{####},{##},{####}")) run = run_mma;
    if (i.is("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "{####},[#]")) run = run_ldmatrix<false>;
    if (i.is("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", "{####},[#]")) run = run_ldmatrix<true>;
    if (!run) i.fault();
    for (int n = 0; n < i.count; n++)
        if (i.numbers[n] < 0 || i.numbers[n] >= count) i.fault();
    if (run != run_mma) {
        const Operand &address = lane.operand(4);
        if (address.kind != 's' || !emulator_is_shared((const void *)address.value, 16))
            emulator_fault("ldmatrix at %s:%d: the row is not in shared memory", site.file, site.line);
        if (address.value % 16) emulator_fault("ldmatrix at %s:%d: misaligned row", site.file, site.line);
    }
    Collective collective = {i.name, run, 0xffffffff, true, site, &lane};
    emulator_collective(&collective);
}

// ---- instructions of a thread -------------------------------------------------------------------------

/* A float cut to bf16, towards zero. */
inline uint16_t cut_to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16);
}

inline void run_thread(const Instruction &i, std::initializer_list<Operand> out, std::initializer_list<Operand> in) {
    Operand operands[MOST_OPERANDS];
    int count = 0;
    for (const Operand &operand : out) operands[count++] = operand;
    for (const Operand &operand : in) operands[count++] = operand;
    auto operand = [&](int n) -> const Operand & {
        if (i.numbers[n] < 0 || i.numbers[n] >= count) i.fault();
        return operands[i.numbers[n]];
    };
    bool nearest = i.is("cvt.rn.bf16x2.f32", "#,#,#"), to_zero = i.is("cvt.rz.bf16x2.f32", "#,#,#");
    if (nearest || to_zero) { // the first source becomes the upper half
        float upper = float_of(operand(1)), lower = float_of(operand(2));
        uint32_t high = nearest ? __float2bfloat16(upper).bits : cut_to_bf16(upper);
        uint32_t low = nearest ? __float2bfloat16(lower).bits : cut_to_bf16(lower);
        *(uint32_t *)operand(0).at = high << 16 | low;
    } else if (i.is("ex2.approx.ftz.f32", "#,#")) {
        float y = exp2f(float_of(operand(1)));
        y = y < 0x1p-126f ? 0 : y;
        memcpy(operand(0).at, &y, sizeof y);
    } else if (i.is("cp.async.cg.shared.global", "[#],[#],$,#") || i.is("cp.async.cg.shared.global", "[#],[#],$")) {
        size_t size = (size_t)(-1 - i.numbers[2]), read = i.count == 4 ? register_of(operand(3)) : size;
        if (size != 16 || operand(0).kind != 's' || operand(1).kind != 'g') i.fault();
        emulator_copy_async((void *)operand(0).value, (const void *)operand(1).value, size, read);
    } else if (i.is("cp.async.commit_group", "")) {
        emulator_copy_commit();
    } else if (i.is("cp.async.wait_group", "#")) {
        emulator_copy_wait((int)operand(0).value);
    } else {
        i.fault();
    }
}

} // namespace emulator

// ---- what tensor_core.cuh writes ------------------------------------------------------------------------

#define PTX_LIST(...) __VA_ARGS__
#define PTX_IN_OUT_FLOAT(x) emulator::Operand{'f', &(x), 0}
#define PTX_OUT_FLOAT(x) emulator::Operand{'f', &(x), 0}
#define PTX_OUT(x) emulator::Operand{'r', &(x), 0}
#define PTX_IN(x) emulator::Operand{'r', NULL, (uint64_t)(uint32_t)(x)}
#define PTX_IN_FLOAT(x) emulator::in_float(x)
#define PTX_IN_SHARED(p) emulator::Operand{'s', NULL, (uint64_t)(p)}
#define PTX_IN_GLOBAL(p) emulator::Operand{'g', NULL, (uint64_t)(p)}
#define PTX_IN_CONSTANT(n) emulator::Operand{'n', NULL, (uint64_t)(n)}

#define PTX(text, outputs, inputs)                                                                                     \
    do {                                                                                                               \
        static const emulator::Instruction instruction(text);                                                          \
        emulator::run_thread(instruction, {PTX_LIST outputs}, {PTX_LIST inputs});                                      \
    } while (0)
#define PTX_MEMORY PTX
#define PTX_WARP(text, outputs, inputs)                                                                                \
    do {                                                                                                               \
        static const emulator::Instruction instruction(text);                                                          \
        emulator::run_warp(instruction, {PTX_LIST outputs}, {PTX_LIST inputs}, {file, line});                          \
    } while (0)
#define PTX_CALLER , CALL_SITE // a parameter, so that messages about a warp name the kernel's line

#endif

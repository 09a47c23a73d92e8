/* fiber.cpp: see fiber.h. Hand-written for x86-64 and arm64 (System V calling conventions); elsewhere,
 * or with EMULATOR_UCONTEXT, ucontext does the same, slower. */
#include "fiber.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(EMULATOR_UCONTEXT)

extern "C" void emulator_swap_stacks(void **save, void *load);

#ifdef __x86_64__
// Callee-saved: rbx, rbp, r12 to r15. `ret` continues where the other fiber had called.
asm(R"(
    .text
    .globl emulator_swap_stacks
    .type emulator_swap_stacks, @function
emulator_swap_stacks:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size emulator_swap_stacks, . - emulator_swap_stacks
)");
enum { SAVED_WORDS = 6, RETURN_WORD = 6, FRAME_WORDS = 8 }; // the last word: no caller to return to
#else
// Callee-saved: x19 to x28, frame pointer, link register, d8 to d15. `ret` goes to x30.
asm(R"(
    .text
    .globl emulator_swap_stacks
    .type emulator_swap_stacks, %function
emulator_swap_stacks:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size emulator_swap_stacks, . - emulator_swap_stacks
)");
enum { SAVED_WORDS = 20, RETURN_WORD = 11, FRAME_WORDS = 20 };
#endif

void fiber_prepare(Fiber *fiber, void *low, size_t bytes, void (*entry)()) {
    uintptr_t *top = (uintptr_t *)(((uintptr_t)low + bytes) & ~(uintptr_t)15);
    uintptr_t *frame = top - FRAME_WORDS;
    for (int i = 0; i < FRAME_WORDS; i++) frame[i] = 0;
    frame[RETURN_WORD] = (uintptr_t)entry;
    fiber->stack_pointer = frame;
}

void fiber_switch(Fiber *from, Fiber *to) {
    emulator_swap_stacks(&from->stack_pointer, to->stack_pointer);
}

#else
#include <ucontext.h>

static ucontext_t *context_of(Fiber *fiber) {
    if (!fiber->context) fiber->context = calloc(1, sizeof(ucontext_t));
    return (ucontext_t *)fiber->context;
}

void fiber_prepare(Fiber *fiber, void *low, size_t bytes, void (*entry)()) {
    ucontext_t *context = context_of(fiber);
    getcontext(context);
    context->uc_stack.ss_sp = low;
    context->uc_stack.ss_size = bytes;
    makecontext(context, entry, 0);
}

void fiber_switch(Fiber *from, Fiber *to) { swapcontext(context_of(from), context_of(to)); }
#endif

size_t stack_stride(size_t bytes) { return bytes + (size_t)sysconf(_SC_PAGESIZE); }

char *stacks_new(int count, size_t bytes) {
    size_t stride = stack_stride(bytes), page = stride - bytes;
    char *memory = (char *)mmap(NULL, (size_t)count * stride, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("emulator: no memory for the stacks of a block's threads");
        exit(1);
    }
    for (int i = 0; i < count; i++) mprotect(memory + (size_t)i * stride, page, PROT_NONE);
    return memory + page;
}

/* fiber.h: cooperative threads of the emulator. One fiber runs one CUDA thread; switching costs a few
 * nanoseconds because only the registers that a call preserves are exchanged (ucontext would also ask
 * the kernel for the signal mask). Not here: who runs when (engine.cpp). */
#ifndef EMULATOR_FIBER_H
#define EMULATOR_FIBER_H

#include <stddef.h>

struct Fiber {
    void *stack_pointer; // where the registers of a sleeping fiber lie
    void *context;       // used where there is no hand-written switch
};

/* Makes *fiber start at `entry`, which must never return, on a stack of `bytes` that begins at `low`. */
void fiber_prepare(Fiber *fiber, void *low, size_t bytes, void (*entry)());

/* Sleeps in *from, continues in *to. */
void fiber_switch(Fiber *from, Fiber *to);

/* `count` stacks of `bytes` each, an inaccessible page below every one: an overflow faults at once.
 * Returns the lowest address of stack 0; stack i begins i * stack_stride(bytes) later. */
char *stacks_new(int count, size_t bytes);
size_t stack_stride(size_t bytes);

#endif

/* faults.cpp: how the emulator reports what a GPU would leave undefined: one line, exit code 70. Faults come
 * from the engine, from bad addresses (signals) and from the compiler's checks. See emulator.h. */
#include "emulator.h"

#include "cuda_runtime.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <signal.h>
#include <unistd.h>

#if defined(EMULATOR_ASAN) && !defined(__clang__)
/* AddressSanitizer calls this before every call that does not return, and complains of a fiber's stack,
 * which it does not know. Nothing here continues after such a call, so nothing must be done. */
extern "C" void __asan_handle_no_return() {}
#endif

[[noreturn]] static void say_and_exit(const char *message) {
    char line[1024];
    int n;
    if (emulator_kernel())
        n = snprintf(line, sizeof line, "emulator: %s block (%u,%u,%u) thread (%u,%u,%u): %s\n",
                     emulator_kernel(), blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x,
                     threadIdx.y, threadIdx.z, message);
    else
        n = snprintf(line, sizeof line, "emulator: on the host: %s\n", message);
    if (n >= (int)sizeof line) n = sizeof line - 1;
    fflush(stdout);
    if (write(STDERR_FILENO, line, (size_t)n) < 0) _exit(FAULT_EXIT + 1);
    _exit(FAULT_EXIT);
}

void emulator_fault(const char *format, ...) {
    char message[768];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    say_and_exit(message);
}

static void on_signal(int signal, siginfo_t *info, void *) {
    char where[256], message[512];
    emulator_describe(info->si_addr, where, sizeof where);
    snprintf(message, sizeof message, "%s at %s",
             signal == SIGFPE ? "arithmetic fault" : "bad address", where);
    say_and_exit(message);
}

void emulator_watch_signals() {
    static char stack[1 << 16];
    stack_t alternate = {};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, NULL);
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE}) sigaction(signal, &action, NULL);
}

/* The compiler's own checks (-fsanitize=alignment,bounds) end here: what it hands over begins with
 * the place in the source. */
extern "C" {
struct SourceLocation {
    const char *file;
    uint32_t line, column;
};
// Weak: a build that has all of the compiler's handlers has these too.
#define SANITIZER_HANDLER(name, what)                                                              \
    __attribute__((weak)) void __ubsan_handle_##name(SourceLocation *at, void *value) {            \
        emulator_fault("%s (%p) at %s:%u", what, value, at->file, at->line);                       \
    }
SANITIZER_HANDLER(type_mismatch_v1, "misaligned or null access")
SANITIZER_HANDLER(out_of_bounds, "index out of bounds")
}

/* processor.c: see processor.h. make compiles this file for the oldest processor of its kind. It calls nothing of the
 * project, because the rest may be compiled for a newer one. */
#include "processor.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __x86_64__
enum { HIGHEST = 4, ANY = 5 };

/* Prints a line and ends the program. */
static void refuse(const char *format, const char *what, const char *more) {
    char line[512];
    int length = snprintf(line, sizeof line, format, what, more);
    length = length < (int)sizeof line ? length : (int)sizeof line - 1;
    if (write(STDERR_FILENO, line, (size_t)length) < 0) _exit(1);
    _exit(1); // EXIT_RUNTIME of error.h
}

/* The level that the environment allows. */
static int allowed_level(void) {
    const char *text = getenv("TRAIN_GPT2_ARCH"), *name = "x86-64-v";
    if (!text || !*text) return ANY;
    size_t length = strlen(name);
    int level = strncmp(text, name, length) == 0 && strlen(text) == length + 1 ? text[length] - '0' : 0;
    if (level < 1 || level > HIGHEST)
        refuse("train_gpt2: environment: TRAIN_GPT2_ARCH is \"%.80s\", expected %s1 to 4; unset it\n", text, name);
    return level < HIGHEST ? level : ANY;
}

int processor_level(void) {
    static int known;
    if (known) return known;
    __builtin_cpu_init();
    int level = allowed_level();
    // The level below that of the first feature that is missing.
#define LOWER(of, name, macro)                                                                                         \
    if (of <= level && !__builtin_cpu_supports(name)) level = of - 1;
    PROCESSOR_FEATURES(LOWER)
    return known = level < HIGHEST ? level : HIGHEST;
}

/* Before main: ends the program if it was compiled for a processor that can do more than this one. */
static __attribute__((constructor)) void check_processor(void) {
    const char *missing = NULL;
    const unsigned char *needed = processor_needs;
    int allowed = allowed_level();
    __builtin_cpu_init();
#define MISSING(of, name, macro)                                                                                       \
    if (*needed++ && !missing && (of > allowed || !__builtin_cpu_supports(name))) missing = name;
    PROCESSOR_FEATURES(MISSING)
    if (!missing) return;
    refuse("train_gpt2: this program was built for a processor with %s, which this one does not have%s; build it on "
           "this machine, or for all with make ARCH=portable\n",
           missing, allowed == ANY ? "" : " (so says TRAIN_GPT2_ARCH)");
}
#else
int processor_level(void) { return 0; }
#endif

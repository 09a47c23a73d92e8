/* command_version.c: `train_gpt2 --version`: prints what a bug report should begin with. */
#include "../ops.h"
#include "../ranks/world.h"
#include "commands.h"

#include <stdio.h>

#define VERSION "1.0"

#ifndef COMMIT // make knows it
#define COMMIT "unknown"
#endif

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

int command_version(int argc, char **argv) {
    (void)argc, (void)argv;
    // One fact a line, in columns, so that the output can be pasted into a report as it is.
    printf("train_gpt2 %s\n", VERSION);
    printf("commit     %s\n", COMMIT);
    printf("compiler   %s\n", COMPILER);
    printf("device     %s\n", backend_build());
    printf("MPI        %s\n", world_library());
    return 0;
}

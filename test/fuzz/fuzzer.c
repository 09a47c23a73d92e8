/* fuzzer.c: libFuzzer's entry (https://llvm.org/docs/LibFuzzer.html); the environment's READER says which reader
 * of readers.c gets the bytes. */
#include "readers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const Reader *chosen;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    const char *name = getenv("READER");
    for (int i = 0; i < reader_count; i++)
        if (name && strcmp(name, readers[i].name) == 0) chosen = &readers[i];
    if (chosen) return 0;
    fprintf(stderr, "fuzzer: READER=NAME, of:");
    for (int i = 0; i < reader_count; i++) fprintf(stderr, " %s", readers[i].name);
    fprintf(stderr, "\n");
    exit(2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    reader_run(chosen, data, size);
    return 0;
}

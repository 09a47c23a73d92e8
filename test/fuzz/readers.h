/* readers.h: everything that reads a file which others may have made, as functions of bytes that must survive
 * anything: they return, or end by fatal() with the exit code of a bad file. Used by libFuzzer (`make fuzz`)
 * and by seeds.c (`make test`). */
#ifndef FUZZ_READERS_H
#define FUZZ_READERS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *name;
    void (*read)(const uint8_t *data, size_t size);
} Reader;

extern const Reader readers[];
extern const int reader_count;

/* Runs a reader; aborts when it ends other than it may, or takes more memory than the bytes justify. Returns
 * the exit code: 0, or that of fatal(). */
int reader_run(const Reader *reader, const uint8_t *data, size_t size);

#endif

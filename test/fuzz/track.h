/* track.h: included before every source of a fuzzing build. A reader that ends by fatal() leaves its memory to
 * the system; a million of them must not. So blocks are counted, released after each run, and none may be
 * larger than the run allows. */
#ifndef FUZZ_TRACK_H
#define FUZZ_TRACK_H

#define _GNU_SOURCE // as sources may that come after
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void *track_calloc(size_t count, size_t size);
void *track_realloc(void *block, size_t bytes);
void track_free(void *block);

/* No block may be larger from now on; and releases all that there are. */
void track_limit(size_t bytes);
void track_release(void);

#define malloc(bytes) track_calloc(bytes, 1)
#define calloc track_calloc
#define realloc track_realloc
#define free(block) track_free(block)

#endif

/* track.c: see track.h. A table of addresses with open addressing; one that was freed leaves a mark. */
#include "track.h"

#undef calloc
#undef realloc
#undef free

#include <stdint.h>
#include <stdio.h>

enum { SLOTS = 1 << 20 };

static void *slots[SLOTS];
static int used[SLOTS]; // slots that were ever taken in this run
static int used_count;
static size_t most = SIZE_MAX;
static char gone; // its address marks a slot

static size_t home(const void *block) { return ((uintptr_t)block >> 4) * 2654435761u % SLOTS; }

static void *add(void *block) {
    if (!block) return NULL;
    size_t i = home(block);
    while (slots[i] && slots[i] != &gone) i = (i + 1) % SLOTS;
    if (!slots[i]) used[used_count++] = (int)i;
    if (used_count > SLOTS / 2) fprintf(stderr, "fuzz: more than %d blocks of memory\n", SLOTS / 2), abort();
    slots[i] = block;
    return block;
}

/* Forgets a block; false when it is none of ours (the C library's own). */
static int drop(void *block) {
    for (size_t i = home(block); slots[i]; i = (i + 1) % SLOTS)
        if (slots[i] == block) return slots[i] = &gone, 1;
    return 0;
}

static void check(size_t bytes) {
    if (bytes <= most) return;
    fprintf(stderr, "fuzz: %zu bytes of memory were asked for; the input justifies %zu\n", bytes, most);
    abort();
}

void *track_calloc(size_t count, size_t size) {
    check(count * size);
    return add(calloc(count, size));
}

void *track_realloc(void *block, size_t bytes) {
    check(bytes);
    if (block) drop(block);
    return add(realloc(block, bytes));
}

void track_free(void *block) {
    if (block) drop(block);
    free(block);
}

void track_limit(size_t bytes) { most = bytes; }

void track_release(void) {
    for (int i = 0; i < used_count; i++) {
        if (slots[used[i]] != &gone) free(slots[used[i]]);
        slots[used[i]] = NULL;
    }
    used_count = 0;
    most = SIZE_MAX;
}

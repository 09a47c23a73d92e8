/* shard_writer.c: see shard_writer.h. The tokens of a shard stay in memory until it is full: its header has their
 * number. A full shard is written when the next token comes, so that the last one is never empty. */
#define _GNU_SOURCE // asprintf
#include "shard_writer.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../files/output.h"
#include "shard.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ShardWriter {
    ShardPlan plan;
    ShardCommitted committed;
    void *context;
    int shards;            // that are whole
    uint64_t written;      // tokens in them
    unsigned char *tokens; // of the next one: (capacity) of `width` bytes, count of them there
    size_t width, count, capacity;
};

ShardWriter *shard_writer_new(const ShardPlan *plan, int shards, uint64_t tokens, ShardCommitted committed,
                              void *context) {
    ShardWriter *w = memory_new(1, sizeof *w, "a shard");
    *w = (ShardWriter){
        .plan = *plan, .committed = committed, .context = context, .shards = shards, .written = tokens};
    w->width = plan->vocab > 65536 ? 4 : 2;
    return w;
}

void shard_writer_free(ShardWriter *w) {
    if (!w) return;
    free(w->tokens);
    free(w);
}

/* The number of validation tokens, before the total is known. */
static uint64_t val_tokens(const ShardWriter *w) {
    return w->plan.val_tokens < 0 ? w->plan.shard_tokens : (uint64_t)w->plan.val_tokens;
}

/* How many tokens the next shard takes. */
static size_t shard_room(const ShardWriter *w) {
    // Validation comes first, and no shard holds tokens of both parts. Example: with shard_tokens 100 and val_tokens
    // 150 the shards have 100 and 50 tokens for validation, then 100, 100, ... to train.
    uint64_t val = val_tokens(w), left = val > w->written ? val - w->written : w->plan.shard_tokens;
    return (size_t)(left < w->plan.shard_tokens ? left : w->plan.shard_tokens);
}

/* Writes the tokens from `first` on, `count` of them, as the next shard. */
static void write_shard(ShardWriter *w, const char *part, size_t first, size_t count) {
    char *path;
    if (asprintf(&path, "%s/tokens_%s_%06d.bin", w->plan.directory, part, w->shards) < 0)
        fatal(EXIT_RUNTIME, "%s: no memory for the name of a shard", w->plan.directory);
    unsigned char header[SHARD_HEADER] = {0};
    shard_header(header, w->width == 4 ? TOKEN_U32 : TOKEN_U16, (uint32_t)count);
    // The shard gets its name at the commit, when all of its bytes are on the disk. A run that is killed leaves no
    // part of one.
    Output *output = output_begin(path, OUTPUT_FILE);
    OutputFile *file = output_open(output, NULL);
    output_write(file, header, sizeof header);
    output_write(file, w->tokens + first * w->width, count * w->width);
    output_close(file);
    output_commit(output);
    free(path);
    w->shards++;
    w->written += count;
}

/* Writes the tokens that are held as the next shard, and calls committed. */
static void flush(ShardWriter *w) {
    write_shard(w, w->written < val_tokens(w) ? "val" : "train", 0, w->count);
    w->count = 0;
    w->committed(w->context, w->shards, w->written);
}

/* Grows the buffer, but never beyond a full shard. */
static void make_room(ShardWriter *w, size_t tokens) {
    if (tokens <= w->capacity) return;
    // Growth by a factor of 2 keeps the copies few. More than a full shard is never held.
    w->capacity = 2 * tokens < w->plan.shard_tokens ? 2 * tokens : (size_t)w->plan.shard_tokens;
    if (w->capacity < tokens) w->capacity = tokens;
    w->tokens = memory_grow(w->tokens, w->capacity, w->width, "a shard");
}

/* Appends ids as uint16 or uint32. */
static void store(ShardWriter *w, const int32_t *ids, size_t count) {
    unsigned char *to = w->tokens + w->count * w->width;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < w->width; k++) *to++ = (unsigned char)((uint32_t)ids[i] >> 8 * k);
    w->count += count;
}

void shard_writer_add(ShardWriter *w, const int32_t *ids, size_t count) {
    while (count > 0) {
        if (w->count == shard_room(w)) flush(w);
        size_t left = shard_room(w) - w->count, part = count < left ? count : left;
        make_room(w, w->count + part);
        store(w, ids, part);
        ids += part;
        count -= part;
    }
}

uint64_t shard_writer_finish(ShardWriter *w, int *shards) {
    size_t count = w->count;
    uint64_t val = val_tokens(w), all = w->written + count;
    // All tokens fit the first shard, which would be for validation: nothing would be left to train on. So it is
    // divided.
    if (w->plan.val_tokens < 0 && w->shards == 0) {
        val = count / 10;
        if (val) write_shard(w, "val", 0, (size_t)val);
        if (count) write_shard(w, "train", (size_t)val, count - (size_t)val);
    } else if (count) {
        flush(w);
    }
    *shards = w->shards;
    return val < all ? val : all;
}

// ---------------------------------------------------------------------------------------------
// What is there

int shard_number(const char *path) {
    static const char *const patterns[] = {"tokens_val_%6d.bin%n", "tokens_train_%6d.bin%n"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    // sscanf sets `end` only where the whole pattern has matched; then the name must end there, too.
    for (int i = 0; i < 2; i++) {
        int number, end = 0;
        if (sscanf(name, patterns[i], &number, &end) == 1 && end > 0 && !name[end] && number >= 0) return number;
    }
    return -1;
}

/* Calls work, if there is any, with each shard; returns how many there are. */
static int each_shard(const char *directory, void (*work)(const char *path)) {
    DIR *entries = opendir(directory);
    int count = 0;
    // A directory that is not there yet holds no shards.
    if (!entries && errno != ENOENT)
        fatal(EXIT_RUNTIME, "%s: cannot be read: %s; give a directory that can be written to", directory,
              strerror(errno));
    // readdir returns NULL at the end and after an error; only errno, set to 0 before, tells which.
    for (struct dirent *entry; entries && (errno = 0, entry = readdir(entries));) {
        if (shard_number(entry->d_name) < 0) continue;
        count++;
        char *path;
        if (!work || asprintf(&path, "%s/%s", directory, entry->d_name) < 0) continue;
        work(path);
        free(path);
    }
    if (entries && errno) fatal(EXIT_RUNTIME, "%s: cannot be read to its end: %s", directory, strerror(errno));
    if (entries) closedir(entries);
    return count;
}

/* Removes one file of an earlier run. */
static void remove_shard(const char *path) {
    int failure = output_remove(path);
    if (failure) fatal(EXIT_RUNTIME, "%s: cannot be removed: %s", path, strerror(failure));
}

int shard_writer_finds(const char *directory) { return each_shard(directory, NULL); }

void shard_writer_remove(const char *directory) { each_shard(directory, remove_shard); }

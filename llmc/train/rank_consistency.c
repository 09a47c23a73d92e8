/* rank_consistency.c: before training, each rank compares its settings, data and initial weights with rank 0's. Ranks
 * that differ would wait for each other in different places, or train on mixed batches. The first rank that differs
 * prints the difference; the others wait to be ended. */
#include "rank_consistency.h"

#include "../files/checksum.h"
#include "../base/error.h"
#include "../base/memory.h"
#include "../base/rng.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 66, SHOWN = 64 };

/* Everything that is compared, by name. */
typedef struct {
    int count;
    struct {
        char name[24];
        char value[SHOWN]; // its beginning, for the message
        uint64_t hash;     // of all of it
    } item[MOST];
} Profile;

/* Adds one thing to compare: its beginning as text for the message, and a hash of all of it. */
static void add(Profile *profile, const char *name, const char *value) {
    int i = profile->count++;
    // A value longer than SHOWN is cut for the message only; the hash is of every character.
    snprintf(profile->item[i].name, sizeof profile->item[i].name, "%s", name);
    snprintf(profile->item[i].value, SHOWN, "%s", value);
    profile->item[i].hash = 0;
    for (const char *c = value; *c; c++)
        profile->item[i].hash = hash_add(profile->item[i].hash, (unsigned char)*c);
}

/* Every option but those that may differ between ranks. */
static void add_setting(void *profile, const char *name, const char *value, bool quoted,
                        bool given) {
    // Threads change no result, and --out matters on rank 0 alone.
    (void)quoted, (void)given;
    if (strcmp(name, "threads") == 0 || strcmp(name, "out") == 0) return;
    char option[24];
    snprintf(option, sizeof option, "--%s", name);
    add(profile, option, value ? value : "not set");
}

/* Length and identity of a stream. */
static void add_data(Profile *profile, const char *name, const Stream *stream) {
    char text[SHOWN] = "none";
    if (stream)
        // The identity is a hash of all tokens: two machines may have different files under one name.
        snprintf(text, sizeof text, "%" PRIu64 " tokens, identity %016" PRIx64, stream_length(stream),
                 stream_identity(stream));
    add(profile, name, text);
}

/* Whether this is the first rank that differs: it prints the error, the others wait. False when no rank differs. */
static bool first_to_report(const World *world, bool differs) {
    // The least number of a rank that differs; world->size where none does. All ranks take part, also those without a
    // difference: rank 0 alone cannot know what the others found.
    int64_t first = differs ? world->rank : world->size;
    world_all_reduce_min(&first, 1);
    // The others wait at a barrier that never completes; the error of the reporting rank ends them.
    if (first < world->size && first != world->rank) world_barrier();
    return first == world->rank;
}

void rank_consistency_check(const World *world, const Settings *settings, const Dataset *data) {
    if (world->size == 1) return;
    // static: two profiles of about 6 KB each, of one size on all ranks, so that they can be broadcast as they are.
    static Profile mine, rank0;
    mine.count = 0;
    settings_each(settings, add_setting, &mine);
    add_data(&mine, "training data", data->train);
    add_data(&mine, "validation data", data->val);
    rank0 = mine;
    world_broadcast(&rank0, sizeof rank0, 0);
    int i = 0;
    while (i < mine.count && mine.item[i].hash == rank0.item[i].hash) i++;
    if (first_to_report(world, i < mine.count))
        fatal(EXIT_USAGE,
              "%s differs between ranks: here it is %s, on rank 0 it is %s; start every rank "
              "with the same options and files",
              mine.item[i].name, mine.item[i].value, rank0.item[i].value);
}

void rank_consistency_check_examples(const World *world, const Examples *examples) {
    if (world->size == 1 || !examples) return;
    uint64_t mine = examples_identity(examples), rank0 = mine;
    world_broadcast(&rank0, sizeof rank0, 0);
    if (first_to_report(world, mine != rank0))
        fatal(EXIT_USAGE, "%s: these %zu examples are not those of rank 0; give every machine the same file",
              examples->path, examples->count);
}

// ---------------------------------------------------------------------------------------------
// Weights

enum { PIECE = 1 << 16 };

/* The checksum of a tensor's weights, or with `moments` of its part of that packed buffer. */
static uint64_t tensor_checksum(const GPT2 *model, const Tensor *tensor,
                                const OptimizerState *moments, float *host) {
    Checksum sum;
    checksum_begin(&sum);
    // In pieces of 64 Ki values: one buffer of 256 KiB serves every tensor.
    for (size_t first = 0; first < tensor->count; first += PIECE) {
        size_t n = tensor->count - first < PIECE ? tensor->count - first : PIECE;
        if (moments)
            read_floats(host, device_at(moments, OF_OPTIMIZER_STATE, tensor->offset + first),
                        OF_OPTIMIZER_STATE, n);
        else
            gpt2_read_weights(model, tensor, first, host, n);
        checksum_add(&sum, host, n * sizeof *host);
    }
    return checksum_value(&sum);
}

void rank_consistency_check_weights(const World *world, const GPT2 *model) {
    if (world->size == 1) return;
    // Three checksums for each tensor: of its weights, and of both moments of AdamW. Entry i belongs to tensor i / 3.
    const OptimizerState *const of[] = {NULL, model->m, model->v};
    const size_t count = (size_t)model->table.count * 3;
    float *host = memory_new(PIECE, sizeof *host, "comparing ranks");
    uint64_t *mine = memory_new(count, sizeof *mine, "comparing ranks");
    uint64_t *rank0 = memory_new(count, sizeof *rank0, "comparing ranks");
    for (size_t i = 0; i < count; i++)
        mine[i] = tensor_checksum(model, &model->table.tensors[i / 3], of[i % 3], host);
    memcpy(rank0, mine, count * sizeof *mine);
    world_broadcast(rank0, count * sizeof *rank0, 0);
    size_t i = 0;
    while (i < count && mine[i] == rank0[i]) i++;
    if (first_to_report(world, i < count))
        fatal(EXIT_INPUT,
              "the %s of %s differ from rank 0's at the start; give every machine the same files "
              "and build",
              i % 3 == 0 ? "weights" : "moments", model->table.tensors[i / 3].name);
    free(host);
    free(mine);
    free(rank0);
}

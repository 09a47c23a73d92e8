/* agreement.c: see agreement.h. */
#include "agreement.h"

#include "error.h"
#include "rng.h"

#include <inttypes.h>
#include <stdio.h>
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

static void add(Profile *profile, const char *name, const char *value) {
    int i = profile->count++;
    snprintf(profile->item[i].name, sizeof profile->item[i].name, "%s", name);
    snprintf(profile->item[i].value, SHOWN, "%s", value);
    for (const char *c = value; *c; c++)
        profile->item[i].hash = hash_add(profile->item[i].hash, (unsigned char)*c);
}

static void add_setting(void *profile, const char *name, const char *value, bool quoted,
                        bool given) {
    (void)quoted, (void)given;
    if (strcmp(name, "threads") == 0 || strcmp(name, "out") == 0) return;
    char option[24];
    snprintf(option, sizeof option, "--%s", name);
    add(profile, option, value ? value : "not set");
}

static void add_data(Profile *profile, const char *name, const Stream *stream) {
    char text[SHOWN];
    snprintf(text, sizeof text, "%" PRIu64 " tokens, identity %016" PRIx64, stream_length(stream),
             stream_identity(stream));
    add(profile, name, text);
}

void ranks_agree(const World *world, const Settings *settings, const Dataset *data) {
    if (world->size == 1) return;
    static Profile mine, rank0;
    mine.count = 0;
    options_each(settings, add_setting, &mine);
    add_data(&mine, "training data", data->train);
    if (data->val) add_data(&mine, "validation data", data->val);
    rank0 = mine;
    world_broadcast(&rank0, sizeof rank0, 0);
    int i = 0;
    while (i < mine.count && mine.item[i].hash == rank0.item[i].hash) i++;
    int64_t first = i < mine.count ? world->rank : world->size;
    world_min_i64(&first, 1);
    if (first == world->size) return;
    if (first == world->rank)
        fatal(EXIT_USAGE,
              "%s differs between ranks: here it is %s, on rank 0 it is %s; start every rank "
              "with the same options and files",
              mine.item[i].name, mine.item[i].value, rank0.item[i].value);
    world_barrier(); // until that rank has spoken
}

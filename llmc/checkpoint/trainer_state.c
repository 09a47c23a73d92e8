/* trainer_state.c: trainer_state.json, written and read. Its last member is a checksum of all bytes before it, so
 * that the file that guards the others is guarded too. Reading checks kinds and ranges of all members: the file may
 * come from anywhere. */
#include "trainer_state.h"

#include "../files/checksum.h"
#include "../base/memory.h"
#include "../files/json_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char format[] = "train_gpt2 checkpoint";
enum { VERSION = 2, HEX_CHARS = 17 };

/* The text around the last member; between its two parts are 16 digits. */
static const char sum_begin[] = ",\n  \"xxh64\":\"", sum_end[] = "\"\n}\n";

/* 16 hexadecimal digits: a JSON number could not hold 64 bits exactly. */
static const char *hex(char text[HEX_CHARS], uint64_t value) {
    snprintf(text, HEX_CHARS, "%016" PRIx64, value);
    return text;
}

// ---------------------------------------------------------------------------------------------
// Writing

/* A list option as an array. */
static void put_list(JsonWriter *json, const char *name, const StringList *list) {
    json_open(json, name, '[');
    for (int i = 0; i < list->count; i++) json_put_string(json, NULL, list->items[i]);
    json_close(json, ']');
}

/* Where put_setting writes, and the settings for values that are not one text. */
typedef struct {
    JsonWriter *json;
    const Settings *settings;
} SettingsWriter;

/* One option with its value, as settings_each gives it. */
static void put_setting(void *context, const char *name, const char *value, bool quoted,
                        bool given) {
    (void)given;
    SettingsWriter *w = context;
    // Lists are arrays here, because a path may contain any character that could separate them.
    if (strcmp(name, "data") == 0)
        put_list(w->json, name, &w->settings->data);
    else if (strcmp(name, "val") == 0)
        put_list(w->json, name, &w->settings->val);
    else if (quoted || !value)
        json_put_string(w->json, name, value);
    else
        json_put_json(w->json, name, value);
}

/* The run's counters, and how long the logs were. */
static void put_counters(JsonWriter *json, const TrainerState *s) {
    char text[HEX_CHARS];
    json_put_integer(json, "step", s->step);
    json_put_integer(json, "updates", s->updates);
    json_put_integer(json, "skipped", s->skipped);
    json_put_unsigned(json, "position", s->sequences_served);
    json_put_unsigned(json, "tokens", s->tokens);
    json_put_real(json, "seconds", s->seconds);
    // 0: no validation has been the best yet, or --keep-best is off.
    if (s->best_step > 0) {
        json_open(json, "best", '{');
        json_put_integer(json, "step", s->best_step);
        json_put_real(json, "loss", s->best_loss);
        json_close(json, '}');
    }
    json_put_integer(json, "schedule_end", s->schedule_end);
    json_open(json, "log", '{');
    json_put_integer(json, "log.txt", s->log.text);
    json_put_integer(json, "metrics.jsonl", s->log.metrics);
    json_close(json, '}');
    json_put_string(json, "data", hex(text, s->data));
}

/* Size and checksum of each file beside this one. */
static void put_files(JsonWriter *json, const NamedChecksum *files, int count) {
    char text[HEX_CHARS];
    json_open(json, "files", '{');
    for (int i = 0; i < count; i++) {
        json_open(json, files[i].name, '{');
        json_put_unsigned(json, "bytes", files[i].sum.bytes);
        json_put_string(json, "sum", hex(text, files[i].sum.sum));
        json_close(json, '}');
    }
    json_close(json, '}');
}

void trainer_state_write(OutputFile *file, const TrainerState *state, const Settings *settings,
                         const NamedChecksum *files, int count) {
    JsonWriter json = {.lines = true};
    json_open(&json, NULL, '{');
    json_put_string(&json, "format", format);
    json_put_integer(&json, "version", VERSION);
    put_counters(&json, state);
    json_open(&json, "settings", '{');
    settings_each(settings, put_setting, &(SettingsWriter){&json, settings});
    json_close(&json, '}');
    put_files(&json, files, count);

    char text[HEX_CHARS];
    // The file ends in its own checksum, so the text is made whole in memory before it is written.
    uint64_t sum = checksum_of(json.text, json.length);
    output_print(file, "%s%s%s%s", json.text, sum_begin, hex(text, sum), sum_end);
    free(json.text);
}

// ---------------------------------------------------------------------------------------------
// Reading

/* Whether the text ends with the right checksum of the bytes before it. */
static bool sum_is_right(const char *text, size_t bytes) {
    size_t begin = sizeof sum_begin - 1, end = sizeof sum_end - 1, tail = begin + 16 + end;
    // The last bytes of the file:  ,\n  "xxh64":"  16 digits  "\n}\n
    if (bytes < tail) return false;
    char want[64], digits[HEX_CHARS];
    snprintf(want, sizeof want, "%s%s%s", sum_begin, hex(digits, checksum_of(text, bytes - tail)),
             sum_end);
    return memcmp(want, text + bytes - tail, tail) == 0;
}

const Json *trainer_state_read(const char *text, size_t bytes, char *problem) {
    if (!sum_is_right(text, bytes)) {
        snprintf(problem, STATE_PROBLEM, "its own checksum is wrong");
        return NULL;
    }
    // A right checksum proves that the file is whole, not that it is of this format: it may be of another version.
    const Json *root = json_read(text, bytes, problem);
    int64_t version;
    if (!root) return NULL;
    if (json_is(json_member(root, "format"), format) &&
        json_integer(json_member(root, "version"), VERSION, VERSION, &version))
        return root;
    snprintf(problem, STATE_PROBLEM, "not a \"%s\" of version %d", format, VERSION);
    json_free(root);
    return NULL;
}

/* A member that is a whole number from 0. */
static bool count_of(const Json *root, const char *name, int64_t *out, char *problem) {
    if (json_integer(json_member(root, name), 0, INT64_MAX, out)) return true;
    snprintf(problem, STATE_PROBLEM, "\"%s\" is %s, expected a whole number from 0", name,
             json_kind(json_member(root, name)));
    return false;
}

/* A member that is 16 hexadecimal digits. */
static bool hex_of(const Json *root, const char *name, uint64_t *out) {
    const Json *value = json_member(root, name);
    if (!value || value->kind != JSON_STRING || strlen(value->text) != 16) return false;
    char *end;
    *out = strtoull(value->text, &end, 16);
    return *end == '\0';
}

bool trainer_state_counters(const Json *root, TrainerState *state, char *problem) {
    const Json *log = json_member(root, "log"), *seconds = json_member(root, "seconds");
    int64_t position, tokens;
    if (!count_of(root, "step", &state->step, problem) ||
        !count_of(root, "updates", &state->updates, problem) ||
        !count_of(root, "skipped", &state->skipped, problem) ||
        !count_of(root, "position", &position, problem) ||
        !count_of(root, "tokens", &tokens, problem) ||
        !count_of(root, "schedule_end", &state->schedule_end, problem) ||
        !count_of(log, "log.txt", &state->log.text, problem) ||
        !count_of(log, "metrics.jsonl", &state->log.metrics, problem))
        return false;
    state->sequences_served = (uint64_t)position;
    state->tokens = (uint64_t)tokens;
    if (!seconds || seconds->kind != JSON_NUMBER || !hex_of(root, "data", &state->data)) {
        snprintf(problem, STATE_PROBLEM, "\"seconds\" or \"data\" is missing");
        return false;
    }
    state->seconds = seconds->number;
    // "best" is there only after a validation with --keep-best
    const Json *best = json_member(root, "best"), *loss = json_member(best, "loss");
    state->best_step = 0;
    if (!best) return true;
    if (!loss || loss->kind != JSON_NUMBER) {
        snprintf(problem, STATE_PROBLEM, "\"best\" has no loss");
        return false;
    }
    state->best_loss = loss->number;
    return count_of(best, "step", &state->best_step, problem);
}

bool trainer_state_sum(const Json *root, const char *name, FileChecksum *sum) {
    const Json *entry = json_member(json_member(root, "files"), name);
    int64_t bytes;
    if (!json_integer(json_member(entry, "bytes"), 0, INT64_MAX, &bytes)) return false;
    sum->bytes = (uint64_t)bytes;
    return hex_of(entry, "sum", &sum->sum);
}

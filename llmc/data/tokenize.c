/* tokenize.c: `tokenize`: documents are encoded by all threads and written as shards. After each shard the state
 * file records in which input, and where, it ended. A run that was killed starts again from that place, and writes
 * the same bytes as an undisturbed one; its settings and inputs must be the same, or it is refused. */
#include "tokenize.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../files/byte_stream.h"
#include "../files/input.h"
#include "../files/json_read.h"
#include "../files/json_write.h"
#include "../files/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char state_file[] = "tokenize.json";

// ---------------------------------------------------------------------------------------------
// tokenize.json

/* The settings that make the shards what they are, as text. NULL: none. */
enum { SETTINGS = 7, SETTING_BYTES = 32 };
typedef struct {
    const char *name, *value;
    char text[SETTING_BYTES];
} Setting;

/* All settings that decide the bytes of the shards, as texts. */
static void describe(const TokenizeJob *job, Setting settings[SETTINGS]) {
    // Not among them: the number of threads. It changes no byte of the shards.
    const char *names[SETTINGS] = {"tokenizer_identity", "vocab",   "end_of_text", "shard_tokens",
                                   "val_tokens",         "special", "field"};
    for (int i = 0; i < SETTINGS; i++) settings[i] = (Setting){.name = names[i]};
    snprintf(settings[0].text, SETTING_BYTES, "%016" PRIx64, tokenizer_identity(job->tokenizer));
    snprintf(settings[1].text, SETTING_BYTES, "%d", tokenizer_vocab(job->tokenizer));
    snprintf(settings[2].text, SETTING_BYTES, "%" PRId32, tokenizer_end_of_text(job->tokenizer));
    snprintf(settings[3].text, SETTING_BYTES, "%" PRIu64, job->plan.shard_tokens);
    snprintf(settings[4].text, SETTING_BYTES, job->plan.val_tokens < 0 ? "first shard" : "%" PRId64,
             job->plan.val_tokens);
    snprintf(settings[5].text, SETTING_BYTES, "%s", job->special ? "yes" : "no");
    for (int i = 0; i < SETTINGS - 1; i++) settings[i].value = settings[i].text;
    // The field is the user's own text, and may be longer than the room in a Setting.
    settings[SETTINGS - 1].value = job->field;
}

/* Path, size and time of each input, to notice an input that has changed. */
static void put_inputs(JsonWriter *json, const TokenizeJob *job) {
    // Sizes and times, not checksums: a start must not read all inputs before it continues.
    json_open(json, "inputs", '[');
    for (int i = 0; i < job->count; i++) {
        uint64_t bytes;
        int64_t modified;
        byte_stream_status(job->paths[i], &bytes, &modified);
        json_open(json, NULL, '{');
        json_put_string(json, "path", job->paths[i]);
        json_put_unsigned(json, "bytes", bytes);
        json_put_integer(json, "modified", modified);
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* Writes the state file, complete or not at all. */
static void save_state(const TokenizeJob *job, const TokenizeState *state) {
    char checksum[17];
    JsonWriter json = {.lines = true};
    Setting settings[SETTINGS];
    describe(job, settings);
    // As text: many readers of JSON hold numbers as doubles, exact only up to 2^53 (RFC 8259, section 6).
    snprintf(checksum, sizeof checksum, "%016" PRIx64, state->place.checksum);
    json_open(&json, NULL, '{');
    json_put_string(&json, "tokenizer", tokenizer_name(job->tokenizer));
    for (int i = 0; i < SETTINGS; i++) json_put_string(&json, settings[i].name, settings[i].value);
    json_put_json(&json, "done", state->done ? "true" : "false");
    json_put_integer(&json, "shards", state->result.shards);
    json_put_unsigned(&json, "tokens", state->result.tokens);
    json_put_unsigned(&json, "val", state->result.val);
    json_put_unsigned(&json, "documents", state->result.documents);
    json_put_unsigned(&json, "invalid_bytes", state->result.invalid);
    json_put_integer(&json, "input", state->place.input);
    json_put_unsigned(&json, "offset", state->place.offset);
    json_put_string(&json, "checksum", checksum);
    json_put_unsigned(&json, "skip", state->skip);
    put_inputs(&json, job);
    json_close(&json, '}');
    // written like every file, whole or not at all
    char *path = path_join(job->plan.directory, state_file);
    Output *output = output_begin(path, OUTPUT_FILE);
    OutputFile *file = output_open(output, NULL);
    output_print(file, "%s\n", json.text);
    output_close(file);
    output_commit(output);
    free(path);
    free(json.text);
}

/* A counter of the state file. */
static uint64_t number_of(const char *path, const Json *root, const char *name) {
    int64_t value;
    if (!json_integer(json_member(root, name), 0, INT64_MAX, &value))
        fatal(EXIT_INPUT, "%s: \"%s\" is not a number: the file is damaged; give --overwrite to begin again", path,
              name);
    return (uint64_t)value;
}

/* Refuses to continue with settings that would give other bytes. */
static void compare_settings(const TokenizeJob *job, const char *path, const Json *root) {
    Setting settings[SETTINGS];
    describe(job, settings);
    for (int i = 0; i < SETTINGS; i++) {
        const Json *was = json_member(root, settings[i].name);
        bool none = !was || was->kind != JSON_STRING;
        // A setting that was absent must be absent still; one that was given must have the same text.
        if (none ? settings[i].value == NULL : settings[i].value && json_is(was, settings[i].value)) continue;
        fatal(EXIT_USAGE,
              "%s: the shards there were made with %s %s, but now it is %s; choose another --out, or --overwrite",
              path, settings[i].name, none ? "none" : was->text, settings[i].value ? settings[i].value : "none");
    }
}

/* Refuses to continue if the inputs are different or have changed. */
static void compare_inputs(const TokenizeJob *job, const char *path, const Json *inputs) {
    const Json *input = inputs ? inputs->first : NULL;
    if (!inputs || inputs->count != (size_t)job->count)
        fatal(EXIT_USAGE,
              "%s: the shards there are of %zu inputs, but now there are %d; choose another --out, or --overwrite",
              path, inputs ? (size_t)inputs->count : 0, job->count);
    for (int i = 0; i < job->count; i++, input = input->next) {
        uint64_t bytes;
        int64_t modified;
        byte_stream_status(job->paths[i], &bytes, &modified);
        const Json *was = json_member(input, "path"), *then = json_member(input, "modified");
        // The first difference found is the one that the message names.
        const char *what = !json_is(was, job->paths[i])               ? "another input was in its place"
                           : number_of(path, input, "bytes") != bytes ? "its size was different"
                           : !then || then->integer != modified       ? "its time of modification was different"
                                                                      : NULL;
        if (what)
            fatal(EXIT_USAGE, "%s: %s when the shards in %s were begun; choose another --out, or --overwrite",
                  job->paths[i], what, job->plan.directory);
    }
}

/* tokenize.json; json_free releases it. */
static const Json *read_json(const char *path) {
    char problem[JSON_PROBLEM];
    File *file = file_open(path);
    size_t size = file_size(file);
    const Json *root = json_read((const char *)file_at(file, 0, size), size, problem);
    file_close(file);
    if (!root) fatal(EXIT_INPUT, "%s: %s: the file is damaged; give --overwrite to begin again", path, problem);
    return root;
}

/* The state file of an earlier run, checked against this one. */
static TokenizeState read_state(const TokenizeJob *job, const char *path) {
    const Json *root = read_json(path);
    const Json *done = json_member(root, "done"), *checksum = json_member(root, "checksum");
    bool is_done = done && done->kind == JSON_TRUE;
    if (!is_done && number_of(path, root, "shards") == 0 && shard_writer_finds(job->plan.directory) == 0) {
        json_free(root);
        return (TokenizeState){0}; // nothing that another job could overwrite
    }
    compare_settings(job, path, root);
    compare_inputs(job, path, json_member(root, "inputs"));
    TokenizeState state = {
        .done = is_done,
        .result = {.tokens = number_of(path, root, "tokens"),
                   .documents = number_of(path, root, "documents"),
                   .invalid = number_of(path, root, "invalid_bytes"),
                   .val = number_of(path, root, "val"),
                   .shards = (int)number_of(path, root, "shards")},
        .place = {.input = (int)number_of(path, root, "input"),
                  .offset = number_of(path, root, "offset"),
                  .checksum = checksum && checksum->kind == JSON_STRING ? strtoull(checksum->text, NULL, 16) : 0},
        .skip = number_of(path, root, "skip"),
    };
    // skip counts tokens that are in shards already, so it cannot be more than the shards hold.
    if (state.place.input > job->count || state.skip > state.result.tokens)
        fatal(EXIT_INPUT,
              "%s: its numbers contradict each other: the file is damaged; give --overwrite to begin again", path);
    json_free(root);
    return state;
}

TokenizeState tokenize_look(const TokenizeJob *job) {
    char *path = path_join(job->plan.directory, state_file);
    TokenizeState state = {0};
    if (path_exists(path))
        state = read_state(job, path);
    else if (shard_writer_finds(job->plan.directory))
        fatal(EXIT_USAGE,
              "%s: holds token shards, but no %s that describes them; choose another --out, or --overwrite",
              job->plan.directory, state_file);
    free(path);
    return state;
}

char *tokenize_tokenizer(const char *path) {
    char *folder = memory_string(path), *slash = strrchr(folder, '/'), *name = NULL;
    bool inside = path_exists_in(path, state_file); // else `path` is a shard, and it may lie beside it
    if (!inside && slash) *slash = '\0';
    char *state = path_join(inside || slash ? folder : ".", state_file);
    if (path_exists(state)) {
        const Json *root = read_json(state), *tokenizer = json_member(root, "tokenizer");
        if (tokenizer && tokenizer->kind == JSON_STRING) name = memory_string(tokenizer->text);
        json_free(root);
    }
    free(state);
    free(folder);
    return name;
}

void tokenize_remove(const char *directory) {
    // The state file goes first. If the program is killed in between, shards without it remain, and these are
    // refused; a state file without its shards would let the next start continue after shards that are gone.
    char *path = path_join(directory, state_file);
    int failure = path_exists(path) ? output_remove(path) : 0;
    if (failure) fatal(EXIT_RUNTIME, "%s: cannot be removed: %s", path, strerror(failure));
    free(path);
    shard_writer_remove(directory);
}

// ---------------------------------------------------------------------------------------------
// The work

typedef struct {
    const TokenizeJob *job;
    ShardWriter *writer;
    TokenizeState state;   // what was counted up to now; its place: the last one at which reading can begin
    TokenizeResult before; // what was counted up to that place
    uint64_t skip;         // tokens still to be skipped
    bool any_text;
    EncodeProgress progress;
    void *context;
} Work;

/* Adds ids to the shards, but for those that earlier shards already have. */
static void add_tokens(Work *w, const int32_t *ids, size_t count) {
    // Skipped tokens are counted, too: result.tokens is a position in the tokens of the whole job.
    size_t skipped = w->skip < count ? (size_t)w->skip : count;
    w->skip -= skipped;
    if (count > skipped) shard_writer_add(w->writer, ids + skipped, count - skipped);
    w->state.result.tokens += count;
}

/* Called for each encoded segment, in the order of the inputs: end of text before a document, then its ids. */
static void on_segment(void *context, const Segment *segment, const int32_t *ids, size_t count, uint64_t invalid) {
    Work *w = context;
    // a place where a restart can begin: its counters belong to it
    if (segment->can_begin) {
        w->state.place = segment->place;
        w->before = w->state.result;
    }
    int32_t end_of_text = tokenizer_end_of_text(w->job->tokenizer);
    if (segment->begins) w->state.result.documents++;
    if (segment->begins && end_of_text >= 0) add_tokens(w, &end_of_text, 1);
    if (count) add_tokens(w, ids, count);
    w->any_text = w->any_text || count > 0;
    w->state.result.invalid += invalid;
}

/* Hands on how many bytes were consumed. */
static void on_progress(void *context, uint64_t consumed) {
    Work *w = context;
    if (w->progress) w->progress(w->context, consumed);
}

/* A shard is complete: the next start may begin after it. */
static void on_shard(void *context, int shards, uint64_t tokens) {
    Work *w = context;
    TokenizeState state = w->state;
    // A shard may end within a segment, where reading cannot begin. So the next start begins at the place before it,
    // and skips the tokens that are in shards. Example: 900 tokens up to the place and a shard that ends at 1000:
    // skip = 100.
    state.skip = tokens - w->before.tokens;
    state.result = w->before;
    state.result.tokens = tokens;
    state.result.shards = shards;
    w->state.result.shards = shards;
    save_state(w->job, &state);
}

TokenizeResult tokenize_run(const TokenizeJob *job, const TokenizeState *from, EncodeProgress progress,
                            void *context) {
    Work w = {.job = job, .state = *from, .skip = from->skip, .progress = progress, .context = context};
    Documents *documents = documents_open(job->paths, job->count, job->field, job->tokenizer, job->special);
    w.writer = shard_writer_new(&job->plan, from->result.shards, from->result.tokens, on_shard, &w);
    w.state.result.tokens -= from->skip; // they are encoded once more
    w.before = w.state.result;
    // The state file is there before the first shard, so that shards never lie there without a description.
    if (from->result.shards == 0) save_state(job, from);
    documents_seek(documents, &from->place);
    encode_documents(documents, job->tokenizer, job->special, job->threads, on_segment, on_progress, &w);
    if (!w.any_text && from->result.shards == 0)
        fatal(EXIT_INPUT, "%s%s: no text, 0 bytes; nothing is written", byte_stream_name(job->paths[0]),
              job->count > 1 ? " and the others" : "");
    w.state.result.val = shard_writer_finish(w.writer, &w.state.result.shards);
    // "done" is written last: until then the next start continues the job.
    w.state.done = true;
    w.state.skip = 0;
    save_state(job, &w.state);
    shard_writer_free(w.writer);
    documents_close(documents);
    return w.state.result;
}

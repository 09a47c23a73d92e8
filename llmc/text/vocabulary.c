/* vocabulary.c: see vocabulary.h. Which files a path means, tokens and merges by their text, and two formats:
 * vocab.json with merges.txt, and llm.c's gpt2_tokenizer.bin (256 int32: magic 20240328, version, vocabulary,
 * end of text; then for each token a byte, its length, and its bytes). */
#include "vocabulary.h"

#include "../files/checksum.h"
#include "../base/error.h"
#include "../base/memory.h"
#include "../files/input.h"
#include "../files/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_TOKENS = 1 << 24, LLMC_HEADER = 1024, LLMC_MAGIC = 20240328 };

// ---------------------------------------------------------------------------------------------
// Tokens and merges by their text

/* Where a token stands in the hash table, or where it would stand (open addressing). */
static size_t place_of(const Vocabulary *v, const char *text) {
    size_t at = checksum_of(text, strlen(text)) & (v->table_size - 1);
    while (v->table[at] >= 0 && strcmp(v->tokens[v->table[at]], text) != 0) at = (at + 1) & (v->table_size - 1);
    return at;
}

/* A hash table of this size, a power of two, with all tokens that are known. */
static void make_table(Vocabulary *v, size_t size) {
    free(v->table);
    v->table = memory_new(size, sizeof *v->table, "a vocabulary");
    v->table_size = size;
    for (size_t i = 0; i < size; i++) v->table[i] = -1;
    for (int32_t id = 0; id < v->vocab; id++)
        if (v->tokens[id]) v->table[place_of(v, v->tokens[id])] = id;
}

int32_t vocabulary_find(const Vocabulary *v, const char *text) {
    return v->table_size ? v->table[place_of(v, text)] : -1;
}

/* Grows the list of tokens so that it can have this id. */
static void make_room(Vocabulary *v, int32_t id) {
    if (id < v->capacity) return;
    int capacity = 2 * id + 256;
    v->tokens = memory_grow(v->tokens, (size_t)capacity, sizeof *v->tokens, "a vocabulary");
    memset(v->tokens + v->capacity, 0, (size_t)(capacity - v->capacity) * sizeof *v->tokens);
    v->capacity = capacity;
}

void vocabulary_add(Vocabulary *v, const char *text, int64_t id) {
    char shown[JSON_SHOWN];
    if (id < 0 || id >= v->most)
        fatal(EXIT_INPUT, "%s: token \"%s\" has id %" PRId64 ", but 0 to %" PRId64 " are expected", v->file,
              json_shown(text, shown), id, v->most - 1);
    int32_t known = vocabulary_find(v, text);
    if (known == id) return;
    make_room(v, (int32_t)id);
    if (known >= 0 || v->tokens[id])
        fatal(EXIT_INPUT, "%s: token \"%s\" has id %" PRId64 ", but %s", v->file, json_shown(text, shown), id,
              known >= 0 ? "the same token has another id too" : "another token has it too");
    v->tokens[id] = text;
    if (id >= v->vocab) v->vocab = (int)id + 1;
    if (2 * ++v->used > v->table_size)
        make_table(v, v->table_size ? 2 * v->table_size : 1024);
    else
        v->table[place_of(v, text)] = (int32_t)id;
}

void vocabulary_add_all(Vocabulary *v, const Json *object) {
    // Ids leave few gaps: a small file does not ask for a large table.
    v->most = object->count < MOST_TOKENS / 2 ? 2 * (int64_t)object->count + 1024 : MOST_TOKENS;
    for (const Json *token = object->first; token; token = token->next) {
        int64_t id;
        char shown[JSON_SHOWN];
        if (!json_integer(token, 0, MOST_TOKENS - 1, &id))
            fatal(EXIT_INPUT, "%s: token \"%s\": its id must be a whole number from 0 to %d", v->file,
                  json_shown(token->name, shown), MOST_TOKENS - 1);
        vocabulary_add(v, token->name, id);
    }
}

void vocabulary_merge(Vocabulary *v, const char *pair, const char *where) {
    const char *blank = strchr(pair, ' ');
    char shown[JSON_SHOWN];
    if (!blank || blank == pair || !blank[1] || strchr(blank + 1, ' '))
        fatal(EXIT_INPUT, "%s: %s: \"%s\" is no merge: two tokens with a blank between them are expected", v->file,
              where, json_shown(pair, shown));
    // look up the left token, the right one, and what both make together
    size_t left = (size_t)(blank - pair);
    char *text = memory_string(pair);
    text[left] = '\0';
    Merge merge = {vocabulary_find(v, text), vocabulary_find(v, blank + 1), 0};
    memmove(text + left, blank + 1, strlen(blank + 1) + 1);
    merge.id = vocabulary_find(v, text);
    free(text);
    if (merge.left < 0 || merge.right < 0 || merge.id < 0)
        fatal(EXIT_INPUT, "%s: %s: merge \"%s\": %s is no token of the vocabulary; do both files belong together?",
              v->file, where, json_shown(pair, shown),
              merge.id < 0 && merge.left >= 0 && merge.right >= 0 ? "what it makes" : "one of its two parts");
    Tokenizer *t = v->tokenizer;
    if (t->merge_count == v->merge_capacity) {
        v->merge_capacity = 2 * v->merge_capacity + 1024;
        t->merges = memory_grow(t->merges, (size_t)v->merge_capacity, sizeof *t->merges, "a vocabulary");
    }
    t->merges[t->merge_count++] = merge;
}

/* Appends the bytes of a token to t->text, which has room for them. */
static void add_bytes(Tokenizer *t, int32_t id, const char *text, bool written_out) {
    unsigned char *to = t->text + t->starts[id];
    size_t bytes = written_out ? SIZE_MAX : alphabet_read(text, to);
    if (bytes == SIZE_MAX) memcpy(to, text, bytes = strlen(text)); // no bytes in the alphabet: text as it is
    t->starts[id + 1] = t->starts[id] + (uint32_t)bytes;
}

void vocabulary_finish(Vocabulary *v) {
    Tokenizer *t = v->tokenizer;
    for (int b = 0; b < 256; b++) {
        unsigned char byte = (unsigned char)b;
        char text[3];
        alphabet_write(&byte, 1, text);
        t->byte_ids[b] = vocabulary_find(v, text);
        if (t->byte_ids[b] < 0)
            fatal(EXIT_INPUT, "%s: no token stands for byte 0x%02x, so this is no byte-level vocabulary", v->file,
                  b);
    }
    // All tokens in one text, token after token; starts[id] is where each begins.
    size_t room = 1;
    for (int32_t id = 0; id < v->vocab; id++) room += v->tokens[id] ? strlen(v->tokens[id]) : 0;
    if (room > UINT32_MAX) fatal(EXIT_INPUT, "%s: its tokens are longer than 4 GiB", v->file);
    t->vocab = v->vocab;
    t->end_of_text = vocabulary_find(v, END_OF_TEXT);
    t->text = memory_new(room, 1, "a vocabulary");
    t->starts = memory_new((size_t)v->vocab + 1, sizeof *t->starts, "a vocabulary");
    for (int32_t id = 0; id < v->vocab; id++)
        add_bytes(t, id, v->tokens[id] ? v->tokens[id] : "", id == t->end_of_text);
    free(v->tokens);
    free(v->table);
}

const Json *vocabulary_json(const char *path) {
    File *file = file_open(path);
    size_t size = file_size(file);
    char problem[JSON_PROBLEM];
    const Json *json = json_read((const char *)file_at(file, 0, size), size, problem);
    file_close(file);
    if (!json) fatal(EXIT_INPUT, "%s: is not JSON: %s", path, problem);
    if (json->kind != JSON_OBJECT) fatal(EXIT_INPUT, "%s: is %s, but an object is expected", path, json_kind(json));
    return json;
}

// ---------------------------------------------------------------------------------------------
// vocab.json and merges.txt

/* A line a merge; empty lines and the first one, when it says #version, are none. */
static void read_merges(Vocabulary *v, const char *path) {
    File *file = file_open(path);
    size_t size = file_size(file);
    char *text = memory_new(size + 1, 1, "merges"), *rest = text, where[48];
    memcpy(text, file_at(file, 0, size), size);
    file_close(file);
    const char *vocabulary = v->file;
    v->file = path;
    if (strlen(text) < size) fatal(EXIT_INPUT, "%s: byte %zu is 0, so this is no text", path, strlen(text));
    // a merge a line, in rank order; the first line may be a version; \r\n is taken as \n
    for (int line = 1; *rest; line++) {
        char *end = strchr(rest, '\n'), *next = end ? end + 1 : rest + strlen(rest);
        if (end) *end = '\0';
        if (end > rest && end[-1] == '\r') end[-1] = '\0';
        snprintf(where, sizeof where, "line %d", line);
        if (*rest && !(line == 1 && strncmp(rest, "#version", 8) == 0)) vocabulary_merge(v, rest, where);
        rest = next;
    }
    free(text);
    v->file = vocabulary;
}

/* vocab.json and merges.txt, which must fit each other. */
static void read_pair(Tokenizer *t, const char *vocab, const char *merges) {
    Vocabulary v = {.file = vocab, .tokenizer = t};
    const Json *json = vocabulary_json(vocab);
    vocabulary_add_all(&v, json);
    read_merges(&v, merges);
    vocabulary_finish(&v);
    json_free(json);
    if (t->merge_count == 0) fatal(EXIT_INPUT, "%s: holds no merge", merges);
}

// ---------------------------------------------------------------------------------------------
// gpt2_tokenizer.bin

/* llm.c's gpt2_tokenizer.bin: it has no merges, so it can only decode. */
static void read_llmc(Tokenizer *t, const char *path) {
    File *file = file_open(path);
    size_t size = file_size(file), at = LLMC_HEADER;
    if (size < LLMC_HEADER) fatal(EXIT_INPUT, "%s: has %zu bytes, less than an llm.c header's 1024", path, size);
    const unsigned char *bytes = file_at(file, 0, size);
    // the header: each number must make sense before memory is taken for it
    uint32_t version = load_u32(bytes + 4), vocab = load_u32(bytes + 8);
    if (size - LLMC_HEADER < vocab)
        fatal(EXIT_INPUT,
              "%s: %zu bytes cannot hold %" PRIu32 " tokens (header entry 2): the file is cut; fetch it again", path,
              size - LLMC_HEADER, vocab);
    if (version != 1 && version != 2)
        fatal(EXIT_INPUT, "%s: version (header entry 1) is %" PRIu32 ", but 1 or 2 is expected", path, version);
    if (vocab < 1 || vocab >= MOST_TOKENS)
        fatal(EXIT_INPUT, "%s: vocabulary (header entry 2) is %" PRIu32 ", but 1 to %d are expected", path, vocab,
              MOST_TOKENS - 1);
    t->vocab = (int)vocab;
    t->end_of_text = version == 2 ? (int32_t)load_u32(bytes + 12) : t->vocab - 1;
    if (t->end_of_text < 0 || t->end_of_text >= t->vocab)
        fatal(EXIT_INPUT, "%s: end of text (header entry 3) is %" PRId32 ", but the vocabulary has ids 0 to %d",
              path, t->end_of_text, t->vocab - 1);
    // then for each token a length and its bytes, which must end exactly where the file ends
    t->text = memory_new(size, 1, "a tokenizer");
    t->starts = memory_new((size_t)vocab + 1, sizeof *t->starts, "a tokenizer");
    for (uint32_t id = 0; id < vocab; id++) {
        size_t length = at < size ? bytes[at++] : SIZE_MAX;
        if (length > size - at)
            fatal(EXIT_INPUT, "%s: ends within token %" PRIu32 " of %" PRIu32 ": the file is cut; fetch it again",
                  path, id, vocab);
        memcpy(t->text + t->starts[id], bytes + at, length);
        t->starts[id + 1] = t->starts[id] + (uint32_t)length;
        at += length;
    }
    if (at != size) fatal(EXIT_INPUT, "%s: %zu bytes follow the last token: the file is too long", path, size - at);
    // without merges it cannot encode: no byte has an id
    for (int b = 0; b < 256; b++) t->byte_ids[b] = -1;
    file_close(file);
}

/* Whether a file begins with its magic number. */
static bool is_llmc(const char *path) {
    File *file = file_open(path);
    bool is = file_size(file) >= 4 && load_u32(file_at(file, 0, 4)) == LLMC_MAGIC;
    file_close(file);
    return is;
}

// ---------------------------------------------------------------------------------------------
// Which files

static const struct {
    const char *vocab, *merges;
} pairs[] = {{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}};

enum { PAIRS = sizeof pairs / sizeof *pairs };

/* Whether there is a directory, or something else, of this name. */
static bool exists(const char *path, bool directory) {
    struct stat status;
    return stat(path, &status) == 0 && !S_ISDIR(status.st_mode) == !directory;
}

/* Calls read_pair, or with NULL only looks whether there is something to read. */
static bool read_directory(Tokenizer *t, const char *directory) {
    bool found = false;
    for (int i = 0; i < PAIRS && !found; i++) {
        char *vocab = path_join(directory, pairs[i].vocab), *merges = path_join(directory, pairs[i].merges);
        found = exists(vocab, false) && exists(merges, false);
        if (found && t) read_pair(t, vocab, merges);
        free(vocab), free(merges);
    }
    if (found) return true;
    char *json = path_join(directory, "tokenizer.json");
    found = exists(json, false);
    if (found && t) tokenizer_json_read(t, json);
    free(json);
    return found;
}

bool tokenizer_is_in(const char *directory) { return read_directory(NULL, directory); }

/* One file of a pair: the other one lies beside it. */
static bool read_half(Tokenizer *t, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *directory = memory_string(path);
    directory[name - path] = '\0';
    bool done = false;
    for (int i = 0; i < PAIRS && !done; i++) {
        if (strcmp(name, pairs[i].vocab) != 0 && strcmp(name, pairs[i].merges) != 0) continue;
        char *vocab = path_join(slash ? directory : ".", pairs[i].vocab);
        char *merges = path_join(slash ? directory : ".", pairs[i].merges);
        read_pair(t, vocab, merges);
        free(vocab), free(merges);
        done = true;
    }
    free(directory);
    return done;
}

void vocabulary_read(Tokenizer *t, const char *path) {
    if (exists(path, true)) {
        if (!read_directory(t, path))
            fatal(EXIT_INPUT,
                  "%s: holds no tokenizer: tokenizer.json, or vocab.json and merges.txt, or encoder.json and "
                  "vocab.bpe are expected",
                  path);
        return;
    }
    if (!exists(path, false))
        fatal(EXIT_INPUT, "%s: no such tokenizer; there are bytes, gpt2, and files or directories that exist",
              path);
    if (is_llmc(path))
        read_llmc(t, path);
    else if (!read_half(t, path))
        tokenizer_json_read(t, path);
}

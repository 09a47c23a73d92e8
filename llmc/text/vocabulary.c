/* vocabulary.c: tokens and merges by their text, in a hash table, until a tokenizer is made of them. */
#include "vocabulary.h"

#include "../files/checksum.h"
#include "../base/error.h"
#include "../base/memory.h"
#include "../files/input.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Far above any vocabulary in use. It bounds the memory that an id in a file can ask for.
enum { MOST_TOKENS = 1 << 24 };

// ---------------------------------------------------------------------------------------------
// Tokens and merges by their text

/* The slot of a token in the hash table, or the free slot where it belongs (open addressing). */
static size_t place_of(const Vocabulary *v, const char *text) {
    // The table's size is a power of two, and at least half of it is free, so the search ends.
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
    // The places depend on the size of the table, so every token is put in again.
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
    // The end of text is often listed twice: in the vocabulary, and as an added token.
    if (known == id) return;
    make_room(v, (int32_t)id);
    if (known >= 0 || v->tokens[id])
        fatal(EXIT_INPUT, "%s: token \"%s\" has id %" PRId64 ", but %s", v->file, json_shown(text, shown), id,
              known >= 0 ? "the same token has another id too" : "another token has it too");
    v->tokens[id] = text;
    if (id >= v->vocab) v->vocab = (int)id + 1;
    // Never more than half full. make_table puts in the new token as well, since it is in v->tokens already.
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
        fatal(EXIT_INPUT, "%s: %s: \"%s\" is not a merge: two tokens with a blank between them are expected", v->file,
              where, json_shown(pair, shown));
    // look up the left token, the right one, and what both make together
    size_t left = (size_t)(blank - pair);
    char *text = memory_string(pair);
    text[left] = '\0';
    // "ab cd": the zero at the blank ends "ab"; then "cd" is moved to this place, which makes "abcd".
    Merge merge = {vocabulary_find(v, text), vocabulary_find(v, blank + 1), 0};
    memmove(text + left, blank + 1, strlen(blank + 1) + 1);
    merge.id = vocabulary_find(v, text);
    free(text);
    if (merge.left < 0 || merge.right < 0 || merge.id < 0)
        fatal(EXIT_INPUT, "%s: %s: merge \"%s\": %s is not a token of the vocabulary; do both files belong together?",
              v->file, where, json_shown(pair, shown),
              merge.id < 0 && merge.left >= 0 && merge.right >= 0 ? "its result" : "one of its two parts");
    Tokenizer *t = v->tokenizer;
    // Merges that are equal are kept: bpe_new takes the first.
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
    // With a token for every byte any text can be encoded, and no unknown token is needed.
    for (int b = 0; b < 256; b++) {
        unsigned char byte = (unsigned char)b;
        char text[3];
        alphabet_write(&byte, 1, text);
        t->byte_ids[b] = vocabulary_find(v, text);
        if (t->byte_ids[b] < 0)
            fatal(EXIT_INPUT, "%s: no token represents byte 0x%02x, so this is not a byte-level vocabulary", v->file,
                  b);
    }
    // All tokens in one text, token after token; starts[id] is where each begins.
    size_t room = 1;
    // No token has more bytes than its spelling. starts are 32 bits wide, which bounds the sum.
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

/* tokenizer_json.c: reads Hugging Face's tokenizer.json where it is byte-level BPE with GPT-2's splitting; all
 * else in it is refused by name, since it would give other ids. See vocabulary.h. */
#include "../base/error.h"
#include "../base/memory.h"
#include "vocabulary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program: a part of the file would give other ids than this program. */
_Noreturn static void refuse(const char *file, const char *part, const char *found, const char *expected) {
    fatal(EXIT_INPUT, "%s: %s is %s, but %s is expected: only byte-level BPE with GPT-2's splitting can be used",
          file, part, found, expected);
}

/* What a value is, in words. */
static const char *shown(const Json *value, char text[JSON_SHOWN]) {
    bool scalar = value && (value->kind == JSON_STRING || value->kind == JSON_NUMBER);
    return scalar ? json_shown(value->text, text) : json_kind(value);
}

/* Absent, or null. */
static bool is_nothing(const Json *value) { return !value || value->kind == JSON_NULL; }

/* A member must be absent or null, or its type ByteLevel. */
static const Json *expect_byte_level(const char *file, const Json *root, const char *name, bool optional) {
    const Json *value = json_member(root, name), *type = json_member(value, "type");
    char text[JSON_SHOWN];
    if (optional && is_nothing(value)) return NULL;
    if (!json_is(type, "ByteLevel")) refuse(file, name, shown(type ? type : value, text), "ByteLevel");
    return value;
}

/* The model's own settings that change ids. */
static void check_model(const char *file, const Json *model) {
    // With dropout some merges are left out at random. An unknown token replaces what has no token of its own. A prefix
    // or an ending is a part of a token's spelling that its text does not have. With any of them ids differ from ours.
    static const char *const absent[] = {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"};
    // With byte_fallback bytes without a token are written as <0x0A>. With ignore_merges a word that is a token is
    // taken as it is, even if its merges do not lead to it.
    static const char *const off[] = {"byte_fallback", "ignore_merges"};
    char text[JSON_SHOWN], part[64];
    const Json *type = json_member(model, "type");
    if (!model || model->kind != JSON_OBJECT) refuse(file, "model", json_kind(model), "an object");
    if (type && !json_is(type, "BPE")) refuse(file, "model.type", shown(type, text), "BPE");
    // "" means the same as null here: nothing is added.
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        const Json *value = json_member(model, absent[i]);
        snprintf(part, sizeof part, "model.%s", absent[i]);
        if (!is_nothing(value) && !json_is(value, "")) refuse(file, part, shown(value, text), "null");
    }
    for (size_t i = 0; i < sizeof off / sizeof *off; i++) {
        const Json *value = json_member(model, off[i]);
        snprintf(part, sizeof part, "model.%s", off[i]);
        if (!is_nothing(value) && value->kind != JSON_FALSE) refuse(file, part, shown(value, text), "false");
    }
}

/* Tokens beside the vocabulary: only the end of text. */
static void add_added_tokens(Vocabulary *v, const Json *list) {
    // Other added tokens, such as those of a chat, would be cut out of the text before it is split.
    for (const Json *token = list ? list->first : NULL; token; token = token->next) {
        const Json *content = json_member(token, "content");
        char text[JSON_SHOWN];
        int64_t id;
        if (!json_is(content, END_OF_TEXT)) refuse(v->file, "an added token", shown(content, text), END_OF_TEXT);
        if (!json_integer(json_member(token, "id"), 0, INT32_MAX, &id))
            refuse(v->file, "the id of " END_OF_TEXT, json_kind(json_member(token, "id")), "a whole number");
        vocabulary_add(v, END_OF_TEXT, id);
    }
}

/* Merges are "a b", or since version 0.20 of the library ["a", "b"]. */
static void add_merges(Vocabulary *v, const Json *list) {
    // Messages count merges from 0, as the list in the file does.
    char where[48], *pair = NULL;
    int number = 0;
    for (const Json *merge = list ? list->first : NULL; merge; merge = merge->next) {
        snprintf(where, sizeof where, "merge %d", number++);
        const Json *left = merge->kind == JSON_ARRAY ? merge->first : NULL, *right = left ? left->next : NULL;
        // two spellings: "left right" or ["left", "right"]
        if (merge->kind == JSON_STRING) {
            vocabulary_merge(v, merge->text, where);
        } else if (right && !right->next && left->kind == JSON_STRING && right->kind == JSON_STRING) {
            size_t a = strlen(left->text), b = strlen(right->text);
            pair = memory_grow(pair, a + b + 2, 1, "a merge");
            snprintf(pair, a + b + 2, "%s %s", left->text, right->text);
            vocabulary_merge(v, pair, where);
        } else {
            refuse(v->file, where, json_kind(merge), "a pair of tokens");
        }
    }
    free(pair);
}
// The tokenizer of bytes has 256 tokens and no end of text (tokenizer_files.c).

/* Without merges words do not matter: only bytes whose ids are their values, as we write them. */
static void check_bytes(const char *file, Tokenizer *t) {
    t->is_bytes = t->vocab == 256 && t->end_of_text < 0;
    for (int b = 0; b < 256; b++) t->is_bytes = t->is_bytes && t->byte_ids[b] == b;
    if (!t->is_bytes) refuse(file, "model.merges", "empty", "a list of merges");
}

void tokenizer_json_read(Tokenizer *t, const char *path) {
    const Json *root = vocabulary_json(path), *model = json_member(root, "model");
    const Json *vocab = json_member(model, "vocab"), *normalizer = json_member(root, "normalizer");
    char text[JSON_SHOWN];
    Vocabulary v = {.file = path, .tokenizer = t};
    // everything that could change an id is compared with what this program does
    check_model(path, model);
    if (!is_nothing(normalizer)) refuse(path, "normalizer", shown(json_member(normalizer, "type"), text), "null");
    const Json *splitting = expect_byte_level(path, root, "pre_tokenizer", false);
    expect_byte_level(path, root, "decoder", true);
    expect_byte_level(path, root, "post_processor", true);
    const Json *prefix = json_member(splitting, "add_prefix_space");
    if (!prefix || prefix->kind != JSON_FALSE)
        refuse(path, "pre_tokenizer.add_prefix_space", prefix ? json_kind(prefix) : "absent (true)", "false");
    if (!vocab || vocab->kind != JSON_OBJECT) refuse(path, "model.vocab", json_kind(vocab), "an object");
    // Merges are looked up by their text, so all tokens are known before.
    vocabulary_add_all(&v, vocab);
    add_added_tokens(&v, json_member(root, "added_tokens"));
    add_merges(&v, json_member(model, "merges"));
    vocabulary_finish(&v);
    // Without merges the splitting changes nothing, so it may be anything.
    const Json *regex = json_member(splitting, "use_regex");
    if (t->merge_count == 0)
        check_bytes(path, t);
    else if (regex && regex->kind != JSON_TRUE)
        refuse(path, "pre_tokenizer.use_regex", json_kind(regex), "true");
    json_free(root);
}

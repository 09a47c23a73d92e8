/* tokenizer_files.c: writes the files that make a checkpoint's tokenizer, for Hugging Face's library and for
 * tokenizer_read.c: vocab.json and merges.txt of GPT2Tokenizer, or for bytes a tokenizer.json, BPE without merges. */
#include "tokenizer_parts.h"

#include "../base/memory.h"
#include "../files/json_write.h"

#include <stdlib.h>
#include <string.h>

const char *tokenizer_file(const Tokenizer *t, int i) {
    static const char *const bpe[] = {"vocab.json", "merges.txt", "tokenizer_config.json"};
    static const char *const bytes[] = {"tokenizer.json", "tokenizer_config.json"};
    // Without merges the files would be incomplete, and none is written.
    if (!tokenizer_can_encode(t)) return NULL;
    int count = t->is_bytes ? 2 : 3;
    return i >= count ? NULL : t->is_bytes ? bytes[i] : bpe[i];
}

/* A token as its files spell it; the end of text as it is. free() releases it. */
static char *spelling(const Tokenizer *t, int32_t id) {
    size_t bytes = token_length(t, id);
    // A byte's character in the alphabet has at most 2 bytes of UTF-8.
    char *text = memory_new(2 * bytes + 1, 1, "a token");
    if (id == t->end_of_text)
        memcpy(text, t->text + t->starts[id], bytes);
    else
        alphabet_write(t->text + t->starts[id], bytes, text);
    return text;
}

/* All tokens that have a text, with their ids. */
static void put_vocabulary(JsonWriter *json, const Tokenizer *t, const char *name) {
    json_open(json, name, '{');
    for (int32_t id = 0; id < t->vocab; id++) {
        // An id without a text is one that the tokenizer's own file has left out.
        if (token_length(t, id) == 0) continue;
        char *text = spelling(t, id);
        json_put_integer(json, text, id);
        free(text);
    }
    json_close(json, '}');
}

/* vocab.json. */
static void write_vocab(const Tokenizer *t, OutputFile *file) {
    JsonWriter json = {.lines = false};
    put_vocabulary(&json, t, NULL);
    output_print(file, "%s\n", json.text);
    free(json.text);
}

/* merges.txt: a version line, then a merge a line in rank order. */
static void write_merges(const Tokenizer *t, OutputFile *file) {
    // GPT-2's own file begins with this line, and readers skip it.
    output_print(file, "#version: 0.2\n");
    for (int i = 0; i < t->merge_count; i++) {
        char *left = spelling(t, t->merges[i].left), *right = spelling(t, t->merges[i].right);
        output_print(file, "%s %s\n", left, right);
        free(left), free(right);
    }
}

/* The part of tokenizer.json that turns text into bytes. */
static void put_byte_level(JsonWriter *json, const char *name) {
    json_open(json, name, '{');
    json_put_string(json, "type", "ByteLevel");
    json_put_json(json, "add_prefix_space", "false");
    json_put_json(json, "trim_offsets", "true");
    // The regular expression is GPT-2's splitting. Without merges it does not matter where words end.
    json_put_json(json, "use_regex", "false");
    json_close(json, '}');
}

/* tokenizer.json of the tokenizer of bytes. */
static void write_json(const Tokenizer *t, OutputFile *file) {
    JsonWriter json = {.lines = true};
    json_open(&json, NULL, '{');
    json_put_string(&json, "version", "1.0");
    json_put_json(&json, "truncation", "null");
    json_put_json(&json, "padding", "null");
    json_put_json(&json, "added_tokens", "[]");
    json_put_json(&json, "normalizer", "null");
    put_byte_level(&json, "pre_tokenizer");
    json_put_json(&json, "post_processor", "null");
    put_byte_level(&json, "decoder");
    json_open(&json, "model", '{');
    json_put_string(&json, "type", "BPE");
    put_vocabulary(&json, t, "vocab");
    json_put_json(&json, "merges", "[]");
    json_close(&json, '}');
    json_close(&json, '}');
    output_print(file, "%s\n", json.text);
    free(json.text);
}

/* tokenizer_config.json: which class loads the others. */
static void write_config(const Tokenizer *t, OutputFile *file, int seq_len) {
    JsonWriter json = {.lines = true};
    json_open(&json, NULL, '{');
    // The general class takes everything from tokenizer.json; GPT2Tokenizer is the one that reads vocab.json and
    // merges.txt.
    json_put_string(&json, "tokenizer_class", t->is_bytes ? "PreTrainedTokenizerFast" : "GPT2Tokenizer");
    json_put_integer(&json, "model_max_length", seq_len);
    json_put_json(&json, "clean_up_tokenization_spaces", "false");
    if (!t->is_bytes && t->end_of_text >= 0) {
        json_put_json(&json, "add_prefix_space", "false");
        json_put_string(&json, "bos_token", END_OF_TEXT);
        json_put_string(&json, "eos_token", END_OF_TEXT);
        json_put_string(&json, "unk_token", END_OF_TEXT);
    }
    json_close(&json, '}');
    output_print(file, "%s\n", json.text);
    free(json.text);
}

void tokenizer_write(const Tokenizer *t, int i, OutputFile *file, int seq_len) {
    const char *name = tokenizer_file(t, i);
    if (strcmp(name, "vocab.json") == 0)
        write_vocab(t, file);
    else if (strcmp(name, "merges.txt") == 0)
        write_merges(t, file);
    else if (strcmp(name, "tokenizer.json") == 0)
        write_json(t, file);
    else
        write_config(t, file, seq_len);
}

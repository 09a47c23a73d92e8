/* text.c: see text.h. */
#include "text.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../base/number.h"
#include "../base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_control(unsigned char c) { return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f; }

char *text_printable(const unsigned char *bytes, size_t size) {
    char *text = memory_new(size_add(size_mul(size, 3, "text"), 1, "text"), 1, "text"), *out = text;
    for (size_t i = 0; i < size;) {
        size_t length = utf8_length(bytes + i, size - i);
        if (length == 0 || is_control(bytes[i])) {
            memcpy(out, "\xef\xbf\xbd", 3); // U+FFFD, the replacement character
            out += 3, i += 1;
        } else {
            memcpy(out, bytes + i, length);
            out += length, i += length;
        }
    }
    return text; // memory_new has zeroed its end
}

int32_t text_start(bool bytes, int vocab) {
    int32_t start = bytes ? '\n' : 50256;
    return start < vocab ? start : 0;
}

int32_t *text_ids(const char *option, const char *text, int vocab, int *count) {
    char *words = memory_string(text), *rest = words;
    int32_t *ids = memory_new(strlen(text) / 2 + 1, sizeof *ids, option); // a word and a blank each
    *count = 0;
    for (char *word; (word = strtok_r(rest, " ,\n\t", &rest));) {
        int64_t id;
        if (number_read_i64(word, &id) != NUMBER_OK || id < 0 || id >= vocab)
            fatal(EXIT_USAGE, "%s: '%.40s' is no token id of this model; they are 0 to %d", option, word,
                  vocab - 1);
        ids[(*count)++] = (int32_t)id;
    }
    free(words);
    return ids;
}

/* Collects generated tokens as raw bytes, or as printed ids. */
typedef struct {
    unsigned char *bytes;
    size_t size;
    bool ids;
} Collector;

enum { ID_WIDTH = 12 }; // " 2147483647" and its end

static void collect(void *context, int token) {
    Collector *c = context;
    if (c->ids)
        c->size += (size_t)snprintf((char *)c->bytes + c->size, ID_WIDTH, c->size ? " %d" : "%d", token);
    else
        c->bytes[c->size++] = (unsigned char)token;
}

char *text_sample(GPT2 *model, bool bytes, int64_t count, const Sampling *sampling) {
    Collector c = {.ids = !bytes};
    int32_t start = text_start(bytes, model->config.vocab);
    c.bytes = memory_new(size_mul((size_t)count, ID_WIDTH, "a sample"), 1, "a sample");
    generate(model, &start, 1, count, sampling, collect, &c);
    char *text = text_printable(c.bytes, c.size);
    free(c.bytes);
    return text;
}

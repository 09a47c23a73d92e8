/* text.c: see text.h. */
#include "text.h"

#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The length of the valid UTF-8 sequence at `s` (of `left` bytes), or 0: RFC 3629, with its exclusion of
 * overlong forms, surrogates, and what lies beyond U+10FFFF. */
static size_t utf8_length(const unsigned char *s, size_t left) {
    static const struct {
        unsigned char first, last; // range of the lead byte
        unsigned char low, high;   // range of the byte after it
        size_t length;
    } forms[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (s[0] < forms[i].first || s[0] > forms[i].last) continue;
        if (forms[i].length > left) return 0;
        if (forms[i].length > 1 && (s[1] < forms[i].low || s[1] > forms[i].high)) return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if ((s[k] & 0xc0) != 0x80) return 0;
        return forms[i].length;
    }
    return 0;
}

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
    int32_t start = bytes ? '\n' : 50256;
    if (start >= model->config.vocab) start = 0;
    c.bytes = memory_new(size_mul((size_t)count, ID_WIDTH, "a sample"), 1, "a sample");
    sample_generate(model, &start, 1, count, sampling, collect, &c);
    char *text = text_printable(c.bytes, c.size);
    free(c.bytes);
    return text;
}

/* text.c: see text.h. */
#include "text.h"

#include "memory.h"
#include "utf8.h"

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

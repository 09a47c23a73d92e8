/* printable.c: see printable.h. */
#include "printable.h"

#include "../base/memory.h"
#include "../base/utf8.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Control characters other than line break and tab would disturb a terminal. */
static bool is_control(unsigned char c) { return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f; }

char *printable(const unsigned char *bytes, size_t size) {
    char *text = memory_new(size_add(size_mul(size, 3, "text"), 1, "text"), 1, "text"), *out = text;
    for (size_t i = 0; i < size;) {
        size_t length = utf8_length(bytes + i, size - i);
        if (length == 0 || is_control(bytes[i])) {
            memcpy(out, "\xef\xbf\xbd", 3); // U+FFFD
            out += 3, i += 1;
        } else {
            memcpy(out, bytes + i, length);
            out += length, i += length;
        }
    }
    return text; // memory_new has zeroed its end
}

/* Whether the bytes held may become a character with those to come. */
static bool is_beginning(const unsigned char *held, size_t count) {
    size_t whole = held[0] >= 0xF0 ? 4 : held[0] >= 0xE0 ? 3 : held[0] >= 0xC2 ? 2 : 1;
    bool good = count < whole && held[0] <= 0xF4;
    for (size_t i = 1; i < count; i++) good = good && (held[i] & 0xC0) == 0x80;
    return good;
}

/* Prints what is held as far as it can be decided; `last`: nothing more comes. */
static void print_held(PrintableStream *stream, bool last, FILE *out) {
    while (stream->count > 0) {
        size_t length = utf8_length(stream->held, stream->count);
        if (length == 0 && !last && is_beginning(stream->held, stream->count)) return;
        if (length == 0) length = 1;
        char *text = printable(stream->held, length);
        fputs(text, out);
        free(text);
        stream->count -= length;
        memmove(stream->held, stream->held + length, stream->count);
    }
}

void printable_add(PrintableStream *stream, const unsigned char *bytes, size_t size, FILE *out) {
    for (size_t i = 0; i < size; i++) {
        stream->held[stream->count++] = bytes[i];
        print_held(stream, false, out);
    }
}

void printable_end(PrintableStream *stream, FILE *out) { print_held(stream, true, out); }

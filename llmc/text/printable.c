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
    // A byte of text may become the 3 bytes of U+FFFD. More it never becomes.
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
    // The first byte tells the length: C2 to DF begin 2 bytes, E0 to EF 3, and F0 to F4 4. C0, C1 and F5 to FF begin
    // none.
    size_t whole = held[0] >= 0xF0 ? 4 : held[0] >= 0xE0 ? 3 : held[0] >= 0xC2 ? 2 : 1;
    bool good = count < whole && held[0] <= 0xF4;
    for (size_t i = 1; i < count; i++) good = good && (held[i] & 0xC0) == 0x80;
    return good;
}

/* Prints what is held as far as it can be decided; `last`: nothing more comes. */
static void print_held(PrintableStream *stream, bool last, FILE *out) {
    // For the two bytes of U+00E9, C3 A9: C3 alone is held; with A9 it is whole and printed. If another byte follows
    // C3, U+FFFD is printed for C3, and the other byte is looked at by itself.
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
        // At most 3 bytes remain held, since 4 always can be decided. So `held` never overflows.
        stream->held[stream->count++] = bytes[i];
        print_held(stream, false, out);
    }
}

void printable_end(PrintableStream *stream, FILE *out) { print_held(stream, true, out); }

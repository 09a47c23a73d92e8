/* json_write.c: JSON into a growing text. The writer keeps no stack: whether a comma is due follows from the last
 * character written, and indentation from the depth. Reals are written so that they round-trip. */
#include "json_write.h"

#include "../base/memory.h"
#include "../base/number.h"
#include "../base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Appends bytes; the capacity doubles, so that a long text costs linear time. */
static void append(JsonWriter *w, const char *bytes, size_t count) {
    // one byte more for the 0: the text is a C string after each call
    size_t needed = size_add(size_add(w->length, count, "JSON"), 1, "JSON");
    if (needed > w->capacity) {
        w->capacity = size_mul(needed, 2, "JSON");
        w->text = memory_grow(w->text, w->capacity, 1, "JSON");
    }
    memcpy(w->text + w->length, bytes, count);
    w->length += count;
    w->text[w->length] = '\0';
}

static void append_text(JsonWriter *w, const char *text) { append(w, text, strlen(text)); }

/* One character of a string, or a sequence of UTF-8. */
static void append_character(JsonWriter *w, const char *at, size_t length) {
    // letters[i] is what stands after the backslash for special[i]
    static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *found = strchr(special, *at);
    char escape[8];
    // Four cases: a byte that is not UTF-8; a character with a short escape; another control character, as a code point
    // of four hexadecimal digits (0x1B becomes 001b); and everything else, which needs no escape.
    if (length == 0)
        append_text(w, "\xef\xbf\xbd"); // U+FFFD, the replacement character
    else if (found)
        append(w, (char[]){'\\', letters[found - special]}, 2);
    else if ((unsigned char)*at < 0x20)
        append(w, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*at));
    else
        append(w, at, length);
}

/* A string in quotes. Bytes that are not UTF-8 become U+FFFD: the output is always valid JSON. */
static void append_string(JsonWriter *w, const char *text) {
    append_text(w, "\"");
    // one UTF-8 sequence at a time: 1 to 4 bytes, or 0 where the next byte begins none
    for (size_t left = strlen(text); left > 0;) {
        size_t length = utf8_length((const unsigned char *)text, left);
        append_character(w, text, length);
        // one bad byte is passed over alone: a valid sequence may begin right after it
        size_t used = length ? length : 1;
        text += used, left -= used;
    }
    append_text(w, "\"");
}

/* A line break and the indentation of the current depth. */
static void new_line(JsonWriter *w) {
    append_text(w, "\n");
    for (int i = 0; i < w->depth; i++) append_text(w, "  ");
}

/* The comma after a value, and the name before the next one. */
static void begin(JsonWriter *w, const char *name) {
    // A comma is due after each value, so after any character but an opening bracket. Blanks and line breaks do not
    // count.
    char last = '\0';
    for (size_t i = w->length; i > 0 && !last; i--)
        if (!strchr(" \n", w->text[i - 1])) last = w->text[i - 1];
    if (last && !strchr("{[", last)) append_text(w, ",");
    if (!name) return;
    if (w->lines) new_line(w);
    append_string(w, name);
    append_text(w, ":");
}

void json_open(JsonWriter *w, const char *name, char bracket) {
    begin(w, name);
    append(w, &bracket, 1);
    w->depth++;
}

void json_close(JsonWriter *w, char bracket) {
    w->depth--;
    // only members have lines of their own: the elements of an array share one
    if (w->lines && bracket == '}') new_line(w);
    append(w, &bracket, 1);
}

void json_put_space(JsonWriter *w, const char *space) { append_text(w, space); }

void json_put_json(JsonWriter *w, const char *name, const char *json) {
    begin(w, name);
    append_text(w, json);
}

void json_put_string(JsonWriter *w, const char *name, const char *text) {
    if (!text) {
        json_put_json(w, name, "null");
        return;
    }
    begin(w, name);
    append_string(w, text);
}

void json_put_integer(JsonWriter *w, const char *name, int64_t value) {
    char text[NUMBER_CHARS];
    // spelled without a point, so that json_read.c reads it as an integer
    snprintf(text, sizeof text, "%" PRId64, value);
    json_put_json(w, name, text);
}

void json_put_unsigned(JsonWriter *w, const char *name, uint64_t value) {
    // A value above 2^63 - 1 is valid JSON, but json_read.c keeps only its double and its spelling.
    char text[NUMBER_CHARS];
    snprintf(text, sizeof text, "%" PRIu64, value);
    json_put_json(w, name, text);
}

void json_put_real(JsonWriter *w, const char *name, double value) {
    char text[NUMBER_CHARS];
    // JSON has no such numbers; strings are what other tools read
    if (isnan(value))
        json_put_string(w, name, "NaN");
    else if (isinf(value))
        json_put_string(w, name, value < 0 ? "-Infinity" : "Infinity");
    else
        json_put_json(w, name, number_write_real(text, value));
}

/* json_lines.c: see json_lines.h. A scanner that never goes back: functions for each part of the grammar take
 * its bytes from the stream. */
#include "json_lines.h"

#include "../base/error.h"

#include <stdio.h>
#include <string.h>

// How far the text of a string is looked at, how deep brackets may nest, and how much of a name is read at once.
enum { AHEAD = 1 << 16, DEEPEST = 64, NAME_BYTES = 256 };

/* Ends the program, with the line or the byte where the fault is. */
_Noreturn static void refuse(const JsonLines *lines, const char *problem) {
    // After a restart in the middle of a file the number of the line is not known. The byte is.
    if (lines->line) fatal(EXIT_INPUT, "%s: line %llu: %s", lines->name, (unsigned long long)lines->line, problem);
    fatal(EXIT_INPUT, "%s: byte %llu: %s", lines->name, (unsigned long long)byte_stream_offset(lines->stream),
          problem);
}

/* The next byte, or -1 at the end of the input. */
static int next(JsonLines *lines) {
    size_t there;
    const unsigned char *at = byte_stream_peek(lines->stream, 1, &there);
    return there ? *at : -1;
}

/* The next byte; the file must not end here. */
static int take(JsonLines *lines) {
    int c = next(lines);
    if (c < 0) refuse(lines, "the file ends inside an object: is it cut?");
    byte_stream_take(lines->stream, 1);
    return c;
}

/* Skips white space and counts lines; returns the byte after it, or -1 at the end. */
static int skip_blanks(JsonLines *lines) {
    int c;
    while ((c = next(lines)) == ' ' || c == '\t' || c == '\r' || c == '\n') {
        byte_stream_take(lines->stream, 1);
        if (c == '\n' && lines->line) lines->line++;
    }
    return c;
}

/* Skips blanks, then takes `wanted`. */
static void expect(JsonLines *lines, int wanted, const char *problem) {
    if (skip_blanks(lines) != wanted) refuse(lines, problem);
    take(lines);
}

// ---------------------------------------------------------------------------------------------
// Strings

/* Four hexadecimal digits. */
static unsigned take_hex(JsonLines *lines) {
    unsigned code = 0;
    for (int i = 0; i < 4; i++) {
        int c = take(lines);
        // c | 32 makes an ASCII letter small.
        int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (digit < 0) refuse(lines, "\\u without four hexadecimal digits");
        code = code << 4 | (unsigned)digit;
    }
    return code;
}

/* The character of \u, of which backslash and u are taken; half a pair is U+FFFD. */
static unsigned take_unicode(JsonLines *lines) {
    unsigned code = take_hex(lines);
    // JSON writes characters beyond U+FFFF as two halves (UTF-16): \uD83D\uDE00 is U+1F600. The first is D800 to DBFF,
    // the second DC00 to DFFF, and each of them has 10 bits of the character less 0x10000.
    if (code < 0xD800 || code > 0xDFFF) return code;
    size_t there;
    const unsigned char *at = byte_stream_peek(lines->stream, 6, &there);
    bool low = code < 0xDC00 && there == 6 && at[0] == '\\' && at[1] == 'u' && (at[2] | 32) == 'd' &&
               strchr("cdefCDEF", at[3]) && at[3];
    // What follows is not the second half. It is not taken: it is read next, as a character or an escape of its own.
    if (!low) return 0xFFFD;
    byte_stream_take(lines->stream, 2);
    return 0x10000 + ((code - 0xD800) << 10) + (take_hex(lines) - 0xDC00);
}

/* Writes a code point as UTF-8; returns its bytes. */
static size_t put_character(unsigned char *out, unsigned c) {
    if (c < 0x80) return out[0] = (unsigned char)c, 1;
    // Of 2 bytes the first is 110xxxxx, of 3 it is 1110xxxx, of 4 it is 11110xxx; all further ones are 10xxxxxx.
    size_t bytes = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = bytes; i-- > 1; c >>= 6) out[i] = (unsigned char)(0x80 | (c & 0x3f));
    out[0] = (unsigned char)((0xf0 << (4 - bytes)) | c);
    return bytes;
}

/* Takes an escape; writes up to 4 bytes. */
static size_t take_escape(JsonLines *lines, unsigned char *out) {
    take(lines); // the backslash
    int c = take(lines);
    if (c == 'u') return put_character(out, take_unicode(lines));
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *letter = c ? strchr(letters, c) : NULL;
    // strchr would find the 0 that ends `letters`.
    if (!letter) refuse(lines, "a backslash before a character that it cannot escape");
    out[0] = (unsigned char)values[letter - letters];
    return 1;
}

/* Takes up to `room` >= 4 bytes of a string's content; 0: at its end, whose quote is taken. */
static size_t take_content(JsonLines *lines, unsigned char *out, size_t room) {
    size_t used = 0;
    // Less than 4 bytes of room end the loop: the next character may need 4.
    while (room - used >= 4) {
        size_t there, plain = 0;
        const unsigned char *at = byte_stream_peek(lines->stream, 1, &there);
        // Text between quotes and escapes is copied in one piece.
        if (there == 0) refuse(lines, "the file ends inside a string: is it cut?");
        at = byte_stream_peek(lines->stream, AHEAD < room - used ? AHEAD : room - used, &there);
        while (plain < there && at[plain] != '"' && at[plain] != '\\' && at[plain] >= 0x20) plain++;
        memcpy(out + used, at, plain);
        byte_stream_take(lines->stream, plain);
        used += plain;
        if (plain == there) continue;
        int c = next(lines);
        if (c < 0x20) refuse(lines, "a control character in a string; it must be escaped");
        if (c == '\\') {
            // An escape is taken only whole. What has no room waits for the next call.
            if (room - used < 4) break;
            used += take_escape(lines, out + used);
            continue;
        }
        // The quote is taken only when nothing is returned, so that the caller sees 0 exactly once.
        if (used == 0) byte_stream_take(lines->stream, 1);
        break;
    }
    return used;
}

/* Skips a string of any length. */
static void skip_string(JsonLines *lines) {
    // The content is read like any other, and so checked, but it goes nowhere.
    unsigned char part[NAME_BYTES];
    take(lines); // the quote
    while (take_content(lines, part, sizeof part) > 0) continue;
}

/* Takes the name of a member; returns whether it is the field's. */
static bool take_name(JsonLines *lines) {
    // A name may be longer than `part`. It is compared piece by piece, after its escapes were read: "t\u0065xt" is
    // "text".
    size_t wanted = strlen(lines->field), used = 0;
    bool same = true;
    unsigned char part[NAME_BYTES];
    if (skip_blanks(lines) != '"') refuse(lines, "a name in quotes is expected");
    take(lines);
    for (size_t n; (n = take_content(lines, part, sizeof part)) > 0; used += n)
        same = same && n <= wanted - used && memcmp(part, lines->field + used, n) == 0;
    expect(lines, ':', "a colon is expected after a name");
    return same && used == wanted;
}

// ---------------------------------------------------------------------------------------------
// Values that are skipped

/* The characters of numbers and of true, false and null. */
static bool is_scalar(int c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' || c == 'E';
}

/* A number, true, false or null. */
static void skip_scalar(JsonLines *lines) {
    // A number of any length is skipped, but only its first 63 characters are kept and checked.
    char text[64];
    size_t used = 0;
    for (int c; (c = next(lines)) >= 0 && is_scalar(c); take(lines))
        if (used < sizeof text - 1) text[used++] = (char)c;
    text[used] = '\0';
    bool word = strcmp(text, "true") == 0 || strcmp(text, "false") == 0 || strcmp(text, "null") == 0;
    const char *digits = text + (text[0] == '-');
    bool number = digits[0] >= '0' && digits[0] <= '9' && strspn(text, "0123456789+-.eE") == used;
    if (!word && !number) refuse(lines, "a value is expected");
}

/* Skips a value of any kind. depth limits how deep arrays and objects may nest. */
static void skip_value(JsonLines *lines, int depth) {
    int c = skip_blanks(lines);
    if (c == '"') {
        skip_string(lines);
        return;
    }
    if (c != '{' && c != '[') {
        skip_scalar(lines);
        return;
    }
    // A function that calls itself for each bracket would run out of stack on a file of a million brackets.
    if (depth == DEEPEST) refuse(lines, "brackets are nested more than 64 deep");
    int end = take(lines) == '{' ? '}' : ']';
    if (skip_blanks(lines) == end) {
        take(lines);
        return;
    }
    for (;;) {
        if (end == '}') {
            if (skip_blanks(lines) != '"') refuse(lines, "a name in quotes is expected");
            skip_string(lines);
            expect(lines, ':', "a colon is expected after a name");
        }
        skip_value(lines, depth + 1);
        c = skip_blanks(lines);
        if (c != ',' && c != end) refuse(lines, "a comma or a closing bracket is expected after a value");
        take(lines);
        if (c == end) return;
    }
}

// ---------------------------------------------------------------------------------------------
// Objects

/* What follows the text in its object. */
static void finish_object(JsonLines *lines) {
    // The text has been read. More members, and then the bracket that closes the object, may follow:
    //   {"id": 7, "text": "Once", "url": "..."}
    // json_lines_next stops behind the quote that opens "Once". What follows "Once" is read here, at the next call.
    for (;;) {
        int c = skip_blanks(lines);
        if (c != ',' && c != '}') refuse(lines, "a comma or a closing bracket is expected after a value");
        take(lines);
        if (c == '}') break;
        if (take_name(lines)) refuse(lines, "the object has the text's field twice");
        skip_value(lines, 1);
    }
    lines->in_object = false;
}

/* Ends the program: the field that --field names is missing or is not a string. */
_Noreturn static void refuse_field(const JsonLines *lines, const char *problem, const char *after_name) {
    char message[NAME_BYTES + 100];
    snprintf(message, sizeof message, "%s \"%.200s\"%s; name another with --field", problem, lines->field, after_name);
    refuse(lines, message);
}

/* Skips a byte-order mark, if the file begins with one. */
static void skip_mark(JsonLines *lines) {
    size_t there;
    const unsigned char *at = byte_stream_peek(lines->stream, 3, &there);
    if (there == 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) byte_stream_take(lines->stream, 3);
}

bool json_lines_next(JsonLines *lines, uint64_t *start, uint64_t *checksum) {
    // A byte order mark is possible only at the very beginning, and only from there lines are counted.
    if (byte_stream_offset(lines->stream) == 0) {
        lines->line = 1;
        skip_mark(lines);
    }
    if (lines->in_object) finish_object(lines);
    int c = skip_blanks(lines);
    if (c < 0) return false;
    // The place is the object's bracket: reading can begin again there, without knowing anything that came before.
    *start = byte_stream_offset(lines->stream);
    *checksum = byte_stream_checksum(lines->stream);
    if (c != '{') refuse(lines, "an object is expected, which begins with {");
    take(lines);
    if (skip_blanks(lines) == '}') refuse_field(lines, "the object has no field", "");
    // Members before the text are skipped. Whether the field comes a second time shows only at the object's end.
    while (!take_name(lines)) {
        skip_value(lines, 1);
        c = skip_blanks(lines);
        if (c == '}') refuse_field(lines, "the object has no field", "");
        if (c != ',') refuse(lines, "a comma or a closing bracket is expected after a value");
        take(lines);
    }
    if (skip_blanks(lines) != '"') refuse_field(lines, "field", " is not a string");
    take(lines);
    lines->in_object = true;
    return true;
}

size_t json_lines_text(JsonLines *lines, unsigned char *out, size_t room) { return take_content(lines, out, room); }

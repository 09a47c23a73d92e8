/* json_read.c: a JSON parser (RFC 8259) by recursive descent, for files of others: it refuses what is doubtful.
 * Strings are decoded in place, in a copy of the text (an escape is never shorter than what it stands for).
 * Values are in blocks that the document owns, so that one json_free releases all. The first problem found is
 * kept with its line and column, and ends the parse. */
#include "json_read.h"

#include "../base/memory.h"
#include "../base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// MAX_DEPTH bounds the recursion, and so the stack: a text of a million [ must not overflow it.
enum { MAX_DEPTH = 64, BLOCK_VALUES = 128, MAX_NUMBER = 64 };

/* Values that any text may have, and for a longer one the bytes of text that each must have: a value takes 56 bytes
 * of memory, but 2 of a text such as [0,0,0]. The header of a file of tensors has 7 or more. */
enum { SOME_VALUES = 4096, BYTES_A_VALUE = 6 };

// One allocation serves 128 values. A block never grows or moves, so pointers to its values stay valid.
typedef struct Block {
    struct Block *next;
    size_t used;
    Json values[BLOCK_VALUES];
} Block;

typedef struct {
    Json root; // first, so that a root's address is its document's
    char *text;
    Block *blocks;
} Document;

typedef struct {
    Document *document;
    const char *original;
    char *start, *at, *end; // the copy of it that is decoded in place; *end is 0
    char *problem;
    bool failed;
    size_t values, most_values;
} Parser;

// ---------------------------------------------------------------------------------------------
// Problems and single characters

/* Records the first problem, at `where`. Always false. */
static bool fail(Parser *p, const char *where, const char *what) {
    if (p->failed) return false;
    p->failed = true;
    // Counted in the original text, because decoding overwrites the copy. A column is a byte, counted from 1.
    int line = 1;
    const char *line_start = p->original, *place = p->original + (where - p->start);
    for (const char *c = p->original; c < place; c++)
        if (*c == '\n') line++, line_start = c + 1;
    snprintf(p->problem, JSON_PROBLEM, "line %d, column %td: %.150s", line, place - line_start + 1,
             what);
    return false;
}

/* The four characters that JSON allows between tokens. */
static void skip_space(Parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Takes `c` if it comes next. */
static bool take(Parser *p, char c) {
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

// ---------------------------------------------------------------------------------------------
// Strings

/* Four hex digits at `at`, or -1. */
static int32_t hex4(const Parser *p, const char *at) {
    if (p->end - at < 4) return -1;
    int32_t code = 0;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        int digit = is_digit(c)            ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) return -1;
        code = code << 4 | digit;
    }
    return code;
}

/* Writes a code point as UTF-8, 1 to 4 bytes; returns the place after it. */
static char *put_utf8(char *to, int32_t code) {
    // RFC 3629, section 3; x: the bits of the code point, the highest first
    //   U+0000  .. U+007F    0xxxxxxx
    //   U+0080  .. U+07FF    110xxxxx 10xxxxxx
    //   U+0800  .. U+FFFF    1110xxxx 10xxxxxx 10xxxxxx
    //   U+10000 .. U+10FFFF  11110xxx 10xxxxxx 10xxxxxx 10xxxxxx
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xC0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *to++ = (char)(0xE0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    } else {
        *to++ = (char)(0xF0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3F));
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    }
    return to;
}

/* Decodes \uXXXX, or two of them that are a surrogate pair; p->at is at the 'u'. */
static bool take_unicode_escape(Parser *p, char **to) {
    const char *where = p->at - 1;
    int32_t code = hex4(p, p->at + 1);
    if (code < 0) return fail(p, where, "\\u without four hexadecimal digits");
    p->at += 5;
    // A code point beyond U+FFFF is two escapes, a high and a low half of 10 bits each: D83D and DE00 are U+1F600.
    if (code >= 0xD800 && code < 0xDC00) {
        int32_t low =
            p->end - p->at >= 6 && p->at[0] == '\\' && p->at[1] == 'u' ? hex4(p, p->at + 2) : -1;
        if (low < 0xDC00 || low > 0xDFFF) return fail(p, where, "half of a surrogate pair");
        p->at += 6;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
        return fail(p, where, "half of a surrogate pair");
    }
    if (code == 0) return fail(p, where, "a zero character in a string");
    *to = put_utf8(*to, code);
    return true;
}

/* p->at is after the backslash. */
static bool take_escape(Parser *p, char **to) {
    // the letter after the backslash, and at the same place in `values` what it stands for
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (*p->at == 'u') return take_unicode_escape(p, to);
    // At the text's end *p->at is 0, which strchr would find: as the 0 that ends `names`.
    const char *name = *p->at ? strchr(names, *p->at) : NULL;
    if (!name) return fail(p, p->at - 1, "an unknown escape in a string");
    *(*to)++ = values[name - names];
    p->at++;
    return true;
}

/* p->at is at the opening quote. *out is the decoded string, ended by 0 where it ends. */
static bool take_string(Parser *p, const char **out) {
    // The decoded bytes go to `to`, which never passes p->at: what is still to be read is not overwritten.
    const char *opening = p->at++;
    char *to = p->at;
    *out = to;
    while (p->at < p->end && *p->at != '"') {
        if (*p->at == '\\') {
            p->at++;
            if (!take_escape(p, &to)) return false;
            continue;
        }
        // RFC 8259 allows control characters only as escapes; a quote that is missing shows at the line's end
        if ((unsigned char)*p->at < 0x20) return fail(p, p->at, "a control character in a string");
        size_t length = utf8_length((unsigned char *)p->at, (size_t)(p->end - p->at));
        if (length == 0) return fail(p, p->at, "a string that is not UTF-8");
        memmove(to, p->at, length);
        to += length, p->at += length;
    }
    if (p->at == p->end) return fail(p, opening, "a string without an end");
    p->at++;
    // only after the closing quote was taken: without escapes the 0 stands in its place
    *to = '\0';
    return true;
}

// ---------------------------------------------------------------------------------------------
// Numbers and words

/* One digit or more. */
static bool take_digits(Parser *p) {
    if (p->at == p->end || !is_digit(*p->at)) return false;
    while (p->at < p->end && is_digit(*p->at)) p->at++;
    return true;
}

/* A number in the grammar of JSON, which is stricter than strtod: no leading zero, no "1." and no ".5". A whole
 * number that fits 64 bits is kept exactly beside its double. */
static bool take_number(Parser *p, Json *value) {
    const char *start = p->at;
    value->kind = JSON_NUMBER;
    value->text = start;
    value->is_integer = true;
    take(p, '-');
    // a whole part of 0 ends there; any other has one digit or more
    if (!take(p, '0') && !take_digits(p)) return fail(p, start, "no value where one is expected");
    if (p->at < p->end && is_digit(*p->at)) return fail(p, start, "a number with a leading zero");
    if (take(p, '.')) {
        value->is_integer = false;
        if (!take_digits(p)) return fail(p, start, "a number without digits after its point");
    }
    if (take(p, 'e') || take(p, 'E')) {
        value->is_integer = false;
        if (!take(p, '+')) take(p, '-');
        if (!take_digits(p)) return fail(p, start, "a number without digits in its exponent");
    }
    // strtod reads up to a 0, but in the text a comma or a bracket follows: the number is copied
    char spelling[MAX_NUMBER + 1] = {0};
    if (p->at - start > MAX_NUMBER) return fail(p, start, "a number of more than 64 characters");
    memcpy(spelling, start, (size_t)(p->at - start));
    value->number = strtod(spelling, NULL);
    if (!isfinite(value->number)) return fail(p, start, "a number too large for a double");
    // strtoll tells by errno that the number does not fit 64 bits: then it is kept only as a double
    errno = 0;
    if (value->is_integer) value->integer = strtoll(spelling, NULL, 10);
    if (errno) value->is_integer = false;
    return true;
}

/* null, false or true. */
static bool take_word(Parser *p, Json *value) {
    static const struct {
        const char *word;
        JsonKind kind;
    } words[] = {{"null", JSON_NULL}, {"false", JSON_FALSE}, {"true", JSON_TRUE}};
    for (size_t i = 0; i < 3; i++) {
        size_t length = strlen(words[i].word);
        if ((size_t)(p->end - p->at) < length || memcmp(p->at, words[i].word, length) != 0)
            continue;
        p->at += length;
        value->kind = words[i].kind;
        return true;
    }
    return fail(p, p->at, "no value where one is expected");
}

// ---------------------------------------------------------------------------------------------
// Arrays and objects

static bool take_value(Parser *p, Json *value, int depth);

/* A value in the newest block, or in a new block when that is full. */
static Json *new_value(Document *d) {
    if (!d->blocks || d->blocks->used == BLOCK_VALUES) {
        Block *block = memory_new(1, sizeof *block, "JSON values");
        block->next = d->blocks;
        d->blocks = block;
    }
    return &d->blocks->values[d->blocks->used++];
}

static int by_name(const void *a, const void *b) {
    // a and b point to elements of an array of strings
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Fails at the object's opening brace when two of its members have one name. */
static bool check_names(Parser *p, const Json *object, const char *opening) {
    const char **names = memory_new(object->count, sizeof *names, "the names of a JSON object");
    size_t n = 0;
    for (const Json *m = object->first; m; m = m->next) names[n++] = m->name;
    // sorted, so that a header with thousands of names takes n log n comparisons
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 1; i < n; i++)
        if (strcmp(names[i - 1], names[i]) == 0) {
            char what[JSON_PROBLEM], shown[JSON_SHOWN];
            snprintf(what, sizeof what, "two members called \"%s\" in one object",
                     json_shown(names[i], shown));
            fail(p, opening, what);
            break;
        }
    free(names);
    return !p->failed;
}

/* "name" : before a member's value. */
static bool take_name(Parser *p, Json *member) {
    skip_space(p);
    if (p->at == p->end || *p->at != '"') return fail(p, p->at, "no name where one is expected");
    if (!take_string(p, &member->name)) return false;
    skip_space(p);
    return take(p, ':') || fail(p, p->at, "no colon after a name");
}

/* p->at is at the opening bracket or brace. */
static bool take_elements(Parser *p, Json *value, int depth) {
    const char *opening = p->at;
    bool object = *p->at++ == '{';
    value->kind = object ? JSON_OBJECT : JSON_ARRAY;
    if (depth == MAX_DEPTH) return fail(p, opening, "arrays and objects nested deeper than 64");
    char closing = object ? '}' : ']';
    skip_space(p);
    if (take(p, closing)) return true;

    // link: where the address of the next element goes, first into the value, then into the element before After a
    // comma an element must follow: [1,] is refused.
    const Json **link = &value->first;
    do {
        // memory in proportion to the text: 30 MB of "[0,0,0..." must not become a gigabyte
        if (++p->values > p->most_values) return fail(p, p->at, "more values than a text of this length may have");
        Json *element = new_value(p->document);
        *link = element;
        link = &element->next;
        value->count++;
        if (object && !take_name(p, element)) return false;
        if (!take_value(p, element, depth + 1)) return false;
        skip_space(p);
    } while (take(p, ','));
    if (!take(p, closing))
        return fail(p, p->at,
                    object ? "no comma and no } after a member"
                           : "no comma and no ] after an element");
    return !object || check_names(p, value, opening);
}

/* Any value; its first character decides which. depth: how many arrays and objects it is in. */
static bool take_value(Parser *p, Json *value, int depth) {
    skip_space(p);
    if (p->at == p->end) return fail(p, p->at, "the text ends where a value is expected");
    if (*p->at == '"') {
        value->kind = JSON_STRING;
        return take_string(p, &value->text);
    }
    if (*p->at == '{' || *p->at == '[') return take_elements(p, value, depth);
    if (*p->at == '-' || is_digit(*p->at)) return take_number(p, value);
    return take_word(p, value);
}

// ---------------------------------------------------------------------------------------------
// The document

/* Ends a number's spelling in the text by a 0. */
static void end_number(Json *value) {
    if (value->kind != JSON_NUMBER) return;
    char *text = (char *)value->text; // in the document's own copy
    text[strspn(text, "-+.0123456789eE")] = '\0';
}

/* Ends the spelling of each number, now that the comma or bracket after it is no longer needed. */
static void end_numbers(Document *document) {
    end_number(&document->root);
    for (Block *block = document->blocks; block; block = block->next)
        for (size_t i = 0; i < block->used; i++) end_number(&block->values[i]);
}

const Json *json_read(const char *text, size_t bytes, char *problem) {
    Document *document = memory_new(1, sizeof *document, "a JSON document");
    // a copy, since strings are decoded in place; the 0 after it lets the parser look at the character at the end
    document->text = memory_new(size_add(bytes, 1, "a JSON text"), 1, "a JSON text");
    memcpy(document->text, text, bytes);
    char *start = document->text;
    Parser p = {.document = document,
                .original = text,
                .start = start,
                .at = start,
                .end = start + bytes,
                .problem = problem,
                .most_values = SOME_VALUES + bytes / BYTES_A_VALUE};
    if (p.most_values > UINT32_MAX) p.most_values = UINT32_MAX; // Json.count
    // a text is one value, with blanks around it and nothing else
    if (take_value(&p, &document->root, 0)) {
        skip_space(&p);
        if (p.at < p.end) fail(&p, p.at, "something after the end of the value");
    }
    if (!p.failed) {
        end_numbers(document);
        return &document->root;
    }
    json_free(&document->root);
    return NULL;
}

void json_free(const Json *root) {
    Document *document = (Document *)root;
    if (!document) return;
    // the root is not an element of a block: it is a part of the document
    for (Block *block = document->blocks; block;) {
        Block *next = block->next;
        free(block);
        block = next;
    }
    free(document->text);
    free(document);
}

const Json *json_member(const Json *value, const char *name) {
    if (!value || value->kind != JSON_OBJECT) return NULL;
    for (const Json *member = value->first; member; member = member->next)
        if (strcmp(member->name, name) == 0) return member;
    return NULL;
}

bool json_integer(const Json *value, int64_t least, int64_t most, int64_t *out) {
    if (!value || !value->is_integer || value->integer < least || value->integer > most)
        return false;
    *out = value->integer;
    return true;
}

bool json_is(const Json *value, const char *text) {
    return value && value->kind == JSON_STRING && strcmp(value->text, text) == 0;
}

const char *json_shown(const char *text, char shown[JSON_SHOWN]) {
    snprintf(shown, JSON_SHOWN, "%.60s%s", text, strlen(text) > 60 ? "..." : "");
    // a line break or an escape sequence from a file must not spoil the message or the terminal
    for (char *c = shown; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F) *c = '?';
    return shown;
}

const char *json_kind(const Json *value) {
    static const char *const names[] = {"null",     "false",    "true",     "a number",
                                        "a string", "an array", "an object"};
    return value ? names[value->kind] : "nothing";
}

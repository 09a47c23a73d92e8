/* npy.c: see npy.h. The header is a Python dictionary written as text, after NumPy's NEP 1:
 * \x93NUMPY, major and minor version, the text's length (u16 in version 1, u32 after), the text:
 *   {'descr': '<u2', 'fortran_order': False, 'shape': (100000000,), } */
#include "npy.h"

#include "../base/error.h"

#include <string.h>

static const char magic[6] = "\x93NUMPY";

enum { SHOWN = 40 }; // characters of a strange header that a message repeats

/* The dictionary's text, not yet parsed. */
typedef struct {
    const char *at, *end;
    const char *name; // of the file
} Text;

bool npy_is(File *file) {
    return file_size(file) >= sizeof magic &&
           memcmp(file_at(file, 0, sizeof magic), magic, sizeof magic) == 0;
}

/* Blanks and line breaks pad the header. */
static void skip_spaces(Text *text) {
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\n')) text->at++;
}

/* Ends the program: the text at the cursor is not what is expected. */
static _Noreturn void refuse(Text *text, const char *field, const char *expected) {
    char found[SHOWN + 1];
    int n = 0, end = 0; // end: without blanks at the end
    skip_spaces(text);
    // The header may be damaged: at most 40 characters are shown, with '?' for those that a terminal cannot show.
    for (; text->at < text->end && n < SHOWN; text->at++) {
        found[n++] = *text->at >= ' ' && *text->at <= '~' ? *text->at : '?';
        if (*text->at != ' ' && *text->at != '\n') end = n;
    }
    found[end] = '\0';
    fatal(EXIT_INPUT,
          "%s: .npy header: %s is \"%s\", but %s is expected; save a 1-D array of np.uint16",
          text->name, field, found, expected);
}

/* Steps over `word`, if that comes next. */
static bool take(Text *text, const char *word) {
    skip_spaces(text);
    size_t length = strlen(word);
    if ((size_t)(text->end - text->at) < length || memcmp(text->at, word, length) != 0)
        return false;
    text->at += length;
    return true;
}

/* Steps over a word in quotes of either kind. */
static bool take_quoted(Text *text, const char *word) {
    // An attempt that fails goes back to the start, since it may have stepped over a quote or a part of the word.
    Text start = *text;
    for (int i = 0; i < 2; i++) {
        const char *quote = i ? "\"" : "'";
        if (take(text, quote) && take(text, word) && take(text, quote)) return true;
        *text = start;
    }
    return false;
}

/* The element types that hold token ids. */
static TokenType take_type(Text *text) {
    // '<' means little-endian, u and i unsigned and signed integers, the digit the bytes of an element.
    if (take_quoted(text, "<u2")) return TOKEN_U16;
    if (take_quoted(text, "<i4")) return TOKEN_I32;
    if (take_quoted(text, "<u4")) return TOKEN_U32;
    refuse(text, "descr (the type)", "'<u2', '<i4' or '<u4'");
}

/* The n of a shape "(n,)". */
static uint64_t take_shape(Text *text) {
    Text start = *text;
    uint64_t n = 0;
    bool good = take(text, "(");
    skip_spaces(text);
    good = good && text->at < text->end && *text->at >= '0' && *text->at <= '9';
    // A number of more than 64 bits is refused, not wrapped round.
    for (; good && text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++)
        good = !__builtin_mul_overflow(n, 10, &n) &&
               !__builtin_add_overflow(n, (uint64_t)(*text->at - '0'), &n);
    if (good) take(text, "L"); // Python 2 wrote long integers so
    // In Python (n,) is a tuple of one element. (n) is a number and (n, m) has two dimensions: both are refused.
    if (!good || !take(text, ",") || !take(text, ")"))
        refuse(&start, "shape", "one dimension, as in (1000,)");
    return n;
}

/* The dictionary: each of the three keys once, in any order. */
static void parse(Text *text, Shard *shard) {
    bool descr = false, order = false, shape = false;
    if (!take(text, "{")) refuse(text, "its start", "{");
    // A key that is there twice finds its flag set, and is refused like one that is not known.
    // key, colon, value, comma; the last comma may be missing
    while (!take(text, "}")) {
        if (!descr && take_quoted(text, "descr") && take(text, ":")) {
            shard->type = take_type(text), descr = true;
        } else if (!order && take_quoted(text, "fortran_order") && take(text, ":")) {
            if (!take(text, "False")) refuse(text, "fortran_order", "False");
            order = true;
        } else if (!shape && take_quoted(text, "shape") && take(text, ":")) {
            shard->tokens = take_shape(text), shape = true;
        } else {
            refuse(text, "a key", "descr, fortran_order or shape, each once");
        }
        if (!take(text, ",") && !(text->at < text->end && *text->at == '}'))
            refuse(text, "what follows a value", "a comma");
    }
    skip_spaces(text);
    if (!descr || !order || !shape || text->at != text->end)
        refuse(text, "its end", "descr, fortran_order and shape, and nothing after");
}

void npy_describe(Shard *shard) {
    // Bytes 0-5 are the magic, 6 and 7 the major and minor version; the text's length follows. file_at ends the
    // program where the file is too short for any of these, so a damaged length does no harm.
    unsigned major = file_at(shard->file, 0, 8)[6];
    if (major < 1 || major > 3)
        fatal(EXIT_INPUT, "%s: .npy version is %u, but 1, 2 or 3 is expected", shard->name, major);
    // The length takes 2 bytes in version 1 and 4 bytes after: the text begins at byte 10 or 12.
    size_t start = major == 1 ? 10 : 12;
    const unsigned char *field = file_at(shard->file, 8, start - 8);
    size_t length = major == 1 ? load_u16(field) : load_u32(field);
    const char *header = (const char *)file_at(shard->file, start, length);
    parse(&(Text){header, header + length, shard->name}, shard);
    shard->kind = ".npy array";
    shard->offset = start + length;
}

/* split.c: see split.h. The class of an ASCII character is looked up by its byte, that of any other in a table
 * of two bits for each of the 1,114,112 code points, which split_open unpacks from unicode_classes.c. */
#include "split.h"

#include "../base/utf8.h"
#include "unicode_classes.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { CODE_POINTS = 0x110000, A_WORD = 32 /* classes in a word of the table */ };

// 2 bits for each code point take 272 KiB. Most characters are ASCII, for which 128 bytes are enough.
static uint64_t classes[CODE_POINTS / A_WORD];
static unsigned char class_of_byte[128];

/* Two bits of the table. */
static CharacterClass class_of(uint32_t c) { return (CharacterClass)(classes[c / A_WORD] >> 2 * (c % A_WORD) & 3); }

void split_open(void) {
    if (class_of('a') == CLASS_LETTER) return; // it was done
    // Each entry begins a range of one class, which ends where the next entry begins.
    for (int i = 0; i < unicode_class_change_count; i++) {
        uint32_t class = unicode_class_changes[i] & 3, first = unicode_class_changes[i] >> 2;
        uint32_t end = i + 1 < unicode_class_change_count ? unicode_class_changes[i + 1] >> 2 : CODE_POINTS;
        // CLASS_OTHER is 0, which the table holds already.
        for (uint32_t c = first; class != CLASS_OTHER && c < end; c++)
            classes[c / A_WORD] |= (uint64_t) class << 2 * (c % A_WORD);
    }
    for (uint32_t c = 0; c < 128; c++) class_of_byte[c] = (unsigned char)class_of(c);
}

/* The class of the character that begins at s, of which left >= 1 bytes are there, and its length. */
static CharacterClass class_beyond_ascii(const unsigned char *s, size_t left, size_t *length) {
    static const unsigned char lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    size_t bytes = utf8_length(s, left);
    // A byte that is not UTF-8 counts as a character of its own, so that the splitting always moves on.
    *length = bytes ? bytes : 1;
    if (bytes == 0) return CLASS_OTHER;
    // The first byte of a character of n bytes has lead_bits[n] of the code point; each further one has 6.
    uint32_t c = s[0] & lead_bits[bytes];
    for (size_t k = 1; k < bytes; k++) c = c << 6 | (s[k] & 0x3f);
    return class_of(c);
}

/* The class of the character at s, and how many bytes it has. */
static inline CharacterClass class_at(const unsigned char *s, size_t left, size_t *length) {
    if (*s >= 0x80) return class_beyond_ascii(s, left, length);
    *length = 1;
    return (CharacterClass)class_of_byte[*s];
}

/* The bytes of the characters of one class from `at` on. */
static size_t run_of(CharacterClass class, const unsigned char *text, size_t at, size_t left) {
    size_t length, from = at;
    while (at < left && class_at(text + at, left - at, &length) == class) at += length;
    return at - from;
}

/* The bytes of an ending 's 't 're 've 'm 'll 'd at text, or 0. */
static size_t ending(const unsigned char *text, size_t left) {
    if (text[0] != '\'' || left < 2) return 0;
    switch (text[1]) {
    case 's':
    case 't':
    case 'm':
    case 'd':
        return 2;
    case 'r':
    case 'v':
        return left > 2 && text[2] == 'e' ? 3 : 0;
    case 'l':
        return left > 2 && text[2] == 'l' ? 3 : 0;
    default:
        return 0;
    }
}

/* Spaces: all of them at the end of the text, else all but the last, but at least one. */
static size_t spaces(const unsigned char *text, size_t left) {
    size_t at = 0, last = 0, length;
    // `last` is where the last space begins. Of the three blanks in "a   b" two are a word; the third belongs to " b".
    while (at < left && class_at(text + at, left - at, &length) == CLASS_SPACE) last = at, at += length;
    return at == left || last == 0 ? at : last;
}

size_t split_word(const unsigned char *text, size_t left) {
    size_t length, at = ending(text, left);
    if (at) return at;
    // A blank belongs to what follows: " dog" is one word. Only the blank does so; a tab or a line break never does.
    if (text[0] == ' ' && left > 1) at = 1;
    CharacterClass class = class_at(text + at, left - at, &length);
    // With a blank before it, a space continues a run of spaces, which begins at text[0].
    if (class == CLASS_SPACE) return spaces(text, left);
    return at + run_of(class, text, at, left);
}

// ---------------------------------------------------------------------------------------------

/* The class of the character that ends before text[at], where another one begins. */
static CharacterClass class_before(const unsigned char *text, size_t at) {
    size_t length;
    // Characters have 1 to 4 bytes. The right length is the one from which on a character reaches exactly to `at`.
    for (size_t k = 1; k <= 4 && k <= at; k++) {
        CharacterClass class = class_at(text + at - k, k, &length);
        if (length == k && (k > 1 || text[at - 1] < 0x80)) return class;
    }
    return CLASS_OTHER; // a byte that is not UTF-8
}

/* A word surely ends between letters or numbers and another class, and between others and a space or a
 * number. (Between others and letters the word may continue: 's. Between spaces and others too.) */
static bool parts(CharacterClass before, CharacterClass after) {
    // Examples of a sure end: "dog|1", "dog|!", "dog| ", "1|dog", "!| " and "!|1". After a space there is none, since
    // the last blank of a run may belong to the next word.
    if (before == after || before == CLASS_SPACE) return false;
    return before != CLASS_OTHER || after != CLASS_LETTER;
}

size_t split_cut(const unsigned char *text, size_t bytes) {
    // From the end backwards, so that the part before the cut is as long as possible.
    for (size_t at = bytes; at-- > 1;) {
        size_t length, left = bytes - at;
        bool continues = (text[at] & 0xc0) == 0x80;
        // Not within a character, and not before one that the end of the text may have cut: its class is not known.
        if (continues || (text[at] >= 0x80 && utf8_length(text + at, left) == 0 && left < 4)) continue;
        CharacterClass after = class_at(text + at, left, &length);
        if (parts(class_before(text, at), after)) return at;
    }
    return 0;
}

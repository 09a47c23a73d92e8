/* alphabet.c: GPT-2's way to write bytes as printable text; see tokenizer_parts.h. A byte that is printable
 * Latin-1 is written as itself, the others as the characters from U+0100 on, in their order. */
#include "tokenizer_parts.h"

#include <string.h>

enum { CHARACTERS = 0x144 }; // 256 + the 68 bytes that are not printable

// The printable ones are 94 of ASCII, 12 from 161 and 82 from 174 on: 188 in all. Bytes 32 (the blank), 127 to 160 and
// 173 (the soft hyphen, which is invisible) are among the other 68.
/* The bytes that GPT-2 writes as themselves. */
static bool is_printable(int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; }

int alphabet_character(int byte) {
    if (is_printable(byte)) return byte;
    // The other bytes take the characters from U+0100 on, in their order: byte 0 is U+0100, the line break (10) U+010A,
    // the blank (32) U+0120. This is why a token's spelling begins with U+0120 where the token begins with a blank.
    int character = 0x100;
    for (int b = 0; b < byte; b++) character += !is_printable(b);
    return character;
}

/* The byte of each character, or -1; made at the first call. */
static const int16_t *bytes_of_characters(void) {
    static int16_t bytes[CHARACTERS];
    // A static array begins with zeros, and '!' stands for itself: this entry shows whether the table is filled.
    if (bytes['!'] == '!') return bytes;
    for (int c = 0; c < CHARACTERS; c++) bytes[c] = -1;
    for (int b = 0; b < 256; b++) bytes[alphabet_character(b)] = (int16_t)b;
    return bytes;
}

size_t alphabet_read(const char *text, unsigned char *bytes) {
    const int16_t *byte_of = bytes_of_characters();
    // The text is UTF-8: it comes from the JSON reader, which has checked that. So a second byte is always there.
    size_t count = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        int c = *at++;
        if (c >= 0x80) {
            if ((c & 0xe0) != 0xc0) return SIZE_MAX; // three bytes and more: beyond the alphabet
            c = (c & 0x1f) << 6 | (*at++ & 0x3f);
        }
        if (c >= CHARACTERS || byte_of[c] < 0) return SIZE_MAX;
        bytes[count++] = (unsigned char)byte_of[c];
    }
    return count;
}

void alphabet_write(const unsigned char *bytes, size_t count, char *text) {
    for (size_t i = 0; i < count; i++) {
        int c = alphabet_character(bytes[i]);
        // two bytes of UTF-8: 110xxxxx 10xxxxxx
        if (c >= 0x80) *text++ = (char)(0xC0 | c >> 6), c = 0x80 | (c & 0x3F);
        *text++ = (char)c;
    }
    *text = '\0';
}

/* utf8.c: see utf8.h. */
#include "utf8.h"

size_t utf8_length(const unsigned char *s, size_t left) {
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

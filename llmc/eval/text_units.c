/* text_units.c: how many bytes and words of text a stream of tokens is. Loss per token depends on the vocabulary;
 * loss per byte or per word can be compared between vocabularies. A word is a run of bytes that are not white
 * space. */
#include "text_units.h"

enum { PIECE = 4096 }; // tokens

/* White space of the C locale. */
static bool is_space(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

TextUnits text_units(const Stream *stream, const Tokenizer *tokenizer, uint64_t first,
                     uint64_t count) {
    TextUnits units = {0, 0};
    int32_t ids[PIECE], end_of_text = tokenizer_end_of_text(tokenizer);
    bool in_word = false;
    for (uint64_t at = 0; at < count; at += PIECE) {
        size_t n = count - at < PIECE ? (size_t)(count - at) : PIECE;
        stream_read(stream, first + at, n, ids);
        for (size_t i = 0; i < n; i++) {
            size_t bytes = 0;
            const unsigned char *text = tokenizer_bytes(tokenizer, ids[i], &bytes);
            if (ids[i] == end_of_text) bytes = 0, in_word = false;
            units.bytes += bytes;
            for (size_t k = 0; k < bytes; k++) {
                units.words += !in_word && !is_space(text[k]);
                in_word = !is_space(text[k]);
            }
        }
    }
    return units;
}

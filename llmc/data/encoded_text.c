/* encoded_text.c: see encoded_text.h. A text is cut into pieces at places where that changes no token; threads
 * encode a few pieces side by side, and their tokens are appended in order. */
#include "encoded_text.h"

#include "../base/activity.h"
#include "../base/error.h"
#include "../base/memory.h"
#include "../base/parallel.h"

#include <stdlib.h>

enum {
    PIECE = 1 << 20,
    TOGETHER = 32
}; // bytes of a piece, and pieces that are encoded side by side

/* Tokens as they are kept: numbers of `width` bytes. */
typedef struct {
    unsigned char *bytes;
    uint64_t count, capacity;
    int width;
} Tokens;

/* Appends ids in `width` bytes each, little-endian; capacity grows by half. */
static void append(Tokens *tokens, const int32_t *ids, size_t count) {
    if (tokens->count + count > tokens->capacity) {
        // Growth by a factor: the copies of a list of n tokens add up to O(n). With growth by a constant it would be
        // O(n^2).
        tokens->capacity = tokens->count + count + tokens->capacity / 2;
        tokens->bytes =
            memory_grow(tokens->bytes, tokens->capacity, (size_t)tokens->width, "tokens of text");
    }
    unsigned char *at = tokens->bytes + tokens->count * (uint64_t)tokens->width;
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < tokens->width; k++) *at++ = (unsigned char)((uint32_t)ids[i] >> 8 * k);
    tokens->count += count;
}

/* The bytes of the piece that `text` begins with: up to a cut that changes no token, or all. */
static size_t piece_of(const Tokenizer *tokenizer, const unsigned char *text, size_t bytes) {
    // Where no cut is found in the first MiB, twice as much is searched. Without any cut the rest is one piece.
    for (size_t most = PIECE; most < bytes; most *= 2) {
        size_t cut = tokenizer_cut(tokenizer, text, most, false);
        if (cut > 0) return cut;
    }
    return bytes;
}

/* Encodes pieces side by side: piece i is text[ends[i-1]] .. text[ends[i]]. */
static void encode_pieces(const Tokenizer *tokenizer, const unsigned char *text, const size_t *ends,
                          int count, TokenList *lists) {
    PARALLEL_EACH
    for (int i = 0; i < count; i++) {
        size_t begin = i > 0 ? ends[i - 1] : 0;
        // A list keeps its memory from one round to the next; only its count begins again at 0.
        lists[i].count = 0;
        tokenizer_encode(tokenizer, text + begin, ends[i] - begin, false, &lists[i]);
    }
}

/* Appends a document: the end of text before it, then its tokens. */
static void append_document(Tokens *tokens, const Tokenizer *tokenizer, const unsigned char *text,
                            size_t bytes) {
    // At most 32 pieces are held as lists at a time, however long the document is.
    TokenList lists[TOGETHER] = {{0}};
    // Documents follow each other in one stream. The end of text tells the model that a new one begins.
    int32_t end = tokenizer_end_of_text(tokenizer);
    if (end >= 0) append(tokens, &end, 1);
    while (bytes > 0) {
        size_t ends[TOGETHER], at = 0;
        int count = 0;
        // The cuts are found one after the other, since a piece begins where the one before it ends; then all threads
        // encode.
        while (count < TOGETHER && at < bytes)
            ends[count++] = at += piece_of(tokenizer, text + at, bytes - at);
        encode_pieces(tokenizer, text, ends, count, lists);
        // in the order of the text, whichever thread was ready first
        for (int i = 0; i < count; i++) append(tokens, lists[i].ids, lists[i].count);
        text += at, bytes -= at;
        activity_tick();
    }
    for (int i = 0; i < TOGETHER; i++) free(lists[i].ids);
}

/* An empty list for a tokenizer's ids: two bytes each where its vocabulary allows. */
static Tokens tokens_of(const Tokenizer *tokenizer) {
    if (!tokenizer_can_encode(tokenizer))
        fatal(EXIT_USAGE,
              "--tokenizer %s can turn tokens into text, but not text into tokens; use gpt2, or "
              "vocab.json "
              "and merges.txt",
              tokenizer_name(tokenizer));
    // Two bytes hold the ids 0 to 65,535, as GPT-2's 50,257 are. A larger vocabulary takes four.
    return (Tokens){.width = tokenizer_vocab(tokenizer) <= 65536 ? 2 : 4};
}

Stream *encode_text(const Stream *text, const Tokenizer *tokenizer) {
    Tokens tokens = tokens_of(tokenizer);
    for (int i = 0; i < stream_files(text); i++) {
        size_t bytes;
        const unsigned char *from = stream_text(text, i, &bytes);
        append_document(&tokens, tokenizer, from, bytes);
    }
    return stream_of_tokens(tokens.bytes, tokens.width, tokens.count, stream_name(text));
}

Stream *encode_bytes(const unsigned char *text, size_t bytes, const char *name,
                     const Tokenizer *tokenizer) {
    Tokens tokens = tokens_of(tokenizer);
    append_document(&tokens, tokenizer, text, bytes);
    return stream_of_tokens(tokens.bytes, tokens.width, tokens.count, name);
}

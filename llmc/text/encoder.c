/* encoder.c: texts into ids, word by word. Most words of a text have occurred before: a cache of the tokens of
 * short words (64 bytes a word, one place for each hash) answers without merging anything.
 *
 * A long word (a line of dashes, a genome) is encoded through a window. This rests on a property of byte-pair
 * encoding: a series of tokens is the encoding of its bytes exactly if each two neighbours are the encoding of
 * theirs. (Take the first merge across a boundary between tokens: all merges before it were inside tokens, and
 * those of its two tokens alone would have led to it just so.) So the window's tokens may follow those that are
 * there already if the two tokens on both sides of the boundary fit together. The last tokens of a window, which
 * its end may have changed, are taken back first; where nothing fits the window grows. */
#include "tokenizer_parts.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "split.h"

#include <stdlib.h>
#include <string.h>

// An entry has 31 + 1 + 4 * 7 + 4 = 64 bytes; 2^15 entries take 2 MiB. WINDOW is below ENTRY_WORD, so the text of the
// first windows is looked up in the cache, too.
enum { ENTRY_WORD = 31, ENTRY_IDS = 7, ENTRIES = 1 << 15, WINDOW = 28 };

typedef struct {
    unsigned char word[ENTRY_WORD]; // filled up with zeros
    unsigned char bytes;            // of the word; 0: no word
    int32_t ids[ENTRY_IDS];
    int32_t count;
} Entry;

struct Encoder {
    const Tokenizer *tokenizer;
    bool special;
    Entry *cache;    // (ENTRIES)
    TokenList fresh; // a window's tokens
    TokenList pair;  // those of two neighbours
};

// ---------------------------------------------------------------------------------------------
// Words

/* The place of a word in the cache, from its length and all its bytes. */
static size_t hash_of(const Entry *key) {
    // The first 32 bytes of an entry are the word and its length.
    uint64_t part[4];
    memcpy(part, key, sizeof part);
    uint64_t hash = part[0] * 0x9E3779B97F4A7C15u ^ part[1] * 0xC2B2AE3D27D4EB4Fu;
    hash ^= part[2] * 0x165667B19E3779F9u ^ part[3] * 0x27D4EB2F165667C5u;
    return hash * 0x9E3779B97F4A7C15u >> 49; // 15 bits
}

/* A word that fits a cache entry: from the cache, or merged and then put there. */
static void encode_short(Encoder *e, const unsigned char *word, size_t bytes, TokenList *out) {
    // The zeros behind the word are part of the comparison below.
    Entry key = {.bytes = (unsigned char)bytes};
    memcpy(key.word, word, bytes);
    Entry *entry = &e->cache[hash_of(&key)];
    token_list_reserve(out, BPE_SHORT);
    // One comparison checks text and length. An entry that was never used has length 0, which no word has.
    if (memcmp(entry, &key, ENTRY_WORD + 1) == 0) {
        // All 7 ids are copied, a fixed size that needs no loop; only `count` of them are kept.
        memcpy(out->ids + out->count, entry->ids, sizeof entry->ids);
        out->count += (size_t)entry->count;
        return;
    }
    size_t first = out->count;
    bpe_encode_short(e->tokenizer->bpe, word, bytes, out);
    key.count = (int32_t)(out->count - first);
    // A word of more tokens has no room in an entry, and is merged each time. Such words are rare.
    if (key.count > ENTRY_IDS) return;
    memcpy(key.ids, out->ids + first, (size_t)key.count * sizeof *key.ids);
    // Another word in this place is replaced: the words that are frequent come back soon.
    *entry = key;
}

/* A word of any length, without a window. */
static void encode_piece(Encoder *e, const unsigned char *word, size_t bytes, TokenList *out) {
    if (bytes <= ENTRY_WORD)
        encode_short(e, word, bytes, out);
    else if (bytes <= BPE_SHORT)
        bpe_encode_short(e->tokenizer->bpe, word, bytes, out);
    else
        bpe_encode_whole(e->tokenizer->bpe, word, bytes, out);
}

/* Whether tokens a and b, whose boundary is at `seam`, are the encoding of their bytes. */
static bool fit(Encoder *e, const unsigned char *seam, int32_t a, int32_t b) {
    size_t before = token_length(e->tokenizer, a), behind = token_length(e->tokenizer, b);
    // The bytes of both tokens lie next to each other in the text, so they are encoded from there.
    e->pair.count = 0;
    encode_piece(e, seam - before, before + behind, &e->pair);
    return e->pair.count == 2 && e->pair.ids[0] == a && e->pair.ids[1] == b;
}

/* Moves on by one window: out from id `first` on encodes word[0, done). Returns the new done; 0: no part of the
 * window fits. */
static size_t encode_window(Encoder *e, const unsigned char *word, size_t bytes, size_t done, size_t window,
                            size_t first, TokenList *out) {
    // `kept` ids remain in front, and word[0, at) is what they encode. `out` changes only when the window fits.
    size_t at = done, kept = out->count;
    for (size_t taken_back = 2;; taken_back *= 2) {
        // First two tokens are taken back, then 4 more, then 8 more: a longer overlap until both parts fit.
        for (size_t i = 0; i < taken_back && kept > first; i++) at -= token_length(e->tokenizer, out->ids[--kept]);
        // Each window moves on by at least half of its length, so the work for a byte has a bound.
        if (done - at > window / 2) return 0;
        size_t end = bytes - at < window ? bytes : at + window;
        e->fresh.count = 0;
        encode_piece(e, word + at, end - at, &e->fresh);
        // At the beginning of the word there is no token before the window, and it always fits.
        if (kept > first && !fit(e, word + at, out->ids[kept - 1], e->fresh.ids[0])) continue;
        out->count = kept;
        token_list_reserve(out, e->fresh.count);
        memcpy(out->ids + out->count, e->fresh.ids, e->fresh.count * sizeof *out->ids);
        out->count += e->fresh.count;
        return end;
    }
}

/* A long word, window by window; a window that finds no place to cut is doubled. */
static void encode_long(Encoder *e, const unsigned char *word, size_t bytes, TokenList *out) {
    size_t first = out->count, done = 0, window = WINDOW;
    while (done < bytes) {
        size_t end = encode_window(e, word, bytes, done, window, first, out);
        if (end)
            done = end;
        else
            window *= 2;
    }
}

// ---------------------------------------------------------------------------------------------
// Texts

/* Splits a text into words and encodes each. */
static void encode_words(Encoder *e, const unsigned char *text, size_t bytes, TokenList *out) {
    // The caller has taken out what is special, so all of this is plain text.
    for (size_t at = 0, length; at < bytes; at += length) {
        length = split_word(text + at, bytes - at);
        if (length <= ENTRY_WORD)
            encode_short(e, text + at, length, out);
        else
            encode_long(e, text + at, length, out);
    }
}

/* The tokenizer of bytes: each byte is its own id. */
static void add_bytes(const unsigned char *text, size_t bytes, TokenList *out) {
    token_list_reserve(out, bytes);
    for (size_t i = 0; i < bytes; i++) out->ids[out->count++] = text[i];
}

Encoder *encoder_new(const Tokenizer *tokenizer, bool special) {
    if (!tokenizer_can_encode(tokenizer))
        fatal(EXIT_USAGE, "%s: can only decode: it has no merges; give a tokenizer with merges, such as gpt2",
              tokenizer->name);
    Encoder *e = memory_new(1, sizeof *e, "an encoder");
    e->tokenizer = tokenizer;
    // A tokenizer without an end of text treats the marker as text.
    e->special = special && tokenizer->end_of_text >= 0;
    if (tokenizer->bpe) e->cache = memory_new(ENTRIES, sizeof *e->cache, "an encoder's cache");
    return e;
}

void encoder_free(Encoder *e) {
    if (!e) return;
    free(e->cache);
    free(e->fresh.ids);
    free(e->pair.ids);
    free(e);
}

/* The end of text as it is written out, or NULL. */
static const unsigned char *find_special(const unsigned char *text, size_t bytes) {
    // '<' is rare in texts, and memchr finds the next one fast.
    for (const unsigned char *at = text; (at = memchr(at, '<', bytes - (size_t)(at - text))); at++) {
        if (bytes - (size_t)(at - text) < END_OF_TEXT_BYTES) return NULL;
        if (memcmp(at, END_OF_TEXT, END_OF_TEXT_BYTES) == 0) return at;
    }
    return NULL;
}

void encoder_add(Encoder *e, const void *text, size_t bytes, TokenList *out) {
    const unsigned char *at = text, *end = at + bytes;
    if (e->tokenizer->is_bytes) {
        add_bytes(at, bytes, out);
        return;
    }
    // The text between two markers is encoded apart, as if it were a whole text: no word reaches across a marker.
    for (const unsigned char *special; e->special && (special = find_special(at, (size_t)(end - at)));) {
        encode_words(e, at, (size_t)(special - at), out);
        token_list_reserve(out, 1);
        out->ids[out->count++] = e->tokenizer->end_of_text;
        at = special + END_OF_TEXT_BYTES;
    }
    encode_words(e, at, (size_t)(end - at), out);
}

void tokenizer_encode(const Tokenizer *tokenizer, const void *text, size_t bytes, bool special, TokenList *out) {
    Encoder *e = encoder_new(tokenizer, special);
    encoder_add(e, text, bytes, out);
    encoder_free(e);
}

/* Whether text[at] may be within an end of text that begins before it. */
static bool in_special(const unsigned char *text, size_t bytes, size_t at) {
    // The text may end within the marker. Then only the part that is there is compared, as the rest may follow.
    for (size_t back = 1; back < END_OF_TEXT_BYTES && back <= at; back++) {
        size_t there = bytes - (at - back);
        size_t compared = there < END_OF_TEXT_BYTES ? there : END_OF_TEXT_BYTES;
        if (memcmp(text + at - back, END_OF_TEXT, compared) == 0) return true;
    }
    return false;
}

size_t tokenizer_cut(const Tokenizer *tokenizer, const void *text, size_t bytes, bool special) {
    // Each byte is a token, so every place is good.
    if (!tokenizer->bpe) return bytes;
    size_t at = split_cut(text, bytes);
    // A cut inside a marker would leave two parts, neither of which is the end of text.
    while (special && at > 0 && in_special(text, bytes, at)) at = split_cut(text, at);
    return at;
}

/* tokenizer.c: see tokenizer.h. Which tokenizer a name means, and ids back to text. */
#include "tokenizer_parts.h"

#include "../files/checksum.h"
#include "../base/error.h"
#include "../base/memory.h"
#include "printable.h"
#include "split.h"

#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------------
// The two that are built in

/* The ids of bytes in GPT-2's vocabulary: first the printable ones, then the others. */
static void gpt2_byte_ids(int32_t ids[256]) {
    // '!' is the first printable byte and has id 0, 'A' has 32. The other bytes follow from 188 on: the blank has 220.
    int32_t printable = 0, other = 188;
    for (int b = 0; b < 256; b++) ids[b] = alphabet_character(b) == b ? printable++ : other++;
}

/* Tokens 0 .. 255 are the bytes, in the order of their ids. */
static void set_byte_tokens(Tokenizer *t) {
    t->text = memory_new(256, 1, "a tokenizer");
    for (int b = 0; b < 256; b++) t->text[t->byte_ids[b]] = (unsigned char)b;
    for (uint32_t i = 0; i <= 256; i++) t->starts[i] = i;
}

/* The tokenizer of bytes: 256 tokens, no end of text. */
static void make_bytes(Tokenizer *t) {
    t->vocab = 256;
    t->end_of_text = -1;
    t->is_bytes = true;
    t->starts = memory_new(257, sizeof *t->starts, "a tokenizer");
    for (int b = 0; b < 256; b++) t->byte_ids[b] = b;
    set_byte_tokens(t);
}

/* GPT-2's: 256 bytes, then one token for each merge in rank order, then the end of text. */
static void make_gpt2(Tokenizer *t) {
    t->vocab = 256 + GPT2_MERGES + 1;
    t->end_of_text = t->vocab - 1;
    t->starts = memory_new((size_t)t->vocab + 1, sizeof *t->starts, "a tokenizer");
    t->merges = memory_new(GPT2_MERGES, sizeof *t->merges, "a tokenizer");
    t->merge_count = GPT2_MERGES;
    gpt2_byte_ids(t->byte_ids);
    set_byte_tokens(t);
    // each merge's text is that of its two parts, which come before it in the table
    uint32_t used = 256;
    for (int i = 0; i < GPT2_MERGES; i++) {
        const unsigned char *pair = gpt2_merges + 4 * i;
        // The first merge makes id 256, so a merge's parts always have smaller ids than its result.
        int32_t left = pair[0] | pair[1] << 8, right = pair[2] | pair[3] << 8;
        t->merges[i] = (Merge){left, right, 256 + i};
        size_t a = token_length(t, left), b = token_length(t, right);
        // The end of text comes after the last token, and so there is always room for it.
        t->text = memory_grow(t->text, used + a + b + END_OF_TEXT_BYTES, 1, "a tokenizer");
        memcpy(t->text + used, t->text + t->starts[left], a);
        memcpy(t->text + used + a, t->text + t->starts[right], b);
        used += (uint32_t)(a + b);
        t->starts[256 + i + 1] = used;
    }
    memcpy(t->text + used, END_OF_TEXT, END_OF_TEXT_BYTES);
    t->starts[t->vocab] = used + END_OF_TEXT_BYTES;
}

// ---------------------------------------------------------------------------------------------

Tokenizer *tokenizer_open(const char *name) {
    Tokenizer *t = memory_new(1, sizeof *t, "a tokenizer");
    t->name = memory_string(name);
    if (strcmp(name, "bytes") == 0)
        make_bytes(t);
    else if (strcmp(name, "gpt2") == 0)
        make_gpt2(t);
    else
        tokenizer_read(t, name);
    // The tokenizer of bytes, and one that only decodes, split no words.
    if (t->merges) {
        split_open();
        t->bpe = bpe_new(t->byte_ids, t->merges, t->merge_count);
    }
    return t;
}

void tokenizer_free(Tokenizer *t) {
    if (!t) return;
    bpe_free(t->bpe);
    free(t->merges);
    free(t->starts);
    free(t->text);
    free(t->name);
    free(t);
}

const char *tokenizer_name(const Tokenizer *t) { return t->name; }
int tokenizer_vocab(const Tokenizer *t) { return t->vocab; }
bool tokenizer_is_bytes(const Tokenizer *t) { return t->is_bytes; }
bool tokenizer_can_encode(const Tokenizer *t) { return t->is_bytes || t->bpe; }
int32_t tokenizer_end_of_text(const Tokenizer *t) { return t->end_of_text; }

int32_t tokenizer_start(const Tokenizer *t) {
    if (t->end_of_text >= 0) return t->end_of_text;
    return t->is_bytes ? '\n' : 0;
}

uint64_t tokenizer_identity(const Tokenizer *t) {
    // The ids of a text depend on the bytes' ids, the merges and the end of text. The texts of all other tokens follow
    // from these. Where there are no merges, the texts themselves are hashed.
    Checksum sum;
    checksum_begin(&sum);
    checksum_add(&sum, t->byte_ids, sizeof t->byte_ids);
    checksum_add(&sum, &t->vocab, sizeof t->vocab);
    checksum_add(&sum, &t->end_of_text, sizeof t->end_of_text);
    if (t->merges) checksum_add(&sum, t->merges, (size_t)t->merge_count * sizeof *t->merges);
    if (!tokenizer_can_encode(t)) checksum_add(&sum, t->text, t->starts[t->vocab]);
    return checksum_value(&sum);
}

const unsigned char *tokenizer_bytes(const Tokenizer *t, int32_t id, size_t *bytes) {
    // An id may come from a model whose vocabulary is padded: it stands for no text.
    bool known = id >= 0 && id < t->vocab;
    *bytes = known ? token_length(t, id) : 0;
    return t->text + (known ? t->starts[id] : 0);
}

char *tokenizer_decode(const Tokenizer *t, const int32_t *ids, size_t count) {
    // A character may be divided between two tokens. So first all bytes are joined, then made printable.
    size_t bytes = 0, length;
    for (size_t i = 0; i < count; i++) bytes += (tokenizer_bytes(t, ids[i], &length), length);
    unsigned char *all = memory_new(bytes + 1, 1, "text");
    bytes = 0;
    for (size_t i = 0; i < count; i++, bytes += length) {
        const unsigned char *token = tokenizer_bytes(t, ids[i], &length);
        if (length) memcpy(all + bytes, token, length);
    }
    char *text = printable(all, bytes);
    free(all);
    return text;
}

/* bpe.h: byte-pair encoding of one word (Sennrich et al. 2016, on bytes as in GPT-2): its bytes are tokens;
 * while two neighbours are in the list of merges, the pair that is earliest in the list (of equal ones the leftmost)
 * becomes one token.
 *
 * Time is linear in the length of a word, and memory too: bpe.c explains how. Not here: text into words (split.h). */
#ifndef LLMC_BPE_H
#define LLMC_BPE_H

#include "token_list.h"

typedef struct {
    int32_t left, right, id; // tokens left and right become id
} Merge;

typedef struct Bpe Bpe;

/* The merges in their order. byte_ids: (256) the token of each byte. Nothing is kept of the arguments. */
Bpe *bpe_new(const int32_t byte_ids[256], const Merge *merges, int count);
void bpe_free(Bpe *bpe);

/* Appends the tokens of a word of at most BPE_SHORT bytes. */
enum { BPE_SHORT = 64 };
void bpe_encode_short(const Bpe *bpe, const unsigned char *word, size_t bytes, TokenList *out);

/* The same for a word of any length. */
void bpe_encode_whole(const Bpe *bpe, const unsigned char *word, size_t bytes, TokenList *out);

#endif

/* tokenizer_parts.h: what a tokenizer is made of, for the files of this folder: encoder.c encodes, alphabet.c writes
 * bytes as printable text, tokenizer_read.c and tokenizer_json.c read tokenizers, tokenizer_files.c writes them, and
 * gpt2_merges.c has the one that is built in. */
#ifndef LLMC_TOKENIZER_PARTS_H
#define LLMC_TOKENIZER_PARTS_H

#include "bpe.h"
#include "tokenizer.h"

#define END_OF_TEXT "<|endoftext|>"
enum { END_OF_TEXT_BYTES = sizeof END_OF_TEXT - 1 };

struct Tokenizer {
    char *name;
    int vocab;
    int32_t end_of_text;   // its id, or -1
    unsigned char *text;   // the bytes of all tokens, one after the other
    uint32_t *starts;      // (vocab + 1): token i is text[starts[i]] .. text[starts[i + 1]]
    int32_t byte_ids[256]; // the token of each byte
    Merge *merges;         // (merge_count), in their order
    int merge_count;
    Bpe *bpe; // NULL: of bytes, or only for decoding
    bool is_bytes;
};

static inline size_t token_length(const Tokenizer *t, int32_t id) { return t->starts[id + 1] - t->starts[id]; }

/* GPT-2's alphabet (encoder.py) of 256 characters below U+0800, which writes bytes as printable text: the
 * character of a byte. */
int alphabet_character(int byte);

/* The bytes that `text`, in this alphabet, writes. Returns their number (at most strlen(text)), or SIZE_MAX where it
 * has another character. */
size_t alphabet_read(const char *text, unsigned char *bytes);

/* The bytes as characters of this alphabet, ended by 0; text: (2 * count + 1). */
void alphabet_write(const unsigned char *bytes, size_t count, char *text);

/* GPT-2's own merges: 50,000 pairs of ids, two little-endian uint16 each. */
enum { GPT2_MERGES = 50000 };
extern const unsigned char gpt2_merges[];

/* Reads a tokenizer's files at `path` (as tokenizer_open has it) into an empty tokenizer: all but the bpe. */
void tokenizer_read(Tokenizer *tokenizer, const char *path);

#endif

/* tokenizer.h: text as token ids, and back. Two kinds behind one interface:
 *
 *   bytes   the id of a byte is its value; 256 ids, no end of text
 *   BPE     byte-level byte-pair encoding with GPT-2's splitting of text into words (Radford et al. 2019);
 *           GPT-2's own table of 50,257 tokens is built into the program
 *
 * Any bytes can be encoded, and decoding gives exactly these bytes back: nothing is normalised, so line ends
 * (CRLF), byte order marks and NUL bytes stay. Of bytes that are not UTF-8 each counts as a character that is
 * neither letter nor number nor space. For UTF-8 the ids are those of tiktoken and of Hugging Face's
 * tokenizers. The end of text is a token of its own, which text never becomes unless `special` asks for it.
 *
 *   Tokenizer *t = tokenizer_open("gpt2");
 *   TokenList list = {0};
 *   tokenizer_encode(t, "Hello world", 11, false, &list);     // 15496 995
 *   size_t bytes;
 *   const unsigned char *text = tokenizer_bytes(t, list.ids[0], &bytes);     // "Hello", 5
 *   free(list.ids), tokenizer_free(t);
 *
 * Next: token_list.h (what encoding gives), split.h (text into words), bpe.h (words into tokens), vocabulary.h
 * (tokenizer files). */
#ifndef LLMC_TOKENIZER_H
#define LLMC_TOKENIZER_H

#include "../files/output.h"
#include "token_list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Tokenizer Tokenizer;

// ---- which tokenizer --------------------------------------------------------------------------

/* "bytes", "gpt2", or a path:
 *   a directory with tokenizer.json, or vocab.json and merges.txt, or encoder.json and vocab.bpe;
 *   one of these files (the other one is looked for beside it);
 *   gpt2_tokenizer.bin of llm.c, which can only decode.
 * A tokenizer.json must be byte-level BPE with GPT-2's splitting. Fatal (EXIT_INPUT) naming file and part
 * where it is anything else. */
Tokenizer *tokenizer_open(const char *name);

/* Whether a directory holds files that tokenizer_open takes. */
bool tokenizer_is_in(const char *directory);

void tokenizer_free(Tokenizer *tokenizer);

const char *tokenizer_name(const Tokenizer *tokenizer); // "bytes", "gpt2" or the path
int tokenizer_vocab(const Tokenizer *tokenizer);        // ids are 0 .. vocab-1
bool tokenizer_is_bytes(const Tokenizer *tokenizer);
bool tokenizer_can_encode(const Tokenizer *tokenizer); // false only for gpt2_tokenizer.bin

/* The id that begins each document, <|endoftext|>; -1 where there is none. */
int32_t tokenizer_end_of_text(const Tokenizer *tokenizer);

/* What an empty prompt starts with: the end of text, or for bytes a line break. */
int32_t tokenizer_start(const Tokenizer *tokenizer);

/* 64 bits that are equal where two tokenizers give every text the same ids, whatever files they came from. */
uint64_t tokenizer_identity(const Tokenizer *tokenizer);

// ---- text to ids ------------------------------------------------------------------------------

/* Appends the ids of a text. special: "<|endoftext|>" in the text becomes the end-of-text token; else it is text.
 * Fatal (EXIT_USAGE) where the tokenizer can only decode. */
void tokenizer_encode(const Tokenizer *tokenizer, const void *text, size_t bytes, bool special, TokenList *out);

/* For many texts: an encoder remembers the words it has encoded. Use one for each thread; they share the tokenizer. */
typedef struct Encoder Encoder;
Encoder *encoder_new(const Tokenizer *tokenizer, bool special);
void encoder_add(Encoder *encoder, const void *text, size_t bytes, TokenList *out);
void encoder_free(Encoder *encoder);

/* Where a long text may be cut: the largest position in it at which encoding both parts apart gives the ids of
 * the whole; 0 where none is found. `text` may continue after `bytes`. */
size_t tokenizer_cut(const Tokenizer *tokenizer, const void *text, size_t bytes, bool special);

// ---- ids to text ------------------------------------------------------------------------------

/* The bytes that an id represents; not UTF-8 of their own, and not ended by 0. None (*bytes = 0) for an id of no
 * token, such as those of a padded vocabulary. The end of text is "<|endoftext|>". */
const unsigned char *tokenizer_bytes(const Tokenizer *tokenizer, int32_t id, size_t *bytes);

/* Ids as printable UTF-8 (printable.h, all their bytes together); free() releases it. */
char *tokenizer_decode(const Tokenizer *tokenizer, const int32_t *ids, size_t count);

// ---- files of a checkpoint --------------------------------------------------------------------

/* The files from which AutoTokenizer.from_pretrained and tokenizer_open make this tokenizer again: for bytes
 * tokenizer.json, for BPE vocab.json and merges.txt; both with tokenizer_config.json. File i = 0, 1, ... of
 * them; NULL after the last. */
const char *tokenizer_file(const Tokenizer *tokenizer, int i);

/* Writes file i. seq_len: the longest text that the model takes. */
void tokenizer_write(const Tokenizer *tokenizer, int i, OutputFile *file, int seq_len);

#endif

/* encoded_text.h: text files as tokens of a vocabulary, for a run that is given text.
 *
 * They are encoded at every start, on every rank, and kept in memory (2 bytes a token). Nothing is written:
 * each machine can have its own disk, the folder can be read-only, and no file of tokens can differ from
 * the text that it was made of. A resumed run compares the identity of the tokens (stream_identity) with the
 * checkpoint's. It is better to encode large data once, with `train_gpt2 tokenize`. */
#ifndef LLMC_ENCODED_TEXT_H
#define LLMC_ENCODED_TEXT_H

#include "../text/tokenizer.h"
#include "stream.h"

/* The tokens of a stream of bytes: the end of text before each file, if the tokenizer has one, then its tokens.
 * All threads; the same tokens for any number of them. Fatal (EXIT_USAGE) where the tokenizer can only decode. */
Stream *encode_text(const Stream *text, const Tokenizer *tokenizer);

/* The tokens of one text in memory. */
Stream *encode_bytes(const unsigned char *text, size_t bytes, const char *name, const Tokenizer *tokenizer);

#endif

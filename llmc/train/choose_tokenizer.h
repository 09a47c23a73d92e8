/* choose_tokenizer.h: which tokenizer a model has. */
#ifndef LLMC_CHOOSE_TOKENIZER_H
#define LLMC_CHOOSE_TOKENIZER_H

#include "../text/tokenizer.h"

/* The tokenizer of a model: the one that is named; else the one whose files lie beside its weights (the directory
 * `weights`); else the one that its vocabulary size implies: 256 tokens are bytes, 50,257 (padded: up to 50,304)
 * are GPT-2's. NULL where none of these is known: then only token ids can be read and printed. named, weights: NULL
 * where there is none. Fatal (EXIT_USAGE) where the one that is named has more tokens than the model. */
Tokenizer *choose_tokenizer(const char *named, const char *weights, int vocab);

/* The tokenizer that a vocabulary size implies: "bytes", "gpt2" or NULL. */
const char *tokenizer_of_vocab(int vocab);

#endif

/* choose_tokenizer.h: which tokenizer a model has. */
#ifndef LLMC_CHOOSE_TOKENIZER_H
#define LLMC_CHOOSE_TOKENIZER_H

#include "../text/tokenizer.h"

/* The tokenizer of a model: the one that is named; else the one whose files lie beside its weights (the directory
 * `weights`); else what its vocabulary tells: 256 tokens are bytes, 50,257 (padded: up to 50,304) are GPT-2's. NULL
 * where nothing tells: then the model knows ids alone. named, weights: NULL where there is none. Fatal (EXIT_USAGE)
 * where the one that is named has more tokens than the model. */
Tokenizer *choose_tokenizer(const char *named, const char *weights, int vocab);

/* What a vocabulary tells: "bytes", "gpt2" or NULL. */
const char *tokenizer_of_vocab(int vocab);

#endif

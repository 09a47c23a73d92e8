/* text.h: tokens as people read them. */
#ifndef LLMC_TEXT_H
#define LLMC_TEXT_H

#include "../text/tokenizer.h"
#include "generate.h"

/* `count` tokens that the model generates after the token that begins a text, as printable UTF-8: bytes that are
 * not valid UTF-8 become U+FFFD, control characters but \n and \t too. tokenizer: NULL prints ids. free() releases
 * it. */
char *text_sample(GPT2 *model, const Tokenizer *tokenizer, int64_t count, const Sampling *sampling);

/* The token that begins a text (tokenizer_start), or 0 where there is none. tokenizer: may be NULL. */
int32_t text_start(const Tokenizer *tokenizer);

/* The token ids in `text`, divided by blanks or commas; free() releases them. Fatal (EXIT_USAGE), naming
 * `option`, where a word is not an id below vocab. */
int32_t *text_ids(const char *option, const char *text, int vocab, int *count);

#endif

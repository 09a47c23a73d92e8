/* text.h: tokens as people read them. */
#ifndef LLMC_TEXT_H
#define LLMC_TEXT_H

#include "generate.h"

/* `count` tokens that the model generates after a line break (bytes) or GPT-2's end of text (tokens), as
 * printable UTF-8: bytes that are no valid UTF-8 become U+FFFD, control characters but \n and \t too;
 * tokens are printed as their ids. free() releases it. */
char *text_sample(GPT2 *model, bool bytes, int64_t count, const Sampling *sampling);

/* The token that stands before a text: a line break (bytes), GPT-2's end of text, or 0 where there is none. */
int32_t text_start(bool bytes, int vocab);

/* The token ids in `text`, divided by blanks or commas; free() releases them. Fatal (EXIT_USAGE), naming
 * `option`, where a word is no id below vocab. */
int32_t *text_ids(const char *option, const char *text, int vocab, int *count);

/* `size` bytes as printable UTF-8, as above. free() releases it. */
char *text_printable(const unsigned char *bytes, size_t size);

#endif

/* split.h: text into the words in which GPT-2 looks for tokens. A word is the first of these that
 * fits where the last one ended (the pattern of GPT-2's encoder.py):
 *
 *   's 't 're 've 'm 'll 'd      an English ending
 *   ' '? letters                 \p{L}+
 *   ' '? numbers                 \p{N}+
 *   ' '? others                  [^\s\p{L}\p{N}]+
 *   spaces, as long as no other character follows them at once: the last space before a
 *   character is left to it, or a word of its own
 *
 * A byte that is not UTF-8 is one of the others. */
#ifndef LLMC_SPLIT_H
#define LLMC_SPLIT_H

#include <stddef.h>

/* Makes the tables; before anything else here. */
void split_open(void);

/* The bytes (1 or more) of the word that begins at text; left >= 1 bytes are there. */
size_t split_word(const unsigned char *text, size_t left);

/* The largest position 0 < p < bytes at which a word begins whatever comes before and after these bytes, so
 * that the text may be cut there; 0 where there is none. The bytes begin with a whole character. */
size_t split_cut(const unsigned char *text, size_t bytes);

#endif

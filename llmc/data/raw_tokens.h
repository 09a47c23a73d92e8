/* raw_tokens.h: files of raw uint16 tokens have no header that says what they are. These are the looks of other
 * things: wider or narrower integers, and zeros. */
#ifndef LLMC_RAW_TOKENS_H
#define LLMC_RAW_TOKENS_H

#include "../files/input.h"

/* Fatal (EXIT_INPUT), naming --data-type, where a file cannot well be uint16 tokens. Files of less than 64
 * bytes are taken as they are. */
void raw_tokens_check(File *file);

#endif

/* raw_tokens.h: files of raw uint16 tokens have no header that names their type. Here other types are recognised by
 * their values: wider or narrower integers, and zeros. */
#ifndef LLMC_RAW_TOKENS_H
#define LLMC_RAW_TOKENS_H

#include "../files/input.h"

/* Fatal (EXIT_INPUT), naming --data-type, where a file is unlikely to be uint16 tokens. Files of less than 64 bytes
 * are accepted. */
void raw_tokens_check(File *file);

#endif

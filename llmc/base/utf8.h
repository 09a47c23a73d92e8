/* utf8.h: what is UTF-8 and what is not. */
#ifndef LLMC_UTF8_H
#define LLMC_UTF8_H

#include <stddef.h>

/* The length (1 to 4) of the sequence that begins at `s`, of `left` >= 1 bytes; 0 when it is not
 * one: RFC 3629, without overlong forms, surrogates, and what lies beyond U+10FFFF. */
size_t utf8_length(const unsigned char *s, size_t left);

#endif

/* builtin_text.h: a text that is always there: this project's own source and docs (README.md, the
 * program, llmc/), put into the program at build time. */
#ifndef LLMC_BUILTIN_TEXT_H
#define LLMC_BUILTIN_TEXT_H

#include <stddef.h>

/* The text's first byte, and its length. */
const unsigned char *builtin_text(size_t *bytes);

#endif

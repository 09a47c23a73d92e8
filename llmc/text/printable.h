/* printable.h: bytes that a model has generated, as text that a terminal can show: bytes that are not UTF-8 become
 * U+FFFD, the replacement character, and so do control characters but line break and tab. */
#ifndef LLMC_PRINTABLE_H
#define LLMC_PRINTABLE_H

#include <stddef.h>
#include <stdio.h>

/* All of them at once; free() releases the text. */
char *printable(const unsigned char *bytes, size_t size);

/* Bytes that come in pieces; {0} at the beginning. Characters are printed as soon as they are whole. */
typedef struct {
    unsigned char held[4]; // the beginning of a character
    size_t count;
} PrintableStream;

void printable_add(PrintableStream *stream, const unsigned char *bytes, size_t size, FILE *out);
void printable_end(PrintableStream *stream, FILE *out); // nothing more comes

#endif

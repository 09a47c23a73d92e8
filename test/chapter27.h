/* chapter27.h: the numbers of chapter 27 beside the program's. The tests of chapter27_*.c assert them; with
 * `test_gpt2_double --chapter27` (make chapter27) the same tests print them, so that what is asserted and what
 * is shown is one value. Next: chapter27_adamw.c. */
#ifndef CHAPTER27_H
#define CHAPTER27_H

#include <stdbool.h>

extern bool chapter27_shows; // --chapter27

/* Prints one line: what the number is, the chapter's number as it stands there ("-" where it names none),
 * and ours, which `format` (one double) prints. */
void chapter27_show(const char *what, const char *chapter, const char *format, double ours);

#define SHOW(what, chapter, format, ours) chapter27_show(what, chapter, format, (double)(ours))

#endif

/* foreign_options.h: the options that people know from other programs. llm.c's short ones (-i, -l, ...) are
 * translated to the options with the same meaning here. Names of nanoGPT, PyTorch and Hugging Face scripts are
 * refused with a hint. Not here: this program's own options (option.h). */
#ifndef LLMC_FOREIGN_OPTIONS_H
#define LLMC_FOREIGN_OPTIONS_H

#include "option.h"

enum { FOREIGN_WORDS = 8 }; // the most words that one short option becomes

/* Whether `word` is written as llm.c's options are: - and letters. -h counts only where `next` (or NULL) is a
 * number, since it also asks for help. */
bool foreign_is_short(const char *word, const char *next);

/* Reads argv[at] and the value after it as llm.c does, and writes the words with the same meaning here. They live
 * until the program ends. Returns their number: 0 where the value asks for what is always done. Fatal
 * (EXIT_USAGE) where llm.c's option has no counterpart, with the way to do it here; -1 where llm.c has no such
 * option. */
int foreign_translate(int argc, char **argv, int at, char *words[FOREIGN_WORDS]);

/* Prints once, in one line, what all translated options are here; nothing when there were none. */
void foreign_say(void);

/* Whether a word is the name of a Python file, such as nanoGPT's config/train_gpt2.py; and the hint to print then. */
bool foreign_is_python(const char *word);
extern const char foreign_python_hint[];

/* What another program's option, the first of `count` words, is in this table, as a phrase for a message; and what
 * those after it are, so that one message is enough for a whole command line. NULL: it is unknown. */
const char *foreign_hint(const OptionTable *table, int count, char **words);

#endif

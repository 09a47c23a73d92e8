/* option_parse.h: reads a command line by a table of options (option.h), for train and for every
 * other command alike: what a word means, how a value is read, and the message for a wrong one. */
#ifndef LLMC_OPTION_PARSE_H
#define LLMC_OPTION_PARSE_H

#include "option.h"

/* The options of a command and their values. */
typedef struct {
    const OptionTable *table;
    void *fields;        // the command's struct of values
    uint64_t given;      // which the user set: bit i for row i
    StringList operands; // words that are not options, in their order
} OptionValues;

/* Reads the words after argv[0]; strings are not copied. Handles --help (prints, exits 0). Any error is fatal
 * (EXIT_USAGE). */
void option_parse(OptionValues *values, int argc, char **argv);

/* Gives the options that were not given their defaults, of the family gpt2 or tiny. */
void option_fill_in(OptionValues *values, bool gpt2);

/* Reads text into the option's field, or refuses it. */
void option_set(void *fields, const Option *option, const char *text);

/* The row of an option that is there. */
int option_index(const OptionTable *table, const char *name);

bool option_in_range(const OptionRange *range, double value);

/* The text of --help; no line is longer than 100 columns. */
void option_help(const OptionTable *table, FILE *out);

#endif

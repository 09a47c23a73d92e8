/* option.h: what an option of the command line is, and the table of train's; option_parse.c
 * (parsing), option_help.c (--help) and settings.c (values as text) all read it. */
#ifndef LLMC_OPTION_H
#define LLMC_OPTION_H

#include "settings.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>

/* How a value is read and what type its field in Settings has. */
typedef enum {
    OPTION_INTEGER,   // int64_t
    OPTION_SEED,      // uint64_t, all of it
    OPTION_REAL,      // double
    OPTION_SWITCH,    // bool; --name and --no-name
    OPTION_STRING,    // const char *
    OPTION_LIST,      // StringList: repeats add up
    OPTION_CHOICE,    // int, of an enum: one of range.choices
    OPTION_NONFINITE, // int64_t: stop (0) or skip:K
} OptionType;

/* The values an integer or real may take. A field outside this range means "not given". */
typedef struct {
    double low, high; // whole numbers up to 2^53 are exact
    bool above;       // low itself is out
    bool below;       // high itself is out
    bool or_zero;     // 0 is in, although low is above it
    const char *choices; // of OPTION_CHOICE: the words, in the order of the enum, divided by blanks; of a string: a
                         // phrase for what it takes, or NULL
} OptionRange;

// Common ranges.
// clang-format off
#define COUNT        {1, INT_MAX, false, false, false, NULL} // of things that a C int numbers
#define COUNT_OR_0   {0, INT_MAX, false, false, false, NULL}
#define LARGE        {1, 1e15, false, false, false, NULL}    // of tokens and steps
#define INTERVAL     {0, 1e15, false, false, false, NULL}    // in steps; 0 is off
#define THREADS      {1, 4096, false, false, false, NULL}
#define POSITIVE     {0, INFINITY, true, true, false, NULL}
#define NOT_NEGATIVE {0, INFINITY, false, true, false, NULL}
#define TIMEOUT      {1, 1e6, false, false, true, NULL}      // in seconds; 0: none
#define FRACTION     {0, 1, false, true, false, NULL}
#define NO_RANGE     {0, 0, false, false, false, NULL}       // not a number
#define CHOICES(words) {0, 0, false, false, false, words}
// clang-format on

// Help that commands share.
#define HELP_MODEL                                                                                 \
    "a checkpoint, the directory of a run (its newest checkpoint), a Hugging Face directory, or "  \
    "an llm.c .bin file"
#define HELP_TOKENIZER                                                                             \
    "bytes, gpt2, or tokenizer files or their directory; else the model's own, or the one that "    \
    "has its vocabulary size"
#define DATA_TYPES "auto uint8 uint16 int32 uint32 int64" // as DataType of data/shard.h has them
#define HELP_DATA_TYPE                                                                             \
    "type of each token in files without a header, whatever they look like; auto: uint16 in .bin " \
    "files, bytes in text"
#define HELP_THREADS                                                                               \
    "CPU threads of a rank, instead of OMP_NUM_THREADS or its share of the cores; does not change "  \
    "the result"

typedef struct {
    const char *name, *metavar; // metavar: NULL for a switch
    const char *section;        // its title in --help
    OptionType type;
    size_t field;            // its offset in Settings
    OptionRange range;       // of OPTION_INTEGER, OPTION_REAL and skip:K
    const char *tiny, *gpt2; // defaults of both families, as a user would write them; NULL: not set
    const char *help;
} Option;

/* The options of one command, and the text around them in --help. */
typedef struct {
    const Option *rows; // (count), at most 64
    int count;
    const char *operands;     // the name of words without --, such as "PATH..."; NULL: there are none
    const char *usage, *more; // before and after the options
    bool short_options;       // llm.c's are understood (foreign_options.h)
    const char *file_option;  // which option a file's name without one was probably meant for, or NULL
} OptionTable;

extern const OptionTable train_options;
extern const Option option_table[]; // its rows
extern const int option_count;

/* A choice's word by its number: text, or NULL beyond the last. */
enum { OPTION_WORD_CHARS = 32 };
const char *option_choice(char text[OPTION_WORD_CHARS], const OptionRange *range, int number);

/* "from 1 to 8" or "above 0", and what a value of the option must be, such as "a whole number from
 * 1 to 8". Both return text or a constant. */
enum { OPTION_TEXT_CHARS = 100 };
const char *option_range(char text[OPTION_TEXT_CHARS], const OptionRange *range);
const char *option_kind(char text[OPTION_TEXT_CHARS], const Option *option);

#endif

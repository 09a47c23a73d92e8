/* option_parse.c: see option_parse.h. Words are matched with rows of the table, values are read by the
 * row's type, and an option that was not given is filled in from the row's default by the same readers. */
#include "option_parse.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../base/edit_distance.h"
#include "../base/number.h"
#include "foreign_options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---------------------------------------------------------------------------------------------
// Values

/* `above` and `below` leave out the ends; `or_zero` adds 0, which switches something off. */
bool option_in_range(const OptionRange *range, double x) {
    if (range->or_zero && x == 0) return true;
    return (range->above ? x > range->low : x >= range->low) &&
           (range->below ? x < range->high : x <= range->high);
}

/* Ends the program: `text` is not what the option takes. */
static _Noreturn void refuse(const Option *option, const char *text, const char *why) {
    char kind[OPTION_TEXT_CHARS];
    fatal(EXIT_USAGE, "--%s '%.80s' %s; it takes %s%s%s", option->name, text, why,
          option_kind(kind, option), option->tiny ? ", such as " : "",
          option->tiny ? option->tiny : "");
}

/* Ends the program unless a number was read well. */
static void require(const Option *option, const char *text, NumberResult result) {
    switch (result) {
    case NUMBER_OK:
        return;
    case NUMBER_MALFORMED:
        refuse(option, text, *text ? "is not a number" : "is empty");
    case NUMBER_FRACTION:
        refuse(option, text, "is not a whole number");
    case NUMBER_RANGE:
        refuse(option, text, "is out of range");
    }
}

/* A whole number in the option's range. text: what the user wrote; number: the part that is a number. */
static int64_t read_integer(const Option *option, const char *text, const char *number) {
    int64_t value = 0;
    NumberResult result = number_read_i64(number, &value);
    if (result == NUMBER_OK && !option_in_range(&option->range, (double)value))
        result = NUMBER_RANGE;
    require(option, text, result);
    return value;
}

/* A real number in the option's range. */
static double read_real(const Option *option, const char *text) {
    double value = 0;
    NumberResult result = number_read_real(text, &value);
    if (result == NUMBER_OK && !option_in_range(&option->range, value)) result = NUMBER_RANGE;
    require(option, text, result);
    return value;
}

/* Any unsigned number of 64 bits. */
static uint64_t read_seed(const Option *option, const char *text) {
    uint64_t value = 0;
    require(option, text, number_read_u64(text, &value));
    return value;
}

/* The index of one of the option's words. */
static int read_choice(const Option *option, const char *text) {
    char word[OPTION_WORD_CHARS];
    for (int i = 0; option_choice(word, &option->range, i); i++)
        if (strcmp(text, word) == 0) return i;
    refuse(option, text, *text ? "is unknown" : "is empty");
}

/* stop, or skip:K. */
static int64_t read_nonfinite(const Option *option, const char *text) {
    // 0 updates in a row may be skipped.
    if (strcmp(text, "stop") == 0) return 0;
    if (strncmp(text, "skip:", 5) != 0) refuse(option, text, "is neither stop nor skip:K");
    return read_integer(option, text, text + 5);
}

/* Any text but an empty one. */
static const char *read_string(const Option *option, const char *text) {
    if (!*text) refuse(option, text, "is empty");
    return text;
}

/* Adds an item to a list option: repeats add up. */
static void append(StringList *list, const char *text) {
    list->items =
        memory_grow(list->items, (size_t)list->count + 1, sizeof *list->items, "an option");
    list->items[list->count++] = text;
}

void option_set(void *fields, const Option *option, const char *text) {
    void *field = (char *)fields + option->field;
    switch (option->type) {
    case OPTION_INTEGER:
        *(int64_t *)field = read_integer(option, text, text);
        break;
    case OPTION_SEED:
        *(uint64_t *)field = read_seed(option, text);
        break;
    case OPTION_REAL:
        *(double *)field = read_real(option, text);
        break;
    case OPTION_SWITCH:
        *(bool *)field = strcmp(text, "true") == 0;
        break;
    case OPTION_STRING:
        *(const char **)field = read_string(option, text);
        break;
    case OPTION_LIST:
        append(field, read_string(option, text));
        break;
    case OPTION_CHOICE:
        *(int *)field = read_choice(option, text);
        break;
    case OPTION_NONFINITE:
        *(int64_t *)field = read_nonfinite(option, text);
        break;
    }
}

// ---------------------------------------------------------------------------------------------
// Names

/* The row with exactly this name. */
static const Option *find(const OptionTable *table, const char *name, size_t length) {
    for (int i = 0; i < table->count; i++)
        if (strncmp(table->rows[i].name, name, length) == 0 && !table->rows[i].name[length])
            return &table->rows[i];
    return NULL;
}

int option_index(const OptionTable *table, const char *name) {
    return (int)(find(table, name, strlen(name)) - table->rows);
}

/* The option that was probably meant: one that begins with the name, else the nearest by spelling, else
 * one that the name begins or ends with (batch_size: batch, sample-tokens: tokens). NULL when none is near. */
static const Option *nearest(const OptionTable *table, const char *name) {
    const Option *best = NULL;
    int limit = slip_distance(name);
    size_t length = strlen(name);
    if (length == 0) return NULL;
    for (int i = 0; i < table->count; i++) {
        const char *option = table->rows[i].name;
        // Distance 0 for a beginning (--temp: temperature), else the number of wrong letters (--bach: batch).
        size_t whole = strlen(option);
        int d = strncmp(option, name, length) == 0 ? 0 : edit_distance(name, option);
        bool begins = whole < length && strncmp(option, name, whole) == 0 && strchr("-_", name[whole]);
        bool ends = whole < length && strcmp(option, name + length - whole) == 0 &&
                    strchr("-_", name[length - whole - 1]);
        if (begins || ends) d = d < limit ? d : limit;
        // Of equally near names the first in the table is taken.
        if (best ? d < limit : d <= limit) best = &table->rows[i], limit = d;
    }
    return best;
}

/* Ends the program: there is no such option. A name of a similar program, or the nearest one here, is the hint. */
static _Noreturn void refuse_name(const OptionTable *table, int count, char **words) {
    const char *word = words[0], *hint = foreign_hint(table, count, words);
    char name[64]; // no option's name is as long
    snprintf(name, sizeof name, "%s", word + strspn(word, "-"));
    name[strcspn(name, "=")] = '\0';
    if (hint) fatal(EXIT_USAGE, "unknown option %.80s; %s (--help lists all options)", word, hint);
    const Option *option = nearest(table, name);
    if (!option && strncmp(name, "no-", 3) == 0) option = nearest(table, name + 3);
    if (!option) fatal(EXIT_USAGE, "unknown option %.80s; --help lists all options", word);
    fatal(EXIT_USAGE, "unknown option %.80s; did you mean --%s? (--help lists all options)", word,
          option->name);
}

// ---------------------------------------------------------------------------------------------
// The command line

/* --name, --no-name or --name=value into the option it names. */
typedef struct {
    const Option *option;
    const char *value; // after '=', or NULL
    bool negated;
} Word;

/* Ends the program: a word does not belong to an option. It may be the name of a file whose option was left out, or
 * one of the names that the shell made of a glob. */
static _Noreturn void refuse_word(const OptionTable *table, const char *text, const char *before) {
    char what[240];
    bool is_there = table->file_option && access(text, F_OK) == 0;
    snprintf(what, sizeof what, "'%.80s'%s%.80s does not belong to an option", text, before ? " after " : "",
             before ? before : "");
    if (foreign_is_python(text)) fatal(EXIT_USAGE, "%s; %s", what, foreign_python_hint);
    if (is_there && before && access(before, F_OK) == 0)
        fatal(EXIT_USAGE, "%s; quote a glob, so that the shell leaves it to --%s", what, table->file_option);
    if (is_there) fatal(EXIT_USAGE, "%s; did you mean --%s %.80s?", what, table->file_option, text);
    fatal(EXIT_USAGE, "%s; options are --name value (--help lists all)", what);
}

/* Divides the first of `count` words: --name=value, --name or --no-name. before: the word before it, or NULL. */
static Word parse_word(const OptionTable *table, int count, char **words, const char *before) {
    const char *text = words[0];
    if (text[0] != '-' || !text[1] || strcmp(text, "--") == 0) refuse_word(table, text, before);
    // A single dash: llm.c's short options were translated before, where the command takes them.
    if (text[1] != '-') refuse_name(table, count, words);
    const char *name = text + 2;
    size_t length = strcspn(name, "=");
    Word word = {.option = find(table, name, length),
                 .value = name[length] ? name + length + 1 : NULL};
    if (!word.option && length > 3 && strncmp(name, "no-", 3) == 0) {
        word.option = find(table, name + 3, length - 3);
        word.negated = true;
        // only a switch has a negation: --no-lr is an unknown name
        if (word.option && word.option->type != OPTION_SWITCH) word.option = NULL;
    }
    if (!word.option) refuse_name(table, count, words);
    if (word.option->type == OPTION_SWITCH && word.value)
        fatal(EXIT_USAGE, "%.80s: a switch takes no value; write --%s or --no-%s", text,
              word.option->name, word.option->name);
    return word;
}

/* Reads one option at argv[*i] and its value, and moves *i to the last word used. */
static void parse_option(OptionValues *values, int argc, char **argv, int *i) {
    char kind[OPTION_TEXT_CHARS];
    Word word = parse_word(values->table, argc - *i, argv + *i, *i > 1 ? argv[*i - 1] : NULL);
    const Option *option = word.option;
    if (option->type == OPTION_SWITCH) {
        word.value = word.negated ? "false" : "true";
    } else if (!word.value) {
        // The next word may be a negative number: --lr -1 is refused as out of range, not because a value is missing.
        if (*i + 1 == argc || strncmp(argv[*i + 1], "--", 2) == 0)
            fatal(EXIT_USAGE, "--%s has no value; it takes %s: --%s %s", option->name,
                  option_kind(kind, option), option->name, option->metavar);
        word.value = argv[++*i];
    }
    option_set(values->fields, option, word.value);
    // --resume keeps what was given at this start and takes the rest from the checkpoint.
    values->given |= 1ULL << (option - values->table->rows);
}

/* Translates an option of llm.c at argv[*i] with its value; false: it is not one. */
static bool parse_short(OptionValues *values, int argc, char **argv, int *i) {
    char *words[FOREIGN_WORDS + 1] = {argv[0]};
    int count = foreign_translate(argc, argv, *i, words + 1);
    for (int word = 1; word <= count; word++) parse_option(values, count + 1, words, &word);
    *i += count >= 0;
    return count >= 0;
}

void option_parse(OptionValues *values, int argc, char **argv) {
    const OptionTable *table = values->table;
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (table->short_options && foreign_is_short(argv[i], next) && parse_short(values, argc, argv, &i)) continue;
        // Help is printed wherever it stands; errors in the words before it come first.
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            option_help(table, stdout);
            exit(EXIT_DONE);
        }
        if (table->operands && (argv[i][0] != '-' || !argv[i][1])) // - is standard input
            append(&values->operands, argv[i]);
        else
            parse_option(values, argc, argv, &i);
    }
    foreign_say();
}

void option_fill_in(OptionValues *values, bool gpt2) {
    for (int i = 0; i < values->table->count; i++) {
        const Option *option = &values->table->rows[i];
        const char *value = gpt2 ? option->gpt2 : option->tiny;
        if (value && !(values->given >> i & 1)) option_set(values->fields, option, value);
    }
}

/* options.c: see options.h. Words are matched with rows of the table, values are read by the row's
 * type, and what was not given is filled in from the row's defaults by the very same readers. */
#include "options.h"

#include "error.h"
#include "memory.h"
#include "nearest.h"
#include "number.h"
#include "option_table.h"

#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------------
// Values

static void *field_of(Settings *settings, const Option *option) {
    return (char *)settings + option->field;
}

static bool in_range(const OptionRange *range, double x) {
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

static int64_t read_integer(const Option *option, const char *text, const char *number) {
    int64_t value = 0;
    NumberResult result = number_read_i64(number, &value);
    if (result == NUMBER_OK && !in_range(&option->range, (double)value)) result = NUMBER_RANGE;
    require(option, text, result);
    return value;
}

static double read_real(const Option *option, const char *text) {
    double value = 0;
    NumberResult result = number_read_real(text, &value);
    if (result == NUMBER_OK && !in_range(&option->range, value)) result = NUMBER_RANGE;
    require(option, text, result);
    return value;
}

static uint64_t read_seed(const Option *option, const char *text) {
    uint64_t value = 0;
    require(option, text, number_read_u64(text, &value));
    return value;
}

static ScheduleKind read_schedule(const Option *option, const char *text) {
    for (int kind = 0; kind < 4; kind++)
        if (strcmp(text, option_schedules[kind]) == 0) return (ScheduleKind)kind;
    refuse(option, text, "is not a schedule");
}

static int64_t read_nonfinite(const Option *option, const char *text) {
    if (strcmp(text, "stop") == 0) return 0;
    if (strncmp(text, "skip:", 5) != 0) refuse(option, text, "is neither stop nor skip:K");
    return read_integer(option, text, text + 5);
}

static const char *read_string(const Option *option, const char *text) {
    if (!*text) refuse(option, text, "is empty");
    return text;
}

static void append(StringList *list, const char *text) {
    list->items =
        memory_grow(list->items, (size_t)list->count + 1, sizeof *list->items, "an option");
    list->items[list->count++] = text;
}

/* Reads text into the option's field, or refuses it. */
static void set_value(Settings *settings, const Option *option, const char *text) {
    void *field = field_of(settings, option);
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
    case OPTION_SCHEDULE:
        *(ScheduleKind *)field = read_schedule(option, text);
        break;
    case OPTION_NONFINITE:
        *(int64_t *)field = read_nonfinite(option, text);
        break;
    }
}

// ---------------------------------------------------------------------------------------------
// Names

static const Option *find(const char *name, size_t length) {
    for (int i = 0; i < option_count; i++)
        if (strncmp(option_table[i].name, name, length) == 0 && !option_table[i].name[length])
            return &option_table[i];
    return NULL;
}

/* The option that was probably meant: one that begins with the name, else the nearest by spelling, else
 * one that the name begins with (batch_size: batch). NULL when none is near. */
static const Option *nearest(const char *name) {
    const Option *best = NULL;
    int limit = slip_distance(name);
    size_t length = strlen(name);
    if (length == 0) return NULL;
    for (int i = 0; i < option_count; i++) {
        const char *option = option_table[i].name;
        size_t whole = strlen(option);
        int d = strncmp(option, name, length) == 0 ? 0 : edit_distance(name, option);
        if (whole < length && strncmp(option, name, whole) == 0 && strchr("-_", name[whole]))
            d = d < limit ? d : limit;
        if (best ? d < limit : d <= limit) best = &option_table[i], limit = d;
    }
    return best;
}

static _Noreturn void refuse_name(const char *word) {
    char name[64]; // no option's name is as long
    snprintf(name, sizeof name, "%s", word + strspn(word, "-"));
    name[strcspn(name, "=")] = '\0';
    const Option *option = nearest(name);
    if (!option && strncmp(name, "no-", 3) == 0) option = nearest(name + 3);
    if (!option) fatal(EXIT_USAGE, "unknown option %.80s; --help lists all options", word);
    fatal(EXIT_USAGE, "unknown option %.80s; did you mean --%s? (--help lists all options)", word,
          option->name);
}

// ---------------------------------------------------------------------------------------------
// The command line

/* --name, --no-name or --name=value into what it stands for. */
typedef struct {
    const Option *option;
    const char *value; // after '=', or NULL
    bool negated;
} Word;

static Word parse_word(const char *text, const char *before) {
    if (text[0] != '-' || !text[1] || strcmp(text, "--") == 0)
        fatal(EXIT_USAGE,
              "'%.80s'%s%s belongs to no option; options are --name value (--help lists all)", text,
              before ? " after " : "", before ? before : "");
    if (text[1] != '-') refuse_name(text);
    const char *name = text + 2;
    size_t length = strcspn(name, "=");
    Word word = {.option = find(name, length), .value = name[length] ? name + length + 1 : NULL};
    if (!word.option && length > 3 && strncmp(name, "no-", 3) == 0) {
        word.option = find(name + 3, length - 3);
        word.negated = true;
        if (word.option && word.option->type != OPTION_SWITCH) word.option = NULL;
    }
    if (!word.option) refuse_name(text);
    if (word.option->type == OPTION_SWITCH && word.value)
        fatal(EXIT_USAGE, "%.80s: a switch takes no value; write --%s or --no-%s", text,
              word.option->name, word.option->name);
    return word;
}

/* Reads one option at argv[*i] and its value, and moves *i to the last word used. */
static void parse_option(Settings *settings, int argc, char **argv, int *i) {
    char kind[OPTION_TEXT_CHARS];
    Word word = parse_word(argv[*i], *i > 1 ? argv[*i - 1] : NULL);
    const Option *option = word.option;
    if (option->type == OPTION_SWITCH) {
        word.value = word.negated ? "false" : "true";
    } else if (!word.value) {
        if (*i + 1 == argc || strncmp(argv[*i + 1], "--", 2) == 0)
            fatal(EXIT_USAGE, "--%s has no value; it takes %s: --%s %s", option->name,
                  option_kind(kind, option), option->name, option->metavar);
        word.value = argv[++*i];
    }
    set_value(settings, option, word.value);
    settings->given |= 1ULL << (option - option_table);
}

bool options_given(const Settings *settings, const char *name) {
    return settings->given >> (find(name, strlen(name)) - option_table) & 1;
}

/* x / 10 rounded to 15 digits, so that a tenth of 6e-4 is 6e-5 as a person writes it. */
static double tenth(double x) {
    char text[NUMBER_CHARS];
    snprintf(text, sizeof text, "%.15g", x / 10);
    return strtod(text, NULL);
}

static void fill_in(Settings *settings) {
    bool gpt2 = settings->model && strncmp(settings->model, "gpt2", 4) == 0;
    for (int i = 0; i < option_count; i++) {
        const char *value = gpt2 ? option_table[i].gpt2 : option_table[i].tiny;
        if (value && !(settings->given >> i & 1)) set_value(settings, &option_table[i], value);
    }
    if (options_given(settings, "lr") && !options_given(settings, "min-lr"))
        settings->min_lr = tenth(settings->lr);
    if (options_given(settings, "epochs") && !options_given(settings, "steps"))
        settings->steps = -1;
    if (!options_given(settings, "decay-steps")) settings->decay_steps = -1;
}

static void check_together(const Settings *s) {
    if (options_given(s, "epochs") && options_given(s, "steps"))
        fatal(EXIT_USAGE, "--epochs %g and --steps %lld both say when to stop; give one of them",
              s->epochs, (long long)s->steps);
    if (s->overwrite && s->resume && strcmp(s->resume, "never") != 0)
        fatal(EXIT_USAGE, "--overwrite and --resume %s contradict each other; give one of them",
              s->resume);
    if (s->min_lr > s->lr)
        fatal(EXIT_USAGE, "--min-lr %g is above --lr %g%s; it takes a number from 0 to --lr",
              s->min_lr, s->lr, options_given(s, "lr") ? "" : " (the default)");
}

Settings options_parse(int argc, char **argv) {
    Settings settings = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            options_help(stdout);
            exit(EXIT_DONE);
        }
        parse_option(&settings, argc, argv, &i);
    }
    fill_in(&settings);
    check_together(&settings);
    return settings;
}

// ---------------------------------------------------------------------------------------------
// Settings of an earlier start

/* Whether an option concerns one start of the program, not the run. */
static bool of_this_start(const char *name) {
    static const char *const names[] = {"out",   "overwrite", "resume",
                                        "force", "threads",   "rank-timeout"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

void options_adopt(Settings *settings, OptionRecord record, void *context) {
    for (int i = 0; i < option_count; i++) {
        const Option *option = &option_table[i];
        if (settings->given >> i & 1 || of_this_start(option->name)) continue;
        const char *text;
        for (int item = 0; (text = record(context, option->name, item)); item++) {
            set_value(settings, option, text);
            if (option->type != OPTION_LIST) break;
        }
    }
    if (options_given(settings, "steps")) settings->epochs = 0;
    if (settings->epochs > 0) settings->steps = -1;
    check_together(settings);
}

// ---------------------------------------------------------------------------------------------
// The way back

/* The option's value as text in buffer or elsewhere, or NULL when it is not set. */
enum { VALUE_CHARS = 64 };
static const char *value_of(char buffer[VALUE_CHARS], const Settings *settings,
                            const Option *option) {
    const void *field = (const char *)settings + option->field;
    int64_t integer = option->type == OPTION_INTEGER || option->type == OPTION_NONFINITE
                          ? *(const int64_t *)field
                          : 0;
    switch (option->type) {
    case OPTION_INTEGER:
        if (!in_range(&option->range, (double)integer)) return NULL;
        snprintf(buffer, VALUE_CHARS, "%lld", (long long)integer);
        return buffer;
    case OPTION_NONFINITE:
        snprintf(buffer, VALUE_CHARS, integer ? "skip:%lld" : "stop", (long long)integer);
        return buffer;
    case OPTION_SEED:
        snprintf(buffer, VALUE_CHARS, "%llu", (unsigned long long)*(const uint64_t *)field);
        return buffer;
    case OPTION_REAL:
        if (!in_range(&option->range, *(const double *)field)) return NULL;
        return number_write_real(buffer, *(const double *)field);
    case OPTION_SWITCH:
        return *(const bool *)field ? "true" : "false";
    case OPTION_SCHEDULE:
        return option_schedules[*(const ScheduleKind *)field];
    case OPTION_STRING:
        return *(const char *const *)field;
    case OPTION_LIST:
        break;
    }
    return NULL;
}

/* The list's items joined by ", ", to be freed; NULL when there are none. */
static char *joined(const StringList *list) {
    size_t size = 1, at = 0;
    for (int i = 0; i < list->count; i++)
        size = size_add(size, strlen(list->items[i]) + 2, "an option");
    char *text = list->count ? memory_new(size, 1, "an option") : NULL;
    for (int i = 0; i < list->count; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i ? ", " : "", list->items[i]);
    return text;
}

void options_each(const Settings *settings, OptionVisitor visit, void *context) {
    for (int i = 0; i < option_count; i++) {
        const Option *option = &option_table[i];
        char buffer[VALUE_CHARS];
        bool list = option->type == OPTION_LIST;
        char *all =
            list ? joined((const StringList *)((const char *)settings + option->field)) : NULL;
        bool quoted = list || option->type == OPTION_STRING || option->type == OPTION_SCHEDULE ||
                      option->type == OPTION_NONFINITE;
        visit(context, option->name, list ? all : value_of(buffer, settings, option), quoted,
              settings->given >> i & 1);
        free(all);
    }
}

/* settings.c: the settings of train as a whole: defaults, what follows from what was given, which options exclude each
 * other, and the way back from values to texts, which the log, checkpoints and --resume use. */
#include "settings.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../base/number.h"
#include "option_parse.h"

#include <stdlib.h>
#include <string.h>

/* `given` has a bit for each option, in the order of the table. */
bool settings_given(const Settings *settings, const char *name) {
    return settings->given >> option_index(&train_options, name) & 1;
}

// ---------------------------------------------------------------------------------------------
// The command line

/* x / 10 rounded to 15 digits, so that a tenth of 6e-4 is 6e-5 as a person writes it. */
static double tenth(double x) {
    char text[NUMBER_CHARS];
    snprintf(text, sizeof text, "%.15g", x / 10);
    return strtod(text, NULL);
}

/* Defaults that follow from other options. */
static void derive(Settings *settings) {
    if (settings_given(settings, "lr") && !settings_given(settings, "min-lr"))
        settings->min_lr = tenth(settings->lr);
    // -1: not known yet. The number of steps follows from the data, which are opened later.
    if (settings_given(settings, "epochs") && !settings_given(settings, "steps"))
        settings->steps = -1;
    if (!settings_given(settings, "decay-steps")) settings->decay_steps = -1;
}

/* Options that contradict each other. */
static void check_together(const Settings *s) {
    if (settings_given(s, "epochs") && settings_given(s, "steps"))
        fatal(EXIT_USAGE, "--epochs %g and --steps %lld both set the end of the run; give one of them",
              s->epochs, (long long)s->steps);
    if (s->overwrite && s->resume && strcmp(s->resume, "never") != 0)
        fatal(EXIT_USAGE, "--overwrite and --resume %s contradict each other; give one of them",
              s->resume);
    // Equal is allowed: the rate is then constant after the warm-up.
    if (s->min_lr > s->lr)
        fatal(EXIT_USAGE, "--min-lr %g is above --lr %g%s; it takes a number from 0 to --lr",
              s->min_lr, s->lr, settings_given(s, "lr") ? "" : " (the default)");
}

Settings options_parse(int argc, char **argv) {
    Settings settings = {0};
    OptionValues values = {.table = &train_options, .fields = &settings};
    option_parse(&values, argc, argv);
    // Names of the gpt2 family bring the course's defaults. Weights of that shape do so too, when they are read
    // (settings_set_family).
    option_fill_in(&values, settings.model && strncmp(settings.model, "gpt2", 4) == 0);
    settings.given = values.given;
    derive(&settings);
    check_together(&settings);
    return settings;
}

double options_hang_timeout(int argc, char **argv) {
    // A first, tolerant look before MPI starts, because starting may hang as well. options_parse judges later.
    static const char name[] = "--hang-timeout";
    const Option *option = &option_table[option_index(&train_options, name + 2)];
    double seconds, given;
    number_read_real(option->tiny, &seconds);
    for (int i = 1; i < argc; i++) {
        const char *text = NULL;
        if (strncmp(argv[i], name, sizeof name - 1) != 0) continue;
        if (argv[i][sizeof name - 1] == '=') text = argv[i] + sizeof name;
        if (argv[i][sizeof name - 1] == '\0' && i + 1 < argc) text = argv[++i];
        if (text && number_read_real(text, &given) == NUMBER_OK && option_in_range(&option->range, given))
            seconds = given;
    }
    return seconds;
}

void settings_set_family(Settings *settings, bool gpt2) {
    OptionValues values = {.table = &train_options, .fields = settings, .given = settings->given};
    option_fill_in(&values, gpt2);
    derive(settings);
    check_together(settings);
}

void settings_free(Settings *settings) {
    free(settings->data.items);
    free(settings->val.items);
    settings->data = settings->val = (StringList){NULL, 0};
}

void options_help(FILE *out) { option_help(&train_options, out); }

// ---------------------------------------------------------------------------------------------
// Settings of an earlier start

/* Whether an option concerns one start of the program, not the run. */
static bool of_this_start(const char *name) {
    static const char *const names[] = {"out",   "overwrite", "resume",
                                        "force", "threads",   "rank-timeout", "hang-timeout",
                                        "progress"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

void settings_adopt(Settings *settings, OptionRecord record, void *context) {
    for (int i = 0; i < option_count; i++) {
        const Option *option = &option_table[i];
        // What was given at this start wins; what concerns one start only is never taken over.
        if (settings->given >> i & 1 || of_this_start(option->name)) continue;
        const char *text;
        for (int item = 0; (text = record(context, option->name, item)); item++) {
            option_set(settings, option, text);
            if (option->type != OPTION_LIST) break;
        }
    }
    // --steps at a resume replaces --epochs of the earlier start, which otherwise decides again.
    if (settings_given(settings, "steps")) settings->epochs = 0;
    if (settings->epochs > 0) settings->steps = -1;
    check_together(settings);
}

// ---------------------------------------------------------------------------------------------
// The way back

enum { VALUE_CHARS = 64 };
/* An option's value as a text that the parser reads back; NULL where it is not set. */
static const char *value_of(char buffer[VALUE_CHARS], const Settings *settings,
                            const Option *option) {
    const void *field = (const char *)settings + option->field;
    int64_t integer = option->type == OPTION_INTEGER || option->type == OPTION_NONFINITE
                          ? *(const int64_t *)field
                          : 0;
    switch (option->type) {
    case OPTION_INTEGER:
        // -1 in settings that follow from others: not set, and so not written.
        if (!option_in_range(&option->range, (double)integer)) return NULL;
        snprintf(buffer, VALUE_CHARS, "%lld", (long long)integer);
        return buffer;
    case OPTION_NONFINITE:
        snprintf(buffer, VALUE_CHARS, integer ? "skip:%lld" : "stop", (long long)integer);
        return buffer;
    case OPTION_SEED:
        snprintf(buffer, VALUE_CHARS, "%llu", (unsigned long long)*(const uint64_t *)field);
        return buffer;
    case OPTION_REAL:
        if (!option_in_range(&option->range, *(const double *)field)) return NULL;
        return number_write_real(buffer, *(const double *)field);
    case OPTION_SWITCH:
        return *(const bool *)field ? "true" : "false";
    case OPTION_CHOICE:
        return option_choice(buffer, &option->range, *(const int *)field);
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

void settings_each(const Settings *settings, OptionVisitor visit, void *context) {
    for (int i = 0; i < option_count; i++) {
        const Option *option = &option_table[i];
        char buffer[VALUE_CHARS];
        bool list = option->type == OPTION_LIST;
        char *all =
            list ? joined((const StringList *)((const char *)settings + option->field)) : NULL;
        bool quoted = list || option->type == OPTION_STRING || option->type == OPTION_CHOICE ||
                      option->type == OPTION_NONFINITE;
        visit(context, option->name, list ? all : value_of(buffer, settings, option), quoted,
              settings->given >> i & 1);
        free(all);
    }
}

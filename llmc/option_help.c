/* option_help.c: the text of --help, written from the table. */
#include "option_table.h"

#include <string.h>

enum { WIDTH = 100, INDENT = 26 };

static const char *const usage = "Usage: train_gpt2 [--OPTION VALUE]...\n"
                                 "       mpirun -np R train_gpt2 [--OPTION VALUE]...\n"
                                 "       train_gpt2 plan [--OPTION VALUE]...\n"
                                 "\n"
                                 "Trains a GPT-2. Without options: a tiny one, on the program's "
                                 "own source, in about a minute. On R\n"
                                 "ranks the run is the same run, only faster. plan trains nothing; "
                                 "it prints what one update will\n"
                                 "see. --OPTION=VALUE works as well; of an option given twice the "
                                 "last counts. In numbers, k and M\n"
                                 "are 1,000 and 1,000,000.\n";

static const char *const titles[] = {"Model", "Data", "Batch", "Optimizer", "Output",
                                     "Plan"};

/* Prints the words of text after column *at, and breaks lines before WIDTH. */
static void print_words(FILE *out, const char *text, int *at) {
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (*at + 1 + length > WIDTH) {
            fprintf(out, "\n%*s", INDENT - 1, "");
            *at = INDENT - 1;
        }
        fprintf(out, " %.*s", length, text);
        *at += 1 + length;
        text += length;
        text += strspn(text, " ");
    }
}

/* "(above 0; default 1e-3, gpt2 6e-4)" */
static void print_facts(FILE *out, const Option *option, int *at) {
    char text[OPTION_TEXT_CHARS], facts[OPTION_TEXT_CHARS + 100];
    const char *range = "", *tiny = option->tiny, *gpt2 = option->gpt2;
    if (option->type == OPTION_INTEGER || option->type == OPTION_REAL)
        range = option_range(text, &option->range);
    else if (option->type == OPTION_SCHEDULE || option->type == OPTION_NONFINITE)
        range = option_kind(text, option);
    else if (option->type == OPTION_SEED)
        range = "from 0 to 2^64-1";
    if (!option->metavar) tiny = gpt2 = strcmp(tiny, "true") == 0 ? "on" : "off";
    bool two = tiny && strcmp(tiny, gpt2) != 0 && option->type != OPTION_STRING;
    if (!*range && !tiny) return;
    snprintf(facts, sizeof facts, "(%s%s%s%s%s%s)", range, *range && tiny ? "; " : "",
             tiny ? "default " : "", tiny ? tiny : "", two ? ", gpt2 " : "", two ? gpt2 : "");
    print_words(out, facts, at);
}

static void print_option(FILE *out, const Option *option) {
    int at = option->metavar ? fprintf(out, "  --%s %s", option->name, option->metavar)
                             : fprintf(out, "  --[no-]%s", option->name);
    if (at < INDENT - 1) at += fprintf(out, "%*s", INDENT - 1 - at, "");
    print_words(out, option->help, &at);
    print_facts(out, option, &at);
    fprintf(out, "\n");
}

void options_help(FILE *out) {
    fputs(usage, out);
    for (int i = 0; i < option_count; i++) {
        const Option *option = &option_table[i];
        if (i == 0 || option->section != option[-1].section)
            fprintf(out, "\n%s\n", titles[option->section]);
        print_option(out, option);
    }
    fprintf(out, "\n  -h, --help             "
                 " print this and exit\n"
                 "\nDefaults after \"gpt2\" are those of every --model whose name begins so.\n");
}

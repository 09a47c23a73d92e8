/* option_help.c: the text of --help, written from the table. */
#include "option_parse.h"

#include <string.h>

enum { WIDTH = 100, INDENT = 26 };

/* Prints the words of text after column *at, and breaks lines before WIDTH. */
static void print_words(FILE *out, const char *text, int *at) {
    while (*text) {
        int length = (int)strcspn(text, " ");
        // A word that is longer than the column stands on a line of its own and is not cut.
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
    else if (option->type == OPTION_CHOICE || option->type == OPTION_NONFINITE)
        range = option_kind(text, option);
    else if (option->type == OPTION_SEED)
        range = "from 0 to 2^64-1";
    // A switch is written as --name or --no-name, so its default is shown as on or off.
    if (!option->metavar) tiny = gpt2 = strcmp(tiny, "true") == 0 ? "on" : "off";
    // The second default is shown only where it differs. That of a text (--model) explains itself.
    bool two = tiny && strcmp(tiny, gpt2) != 0 && option->type != OPTION_STRING;
    if (!*range && !tiny) return;
    snprintf(facts, sizeof facts, "(%s%s%s%s%s%s)", range, *range && tiny ? "; " : "",
             tiny ? "default " : "", tiny ? tiny : "", two ? ", gpt2 " : "", two ? gpt2 : "");
    print_words(out, facts, at);
}

/* One option: name, help, range and defaults. */
static void print_option(FILE *out, const Option *option) {
    int at = option->metavar ? fprintf(out, "  --%s %s", option->name, option->metavar)
                             : fprintf(out, "  --[no-]%s", option->name);
    // A name that is too long for its column is followed directly by its help.
    if (at < INDENT - 1) at += fprintf(out, "%*s", INDENT - 1 - at, "");
    print_words(out, option->help, &at);
    print_facts(out, option, &at);
    fprintf(out, "\n");
}

void option_help(const OptionTable *table, FILE *out) {
    fputs(table->usage, out);
    for (int i = 0; i < table->count; i++) {
        const Option *option = &table->rows[i];
        // The rows of a section stand together in the table; its title is printed before the first.
        if (i == 0 || strcmp(option->section, option[-1].section) != 0)
            fprintf(out, "\n%s\n", option->section);
        print_option(out, option);
    }
    fprintf(out, "\n  -h, --help              print this and exit\n%s",
            table->more ? table->more : "");
}

/* option.c: the range and the kind of an option's value, as texts for --help and error messages. */
#include "option.h"

#include "../base/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* In full, or as 1e15 where that is too long to read. */
static const char *bound(char text[NUMBER_CHARS], double value) {
    if (value < 1e12) return number_write_real(text, value);
    int exponent = (int)log10(value);
    snprintf(text, NUMBER_CHARS, "%ge%d", value / pow(10, exponent), exponent);
    return text;
}

const char *option_range(char text[OPTION_TEXT_CHARS], const OptionRange *range) {
    char low[NUMBER_CHARS], high[NUMBER_CHARS];
    bound(low, range->low);
    // Such as "0 or from 2 to 512", "above 0", "from 0", "from 0 to below 1".
    if (range->or_zero)
        snprintf(text, OPTION_TEXT_CHARS, "0 or from %s to %s", low, bound(high, range->high));
    else if (isinf(range->high))
        snprintf(text, OPTION_TEXT_CHARS, "%s %s", range->above ? "above" : "from", low);
    else
        snprintf(text, OPTION_TEXT_CHARS, "%s %s to %s%s", range->above ? "above" : "from", low,
                 range->below ? "below " : "",
                 bound(high, range->high));
    return text;
}

const char *option_choice(char text[OPTION_WORD_CHARS], const OptionRange *range, int number) {
    const char *at = range->choices;
    // The words stand in one text, divided by single blanks: "cosine linear constant wsd".
    while (*at && number > 0) at += strcspn(at, " "), at += strspn(at, " "), number--;
    if (!*at) return NULL;
    snprintf(text, OPTION_WORD_CHARS, "%.*s", (int)strcspn(at, " "), at);
    return text;
}

/* "cosine, linear, constant or wsd" */
static const char *list_choices(char text[OPTION_TEXT_CHARS], const OptionRange *range) {
    char word[OPTION_WORD_CHARS], next[OPTION_WORD_CHARS];
    int length = 0;
    for (int i = 0; option_choice(word, range, i); i++) {
        // the word after this one decides between a comma and "or"
        bool last = !option_choice(next, range, i + 1);
        length += snprintf(text + length, OPTION_TEXT_CHARS - (size_t)length, "%s%s",
                           i == 0 ? "" : last ? " or " : ", ", word);
    }
    return text;
}

const char *option_kind(char text[OPTION_TEXT_CHARS], const Option *option) {
    char range[OPTION_TEXT_CHARS];
    const char *kind = "a name or path";
    switch (option->type) {
    case OPTION_INTEGER:
        kind = "a whole number";
        break;
    case OPTION_REAL:
        kind = "a number";
        break;
    case OPTION_NONFINITE:
        kind = "stop or skip:K, K";
        break;
    case OPTION_SEED:
        return "a whole number from 0 to 18446744073709551615";
    case OPTION_CHOICE:
        return list_choices(text, &option->range);
    case OPTION_SWITCH:
    case OPTION_STRING:
    case OPTION_LIST:
        return option->range.choices ? option->range.choices : kind;
    }
    // "a whole number, 0 or from 2 to 512", but "a number above 0"
    const char *comma = option->range.or_zero ? "," : "";
    snprintf(text, OPTION_TEXT_CHARS, "%s%s %.70s", kind, comma, option_range(range, &option->range));
    return text;
}

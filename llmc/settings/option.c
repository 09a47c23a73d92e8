/* option.c: the range and the kind of an option's value, as texts for --help and error messages. */
#include "option.h"

#include "../base/number.h"

#include <math.h>
#include <stdio.h>

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
    if (range->or_zero)
        snprintf(text, OPTION_TEXT_CHARS, "0 or from %s to %s", low, bound(high, range->high));
    else if (isinf(range->high))
        snprintf(text, OPTION_TEXT_CHARS, "%s %s", range->above ? "above" : "from", low);
    else
        snprintf(text, OPTION_TEXT_CHARS, "from %s to %s%s", low, range->below ? "below " : "",
                 bound(high, range->high));
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
    case OPTION_SCHEDULE:
        return "cosine, linear, constant or wsd";
    case OPTION_SWITCH:
    case OPTION_STRING:
    case OPTION_LIST:
        return kind;
    }
    const char *comma = option->range.or_zero ? "," : "";
    snprintf(text, OPTION_TEXT_CHARS, "%s%s %.70s", kind, comma, option_range(range, &option->range));
    return text;
}

/* command_line.h: settings from the words of a command line, for tests of options and of what follows from them. */
#ifndef TEST_COMMAND_LINE_H
#define TEST_COMMAND_LINE_H

#include "../llmc/settings/settings.h"

/* The settings that these words after the program's name give. */
#define PARSE(...) parse_words((const char *[]){"train_gpt2", ##__VA_ARGS__, NULL})
__attribute__((unused)) static Settings parse_words(const char **words) {
    int count = 0;
    while (words[count]) count++;
    return options_parse(count, (char **)words);
}

#endif

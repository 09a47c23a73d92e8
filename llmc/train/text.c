/* text.c: texts in and out of training: token ids from the command line, and samples for the log. */
#include "text.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int32_t text_start(const Tokenizer *tokenizer) { return tokenizer ? tokenizer_start(tokenizer) : 0; }

int32_t *text_ids(const char *option, const char *text, int vocab, int *count) {
    // strtok_r writes into the text that it divides, so it works on a copy.
    char *words = memory_string(text), *rest = words;
    int32_t *ids = memory_new(strlen(text) / 2 + 1, sizeof *ids, option); // a word and a blank each
    *count = 0;
    for (char *word; (word = strtok_r(rest, " ,\n\t", &rest));) {
        int64_t id;
        if (number_read_i64(word, &id) != NUMBER_OK || id < 0 || id >= vocab)
            fatal(EXIT_USAGE, "%s: '%.40s' is not a token id of this model; they are 0 to %d", option, word,
                  vocab - 1);
        ids[(*count)++] = (int32_t)id;
    }
    free(words);
    return ids;
}

/* The ids as text, divided by blanks. */
static char *print_ids(const int32_t *ids, size_t count) {
    // The largest id has 10 digits; with a blank before it and the 0 at the end that is 12 bytes.
    enum { ID_WIDTH = 12 }; // " 2147483647" and its end
    size_t size = size_add(size_mul(count, ID_WIDTH, "a sample"), 1, "a sample"), at = 0;
    char *text = memory_new(size, 1, "a sample");
    for (size_t i = 0; i < count; i++) at += (size_t)snprintf(text + at, size - at, i ? " %d" : "%d", (int)ids[i]);
    return text;
}

/* Called for each new token: keeps it. */
static void collect(void *list, int token) {
    // The list grows first: reserve may move the ids.
    token_list_reserve(list, 1);
    ((TokenList *)list)->ids[((TokenList *)list)->count++] = token;
}

char *text_sample(GPT2 *model, const Tokenizer *tokenizer, int64_t count, const Sampling *sampling) {
    TokenList list = {0};
    // A prompt of one token: the model continues the beginning of a text. That token is not a part of the sample.
    int32_t start = text_start(tokenizer);
    generate(model, &start, 1, count, sampling, collect, &list);
    char *text = tokenizer ? tokenizer_decode(tokenizer, list.ids, list.count) : print_ids(list.ids, list.count);
    free(list.ids);
    return text;
}

/* token_list.h: a list of token ids that grows. Encoders add to it; its owner frees `ids`. */
#ifndef LLMC_TEXT_TOKEN_LIST_H
#define LLMC_TEXT_TOKEN_LIST_H

#include <stddef.h>
#include <stdint.h>

/* A growing list of token ids; {0} is empty, free(list.ids) releases it. */
typedef struct {
    int32_t *ids;
    size_t count, capacity;
} TokenList;

/* Makes room for `more` ids after those that are there. */
void token_list_reserve(TokenList *list, size_t more);

#endif

/* token_list.c: doubling keeps the cost of a token constant, however many are added one by one. */
#include "token_list.h"

#include "../base/memory.h"

void token_list_reserve(TokenList *list, size_t more) {
    if (list->capacity - list->count >= more) return;
    list->capacity = size_add(size_mul(list->capacity, 2, "tokens"), size_add(more, 64, "tokens"), "tokens");
    list->ids = memory_grow(list->ids, list->capacity, sizeof *list->ids, "tokens");
}

/* vocabulary.h: a tokenizer as its files spell it: tokens and merges as text in GPT-2's alphabet of bytes. The
 * readers of the file formats (tokenizer_read.c, tokenizer_json.c) add what they find; vocabulary_finish checks it and
 * makes the tokenizer. */
#ifndef LLMC_VOCABULARY_H
#define LLMC_VOCABULARY_H

#include "../files/json_read.h"
#include "tokenizer_parts.h"

typedef struct {
    const char *file; // for messages
    Tokenizer *tokenizer;
    const char **tokens; // (capacity) by id; NULL: no such token
    int64_t most;        // ids are below
    int vocab, capacity; // the largest id + 1
    int32_t *table;      // (table_size) ids by the hash of their text; -1: free
    size_t table_size, used;
    int merge_capacity;
} Vocabulary;

/* A token with its id. The text stays the caller's until vocabulary_finish. */
void vocabulary_add(Vocabulary *v, const char *text, int64_t id);

/* All members of an object: names are tokens, values their ids. */
void vocabulary_add_all(Vocabulary *v, const Json *object);

/* The id of a token, or -1. */
int32_t vocabulary_find(const Vocabulary *v, const char *text);

/* The next merge: two texts with a blank between them. Everything is added before. where: for messages. */
void vocabulary_merge(Vocabulary *v, const char *pair, const char *where);

/* Ends with the tokenizer whole, but for its name and bpe. */
void vocabulary_finish(Vocabulary *v);

/* The file as JSON, which must be an object; json_free releases it. */
const Json *vocabulary_json(const char *path);

/* Reads Hugging Face's tokenizer.json. */
void tokenizer_json_read(Tokenizer *tokenizer, const char *path);

#endif

/* shard_tokenizer.h: with which tokenizer shards were made: `tokenize` notes it in tokenize.json beside them. */
#ifndef LLMC_SHARD_TOKENIZER_H
#define LLMC_SHARD_TOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    char *name;        // "gpt2", "bytes" or a path; free() releases it
    uint64_t identity; // tokenizer_identity
} ShardTokenizer;

/* The tokenizer noted beside `path`, which is a directory of shards, or a file or glob in one. False where no note
 * is, or an unreadable one: other programs make shards too. */
bool shard_tokenizer_find(const char *path, ShardTokenizer *found);

#endif

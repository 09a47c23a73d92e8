/* shard_tokenizer.h: with which tokenizer shards were made: `tokenize` notes it in tokenize.json beside them. */
#ifndef LLMC_SHARD_TOKENIZER_H
#define LLMC_SHARD_TOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    char *name;        // "gpt2", "bytes" or a path; free() releases it
    uint64_t identity; // tokenizer_identity
} ShardTokenizer;

/* What is noted beside `path`, which is a directory of shards, or a file or glob in one. False where nothing is, or
 * nothing that can be read: shards need not be made by this program. */
bool shard_tokenizer_find(const char *path, ShardTokenizer *found);

#endif

/* shard_writer.h: tokens into llm.c token shards (shard.h reads them), each of them complete or absent:
 *
 *   DIR/tokens_val_000000.bin  DIR/tokens_train_000001.bin  DIR/tokens_train_000002.bin ...
 *
 * Each holds shard_tokens, the last of each part what is left. The first val_tokens tokens are for validation.
 * If that number is not given, the first shard is, as llm.c's scripts have it; and where all tokens fit into that
 * one, their first tenth. A shard has 256 int32 (magic, version, count) and uint16 tokens; where the vocabulary
 * is larger than 65,536 uint32 tokens, with the magic and version that llm.c has for these. */
#ifndef LLMC_SHARD_WRITER_H
#define LLMC_SHARD_WRITER_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *directory;
    int vocab;
    uint64_t shard_tokens;
    int64_t val_tokens; // -1: not given
} ShardPlan;

typedef struct ShardWriter ShardWriter;

/* Begins after `shards` complete shards, which hold `tokens` tokens (both 0 at the beginning). committed is
 * called when a shard has its name, with how many shards and tokens there are now. */
typedef void (*ShardCommitted)(void *context, int shards, uint64_t tokens);
ShardWriter *shard_writer_new(const ShardPlan *plan, int shards, uint64_t tokens, ShardCommitted committed,
                              void *context);

/* Appends `count` tokens; where a call ends has no meaning. */
void shard_writer_add(ShardWriter *writer, const int32_t *ids, size_t count);

/* Writes what is left. Returns the number of tokens of validation; *shards: of all shards. (Where all tokens
 * fit into the first shard two are written, of which committed is not called: they are found together or made
 * again.) */
uint64_t shard_writer_finish(ShardWriter *writer, int *shards);
void shard_writer_free(ShardWriter *writer);

/* The number in the name of a file called so, or -1. */
int shard_number(const char *path);

/* How many such files the directory holds. */
int shard_writer_finds(const char *directory);

/* Removes them. */
void shard_writer_remove(const char *directory);

#endif

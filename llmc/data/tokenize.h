/* tokenize.h: text inputs into a directory of token shards, in a way that may be interrupted at any moment.
 *
 * Beside the shards is tokenize.json: the tokenizer, the settings, the inputs with their sizes and times,
 * and after each complete shard the place of its last token in the inputs. It is replaced whole, after the
 * shard has its name. So the next start with the same inputs and settings continues after the last shard that it
 * knows of, writes what follows, maybe one shard once more, and the bytes are those of a run that nothing has
 * interrupted. Other inputs or settings are refused by name. Next: shard_tokenizer.h. */
#ifndef LLMC_TOKENIZE_H
#define LLMC_TOKENIZE_H

#include "../text/encode_documents.h"
#include "shard_writer.h"

typedef struct {
    const char *const *paths; // (count), files or "-"
    int count;
    const char *field; // of JSON lines; NULL: text (documents.h)
    bool special;
    int threads; // 0: all cores
    const Tokenizer *tokenizer;
    ShardPlan plan;
} TokenizeJob;

typedef struct {
    uint64_t tokens, documents;
    uint64_t invalid; // bytes of the text that are not UTF-8
    uint64_t val;     // tokens for validation
    int shards;
} TokenizeResult;

/* Where a start begins: what an earlier one has done. */
typedef struct {
    bool done;
    TokenizeResult result; // so far
    DocumentPlace place;
    uint64_t skip; // so many tokens from `place` on are in shards already
} TokenizeState;

/* The state of this job in the directory: none (all 0), or how far it is. Fatal (EXIT_USAGE), naming the
 * difference, where it holds another job's shards; (EXIT_INPUT) where tokenize.json is damaged. */
TokenizeState tokenize_look(const TokenizeJob *job);

/* The name of the tokenizer that made the shards in a directory, or the shard `path`, as tokenize.json there
 * has it; NULL where it is not known. free() releases it. */
char *tokenize_tokenizer(const char *path);

/* Removes the shards and tokenize.json of any job. */
void tokenize_remove(const char *directory);

/* Does the rest of the job. progress may be NULL. */
TokenizeResult tokenize_run(const TokenizeJob *job, const TokenizeState *from, EncodeProgress progress,
                            void *context);

#endif

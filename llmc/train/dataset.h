/* dataset.h: which tokens are for training and which for validation, and what they mean. */
#ifndef LLMC_DATASET_H
#define LLMC_DATASET_H

#include "../data/stream.h"
#include "../settings/settings.h"
#include "../text/tokenizer.h"

typedef struct {
    Stream *train;
    Stream *val; // NULL: no validation
    Stream *whole; // NULL, or what both are slices of
    Tokenizer *tokenizer; // NULL: it is not known what the tokens mean
    bool is_text;         // given as text
    uint64_t text_bytes;  // of text that became tokens of more than a byte; else 0
} Dataset;

/* Opens what --data and --val name:
 *  - no --data: the built-in text;
 *  - --val given: both as they are, but where a directory or glob has parts for training and validation
 *    ("_train_", "_val_" in its files' names) each takes its own;
 *  - no --val, but --data has such parts: by part;
 *  - else the last --val-fraction of the stream's tokens is for validation, as nanoGPT splits.
 * Text is encoded. The tokenizer is --tokenizer, or the weights' own (choose_tokenizer.h); for a model of a new
 * shape bytes, or GPT-2's where the model's name begins with gpt2 or the data are tokens.
 *
 * weights: the directory or file of the weights to start from, or NULL. vocab: the model's vocabulary, or 0 where the
 * data decide. Fatal (EXIT_USAGE) when a split leaves nothing to validate on, or text meets a model whose tokenizer is
 * not known. */
Dataset dataset_open(const Settings *settings, const char *weights, int vocab);
void dataset_close(Dataset *data);

/* The vocabulary of a model for this data when none is asked for: the tokenizer's, 0 where there is none. */
int dataset_vocab(const Dataset *data);

/* Tokens for training and validation. */
uint64_t dataset_tokens(const Dataset *data);

/* Where `dev/data.sh fineweb-edu` puts the course's shards: the directory, if they are there, else NULL. */
const char *dataset_course_shards(void);

#endif

/* dataset.h: which tokens are for training and which for validation, and their tokenizer. */
#ifndef LLMC_DATASET_H
#define LLMC_DATASET_H

#include "../data/stream.h"
#include "../settings/settings.h"
#include "../text/tokenizer.h"

typedef struct {
    Stream *train;
    Stream *val; // NULL: no validation
    Stream *whole; // NULL, or what both are slices of
    Tokenizer *tokenizer; // NULL: the tokenizer is not known
    bool is_text;         // given as text
    int vocab_beside;     // the vocabulary in meta.pkl beside data for a new model; else 0
    char note[200];       // remarks about the data, for the start-up table; "": none
    uint64_t text_bytes;  // of text that became tokens of more than a byte; else 0
} Dataset;

/* Opens what --data and --val name:
 *  - no --data: the built-in text;
 *  - of a directory or glob the files that are named train, or for no part ("_train_", "_val_", "test" in
 *    their names: stream.h); what is named test is never opened;
 *  - --val given: of its directories and globs the files named val, else those named test, else all;
 *  - no --val, but --data has files named val: those;
 *  - else the last --val-fraction of the training tokens is for validation, as nanoGPT splits.
 * Text is encoded. The tokenizer is --tokenizer, or the weights' own (choose_tokenizer.h); for a model of a new
 * shape the one that `tokenize` has noted beside the tokens; else bytes for text, or GPT-2's where the model's name
 * begins with gpt2 or the data are tokens.
 *
 * weights: the directory or file of the weights to start from, or NULL. vocab: the model's vocabulary, or 0 where the
 * data decide. Fatal (EXIT_USAGE) when a split leaves nothing to validate on, or text is given for a model whose
 * tokenizer is not known. */
Dataset dataset_open(const Settings *settings, const char *weights, int vocab);
void dataset_close(Dataset *data);

/* The data to evaluate a finished model on, in .val; .train may be NULL. Of --data's directories and globs the
 * files named val; where there are none, the last --val-fraction of the training tokens, or with 0 the files
 * named test; else all. */
Dataset dataset_open_held_out(const Settings *settings, const char *weights, int vocab);

/* The vocabulary of a model for this data when none is asked for: the tokenizer's, or the one in meta.pkl beside
 * the data; 0 where there is neither. */
int dataset_vocab(const Dataset *data);

/* Warns where a model gets GPT-2's vocabulary, unasked, for tokens that are all far below it. */
void dataset_hint_vocab(const Dataset *data);

/* Tokens for training and validation. */
uint64_t dataset_tokens(const Dataset *data);

/* Where `dev/data.sh fineweb-edu` puts the course's shards: the directory, if they are there, else NULL. */
const char *dataset_course_shards(void);

#endif

/* dataset.h: which tokens are for training and which for validation. */
#ifndef LLMC_DATASET_H
#define LLMC_DATASET_H

#include "../data/stream.h"
#include "../settings/settings.h"

typedef struct {
    Stream *train;
    Stream *val; // NULL: no validation
    Stream *whole; // NULL, or what both are slices of
} Dataset;

/* Opens what --data and --val name:
 *  - no --data: the built-in text;
 *  - --val given: both as they are, but where a directory or glob has parts for training and validation
 *    ("_train_", "_val_" in its files' names) each takes its own;
 *  - no --val, but --data has such parts: by part;
 *  - else the last --val-fraction of the stream's tokens is for validation, as nanoGPT splits.
 * Fatal (EXIT_USAGE) when a split leaves nothing to validate on. */
Dataset dataset_open(const Settings *settings);
void dataset_close(Dataset *data);

/* The vocabulary of a model for this data when none is asked for: 256 for bytes, GPT-2's 50257 else. */
int dataset_vocab(const Dataset *data);

#endif

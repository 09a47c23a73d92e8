/* trainer_state.h: trainer_state.json, what a checkpoint holds beside weights and moments.
 *
 *   {"format": "train_gpt2 checkpoint", "version": 2,
 *    "step": 500,        index of the next update; the learning rate is a function of it
 *    "updates": 500,     AdamW's t: updates that changed the weights
 *    "skipped": 0,       updates in a row, up to now, that were not finite
 *    "position": 8000,   sequences served: the whole state of the data order
 *    "tokens": 512000, "seconds": 61.2,      targets trained on and time in updates, of all parts of the run
 *    "log": {"log.txt": 9012, "metrics.jsonl": 70011},           bytes of the logs up to here
 *    "best": {"step": 250, "loss": 1.5},       lowest validation loss so far, with --keep-best; else absent
 *    "schedule_end": 1000,                     step at which the learning rate is at its minimum
 *    "data": "16 hex digits",                  stream_identity of the training data
 *    "settings": {every option by its name; null: not set; lists as arrays},
 *    "files": {"model.safetensors": {"bytes": 497774208, "sum": "16 hex digits"}, ...},      file_checksum.h
 *    "xxh64": "16 hex digits"}
 *
 * The last member is the checksum (checksum.h) of all bytes before its line, so that every bit of a checkpoint is
 * protected. Files of version 1 have transposed moments, so they are refused. */
#ifndef LLMC_TRAINER_STATE_H
#define LLMC_TRAINER_STATE_H

#include "../files/json_read.h"
#include "../files/output.h"
#include "../log/log.h"
#include "../settings/settings.h"

typedef struct {
    int64_t step, updates, skipped;
    uint64_t sequences_served, tokens;
    double seconds;
    int64_t best_step; // of the lowest validation loss so far; 0: there is none
    double best_loss;
    int64_t schedule_end;
    LogOffsets log;
    uint64_t data;
} TrainerState;

typedef struct {
    const char *name;
    FileChecksum sum;
} NamedChecksum;

/* Writes the file; `files` (count) are those beside it. */
void trainer_state_write(OutputFile *file, const TrainerState *state, const Settings *settings,
                         const NamedChecksum *files, int count);

enum { STATE_PROBLEM = JSON_PROBLEM };

/* The document in `text`, with its own checksum checked. NULL where it is not what trainer_state_write wrote: then
 * problem (of STATE_PROBLEM bytes) has the reason. json_free releases it. */
const Json *trainer_state_read(const char *text, size_t bytes, char *problem);

/* Reads the document; false, with problem set, where a member is missing or out of range. */
bool trainer_state_counters(const Json *root, TrainerState *state, char *problem);

/* The checksum of one of the files; false where it is not listed. */
bool trainer_state_sum(const Json *root, const char *name, FileChecksum *sum);

#endif

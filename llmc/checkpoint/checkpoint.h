/* checkpoint.h: one checkpoint. A directory OUT/step_NNNNNNNN that Hugging Face's tools open:
 *
 *   config.json  model.safetensors       the model (hf_config.h, hf_tensors.h)
 *   optimizer.safetensors                AdamW's moments, as m.NAME and v.NAME; matrices are (out, in)
 *   tokenizer files                      if the tokenizer is known (tokenizer.h)
 *   trainer_state.json                   everything else, and the checksums of all files (trainer_state.h)
 *
 * It is complete or absent (output.h). Its bytes do not depend on ranks or threads, except for times and settings
 * in trainer_state.json. Memory beside the model: a buffer for its largest block matrix. Next: checkpoint_list.h
 * for the checkpoints of a run. */
#ifndef LLMC_CHECKPOINT_H
#define LLMC_CHECKPOINT_H

#include "../text/tokenizer.h"
#include "../weights/weights.h"
#include "trainer_state.h"

/* Writes the checkpoint `path`, which must not exist. tokenizer: the model's; NULL where it is not known.
 * Called by one rank. Failures are fatal (EXIT_RUNTIME) and leave nothing of it. */
void checkpoint_save(const char *path, const GPT2 *model, const TrainerState *state,
                     const Settings *settings, const Tokenizer *tokenizer);

/* Whether a directory is a checkpoint, even a damaged one: it has a state or an optimizer's file. */
bool checkpoint_is_one(const char *path);

/* Compares all files with their checksums. False, with problem (of CHECKPOINT_PROBLEM bytes) naming the file that
 * is missing or not as it was written. Fatal (EXIT_RUNTIME) when one cannot be read. */
enum { CHECKPOINT_PROBLEM = 512 };
bool checkpoint_verify(const char *path, char *problem);

/* After its files were loaded: fatal (EXIT_INPUT) when one was written or replaced since this process found the
 * checkpoint good. Nothing for a path that it did not verify last. */
void checkpoint_check_unchanged(const char *path);

/* trainer_state.json of a verified checkpoint: its counters, and (json_free) its document. */
const Json *checkpoint_state(const char *path, TrainerState *state);

/* Loads weights (from weights_open(path)) and moments into a model of the checkpoint's shape, or one with
 * a smaller seq_len. Fatal (EXIT_INPUT) on anything that does not fit. */
void checkpoint_load(const char *path, Weights *weights, GPT2 *model);

/* Whether a directory entry of this name is one of the files above. */
bool checkpoint_has_file(const char *name);

#endif

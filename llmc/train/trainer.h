/* trainer.h: a run, and what happens around its updates: how it begins, anew or from a checkpoint, its
 * logs, and its checkpoints. Not here: the updates (train_gpt2.c), and what a checkpoint is made of
 * (checkpoint.h). */
#ifndef LLMC_TRAINER_H
#define LLMC_TRAINER_H

#include "resume.h"
#include "../eval/examples.h"
#include "../log/log.h"
#include "../model/gpt2.h"
#include "../weights/weights.h"
#include "../data/batch.h"
#include "plan.h"

typedef struct {
    Settings settings;
    World world;
    Plan plan;
    Sequences sequences, val;
    GPT2 *model;
    Batch *batch;
    const Tokenizer *tokenizer; // of the data; NULL: it is not known
    Examples *examples;         // of --hellaswag, or NULL
    Log *log;  // NULL on all ranks but 0
    char *out; // the run's directory, likewise

    // Where the run begins: a checkpoint, other weights (NULL: random ones), or nothing.
    Resume resume;
    Weights *start;

    TrainerState at; // where the run stands: what changes from update to update
    int64_t saved;   // step of the newest checkpoint; -1: none
} Trainer;

/* Opens data, start weights and the device, and plans the run: all that is common to training and
 * planning. */
Dataset trainer_prepare(Trainer *t);

/* Whether the checkpoint to resume from is the end of the run, which it then says; refuses one that is of
 * another run (EXIT_USAGE). */
bool trainer_is_finished(const Trainer *t);

/* Opens the run's files on rank 0, prints the start-up table and writes the settings record; or cuts the
 * logs back to where the checkpoint was written. */
void trainer_start_log(Trainer *t, const Dataset *data);

/* Gives t->model, which is new, its weights: the checkpoint's with all of its state, those of --model, or
 * random ones. */
void trainer_start_weights(Trainer *t);

/* Writes the checkpoint after t->at.step updates, unless it is there, and removes old ones. */
void trainer_save(Trainer *t);

#endif

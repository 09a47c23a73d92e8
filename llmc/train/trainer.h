// clang-format off
/* trainer.h: the life of a run around its updates: how it begins, its logs, its checkpoints.
 *
 *                    resume_open: lock OUT, look for a checkpoint
 *                     |                                |
 *           no checkpoint, or --resume never      a good checkpoint
 *                     |                                |
 *                     v                                v
 *                  NEW RUN                      resume_check: is it the same run?
 *     run_directory_clear, log_open                    |              |
 *     weights: random or --model                       | yes          | no: refused, nothing was changed
 *                     |                                v
 *                     |                     all updates done? --- yes ---> "is finished", exit 0
 *                     |                                | no
 *                     |                                v
 *                     |                             RESUMED
 *                     |               checkpoints_set_aside, log_resume,
 *                     |               restore_checkpoint
 *                     v                                |
 *     +---------> TRAINING <---------------------------+
 *     |               |   |            |
 *     |   --save-every|   | last step  | signal              killed, power cut, an error
 *     |               v   v            v                                  |
 *     +---------- trainer_save ------> exit 0 (done) or 75 (stopped)      v
 *                                                              the newest good checkpoint is there
 *
 * What holds at every moment, also after a crash:
 *  (1) A checkpoint under its final name is complete. It is written under a temporary name, each file is
 *      fsynced, and the directory is renamed last (files/output.h).
 *  (2) The logs hold every step up to the newest checkpoint: they are fsynced before it is written. What
 *      follows is cut off by a resume, so that no step is logged twice.
 *  (3) A checkpoint records how far everything was: updates, AdamW's t, sequences served, bytes of the logs. A
 *      resumed run starts from these numbers alone.
 *  (4) One process at a time writes in OUT: it holds the lock from before it looks until it ends.
 *  (5) Weights that are not finite are never saved: such an update is not applied (train_gpt2.c).
 *  (6) An old checkpoint is removed only after a newer one is complete. With --keep-best OUT/best leads to a
 *      complete one.
 *
 * Rank 0 alone writes (chapter 27.6); the other ranks have no log and no lock. Not here: the updates
 * (train_gpt2.c). Next: resume.h, then checkpoint.h for what a checkpoint is made of; rank_consistency.h
 * for what ranks compare before they start. */
// clang-format on
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
    bool to_plan; // nothing is computed: no device is needed
    Plan plan;
    Sequences sequences, val;
    GPT2 *model;
    Batch *batch;
    const Tokenizer *tokenizer; // of the data; NULL: it is not known
    Examples *examples;         // of --hellaswag, or NULL
    Log *log;                   // NULL on all ranks but 0
    char *out;                  // the run's directory, likewise

    // Where the run begins: at a checkpoint, or from other weights (NULL: random ones).
    Resume resume;
    Weights *start;
    char *model_path; // of --model's weights, or NULL

    TrainerState at; // where the run stands: what changes from update to update
    int64_t saved;   // step of the newest checkpoint; -1: none
} Trainer;

/* Opens data, start weights and the device, and plans the run: all that is common to training and
 * planning. */
Dataset trainer_prepare(Trainer *t);

/* Whether all updates of the run were done at the checkpoint to resume from; then it prints so, and completes the
 * logs where their end is missing. A checkpoint of another run is refused (EXIT_USAGE). */
bool trainer_is_finished(const Trainer *t);

/* On rank 0: makes and locks the run's directory, and refuses one that holds another run. */
void trainer_open_directory(Trainer *t);

/* On rank 0: removes the run that is to be replaced, opens the run's files, prints the start-up table and writes
 * the settings record; or cuts the logs back to where the checkpoint was written. Comes last before training
 * (promise 7), so that a run that cannot start leaves everything as it was. */
void trainer_start_log(Trainer *t, const Dataset *data);

/* Gives t->model, which is new, its weights: the checkpoint's with all of its state, those of --model, or
 * random ones. */
void trainer_start_weights(Trainer *t);

/* Notes a validation loss; whether it is the lowest so far and --keep-best wants its checkpoint. */
bool trainer_is_best(Trainer *t, double loss);

/* Writes the checkpoint after t->at.step updates, unless it is there, and removes old ones. */
void trainer_save(Trainer *t);

#endif

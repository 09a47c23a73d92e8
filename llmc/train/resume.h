/* resume.h: --resume. Finds the checkpoint, completes the settings from it, and refuses by name any option that
 * would make another run. Ranks, batch, threads and what is printed or saved may change freely.
 *
 * In order: resume_open, then data and plan are made from the settings, then resume_check. */
#ifndef LLMC_RESUME_H
#define LLMC_RESUME_H

#include "../model/gpt2.h"
#include "../ranks/world.h"
#include "../checkpoint/trainer_state.h"
#include "run_directory.h"

typedef struct {
    char *path;        // of the checkpoint; NULL: a new run
    bool same_out;     // the run continues in the checkpoint's own directory: logs are cut back to it
    const Json *state; // trainer_state.json
    TrainerState at;   // the run's counters; all 0 for a new run
    bool warns;        // on one rank, which prints the warnings
    Lock *lock;        // on that rank, of the directory to continue in: taken before it was read; or NULL
} Resume;

/* Does what --resume asks for, on all ranks alike. With a checkpoint, *settings are completed: options
 * not given become the checkpoint's, out becomes its directory. Fatal (EXIT_INPUT) when a checkpoint is required
 * and there is none. */
Resume resume_open(Settings *settings, const World *world);
void resume_close(Resume *resume);

/* Where the weights are that --model names, on all ranks alike (checkpoints_resolve), or NULL when it names a
 * shape. free() releases it. */
char *resume_find_model(const Settings *settings, const World *world);

/* Facts that decide what a run computes, beside its options. */
typedef struct {
    int seq_len;
    uint64_t data;        // stream_identity of the training data
    int64_t schedule_end; // step at which the learning rate is at its minimum
} RunFacts;

/* Fatal (EXIT_USAGE) where a given option, or a fact, differs from the checkpoint's and makes another run;
 * with --force it warns. A changed end of the schedule is always allowed, with a warning. seq_len: of the
 * checkpoint's model. */
void resume_check(const Resume *resume, const Settings *settings, const RunFacts *now, int seq_len);

#endif

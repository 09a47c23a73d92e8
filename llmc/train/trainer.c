/* trainer.c: the beginning of a run and its checkpoints, in the order of the diagram in trainer.h. Training
 * and `plan` share trainer_prepare; only training continues with logs, weights and saves. */
#include "trainer.h"

#include "../base/activity.h"
#include "../base/error.h"
#include "../base/memory.h"
#include "../checkpoint/checkpoint.h"
#include "../checkpoint/checkpoint_list.h"
#include "../files/path.h"
#include "../files/temporary.h"
#include "../log/screen.h"
#include "../ranks/launcher.h"
#include "run_directory.h"
#include "rank_consistency.h"
#include "startup_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------------
// Begin

/* Weights that were trained before are tuned at nanoGPT's rate (config/finetune_shakespeare.py). */
#define TUNING_RATE 3e-5

enum { GPT2_VOCAB = 50257 };

/* Whether the run is the course's: a named gpt2 shape with new weights. */
static bool is_course_model(const Trainer *t) {
    const char *model = t->settings.model;
    return !weights_path(model) && strncmp(model, "gpt2", 4) == 0;
}

/* A named shape takes precedence over weights of the same name; a warning then names them. */
static void warn_of_weights_beside(const char *model) {
    bool weights = path_exists_in(model, "config.json") || checkpoints_any(model);
    if (weights && !weights_path(model))
        warning("--model %s is the shape of that name, with random weights; to start from the weights in the directory "
                "%s write --model ./%s",
                model, model, model);
}

/* Opens the weights to start from: the checkpoint's to resume, or those of --model. Options that were not given
 * follow what these are. Returns their path, or NULL. */
static const char *open_start(Trainer *t) {
    Settings *s = &t->settings;
    // A checkpoint to resume from goes before --model: its weights are those that --model once began.
    if (!t->resume.path) t->model_path = resume_find_model(s, &t->world);
    const char *start = t->resume.path ? t->resume.path : t->model_path;
    if (!start && t->world.rank == 0) warn_of_weights_beside(s->model);
    if (start) t->start = weights_open(start);
    // The defaults of some options differ between families of models; the vocabulary tells which one the weights are
    // of.
    if (t->model_path) settings_set_family(s, weights_config(t->start)->vocab >= GPT2_VOCAB);
    return start;
}

/* Settings that a new run takes from what is there, and a resumed one from its checkpoint. */
static void complete_settings(Trainer *t, const char *start) {
    Settings *s = &t->settings;
    bool resumed = t->resume.path != NULL;
    // The checkpoint has a copy of its tokenizer; a path in its settings may lead to nothing on this machine.
    if (resumed && !settings_given(s, "tokenizer") && tokenizer_is_in(start)) s->tokenizer = NULL; // its own
    const char *shards = dataset_course_shards();
    if (!resumed && is_course_model(t) && s->data.count == 0 && shards) {
        s->data.items = memory_new(1, sizeof *s->data.items, "a file name");
        s->data.items[s->data.count++] = shards;
    }
    // A rate for random weights would undo much of what trained weights have learned. A default of --min-lr follows
    // it.
    if (!resumed && start && !settings_given(s, "lr")) {
        s->lr = TUNING_RATE;
        if (!settings_given(s, "min-lr")) s->min_lr = TUNING_RATE / 10;
        if (s->min_lr > s->lr)
            fatal(EXIT_USAGE, "--min-lr %g is above --lr %g (the default where --model is weights); give --lr, too",
                  s->min_lr, s->lr);
    }
}

/* The examples of --hellaswag. */
static void open_examples(Trainer *t, const Config *config) {
    const Settings *s = &t->settings;
    if (s->hellaswag && s->val_every == 0 && settings_given(s, "hellaswag"))
        fatal(EXIT_USAGE, "--hellaswag %s is scored at validations, and --val-every 0 makes none", s->hellaswag);
    if (!s->hellaswag && s->hellaswag_examples > 0)
        fatal(EXIT_USAGE, "--hellaswag-examples %lld needs a file of examples; name it with --hellaswag",
              (long long)s->hellaswag_examples);
    // Without validations nobody would read the examples.
    if (!s->hellaswag || s->val_every == 0) return;
    const ExamplesFor model = {t->tokenizer, config->vocab, config->seq_len};
    t->examples = examples_open(s->hellaswag, &model, s->hellaswag_examples);
    rank_consistency_check_examples(&t->world, t->examples);
}

Dataset trainer_prepare(Trainer *t) {
    const Settings *s = &t->settings;
    const char *start = open_start(t);
    complete_settings(t, start);
    // Weights fix the vocabulary. Without them it is --vocab, or 0: then the data decide.
    Dataset data = dataset_open(s, start, t->start ? weights_config(t->start)->vocab : (int)s->vocab);
    // all ranks must have the same settings and data before any of them waits for another
    rank_consistency_check(&t->world, s, &data);
    t->tokenizer = data.tokenizer;
    Config config = plan_config(s, &data, t->start ? weights_config(t->start) : NULL);
    if (!t->start && !s->vocab && t->world.rank == 0) dataset_hint_vocab(&data);
    // an id beyond the vocabulary is found now, not at some later step
    stream_set_vocab(data.train, config.vocab);
    if (data.val) stream_set_vocab(data.val, config.vocab);
    // Validation is not shuffled: every validation sees the same sequences in the same order.
    t->sequences = sequences_new(data.train, config.seq_len, s->seed, s->shuffle);
    if (data.val) t->val = sequences_new(data.val, config.seq_len, s->seed, false);
    // the device last: any error in the settings has been reported by now
    if (t->to_plan)
        backend_open_to_plan(t->world.local_rank, t->world.local_size, (int)s->threads);
    else
        backend_open(t->world.local_rank, t->world.local_size, (int)s->threads);
    t->plan = plan_make(s, &config, &t->world, &t->sequences, data.val ? &t->val : NULL);
    open_examples(t, &config);
    return data;
}

/* Removes the checkpoints that need not be kept, and names the best. */
static void keep_checkpoints(const char *out, const Settings *s, const TrainerState *at) {
    if (s->keep_best) checkpoints_mark_best(out, at->best_step);
    checkpoints_keep(out, s->keep, s->keep_best ? at->best_step : 0);
}

/* The run has its last checkpoint. Promise 5: ends are written: if it was killed, or the disk was full, between that
 * and the logs' last records, these are written now. */
// log_is_ended: a second start of a finished run leaves the logs as they are.
static void complete_logs(const Trainer *t) {
    const Resume *resume = &t->resume;
    const char *out = t->settings.out;
    temporary_clean(out, NULL);
    if (log_is_ended(out, "done", t->plan.steps)) return;
    Log *log = log_resume(out, t->plan.steps, 0, 0, 0, resume->at.log);
    log_checkpoint(log, resume->at.step, resume->path);
    keep_checkpoints(out, &t->settings, &resume->at);
    log_close(log, "done", t->plan.steps);
}

bool trainer_is_finished(const Trainer *t) {
    const Resume *resume = &t->resume;
    if (!resume->path) return false;
    bool finished = resume->at.step >= t->plan.steps;
    // A finished run computes no further update, so the end of its schedule is not compared.
    RunFacts facts = {.seq_len = t->plan.T,
                      .data = stream_identity(t->sequences.stream),
                      .schedule_end = finished ? resume->at.schedule_end : t->plan.schedule.end};
    resume_check(resume, &t->settings, &facts, weights_config(t->start)->seq_len);
    if (!finished) return false;
    if (t->world.rank == 0 && resume->same_out && resume->at.step == t->plan.steps) complete_logs(t);
    if (t->world.rank == 0 && resume->at.step > t->plan.steps)
        printf("%s: this run is at step %lld, beyond --steps %lld: nothing is left to do; a larger --steps continues "
               "it\n",
               resume->path, (long long)resume->at.step, (long long)t->plan.steps);
    else if (t->world.rank == 0)
        printf("%s: this run is finished, all %lld updates are done; --steps N continues it\n", resume->path,
               (long long)t->plan.steps);
    return true;
}

/* Whether a new run begins in a directory that may hold another run, which is then removed. --resume auto
 * without a checkpoint starts where a run was that never saved. */
static bool replaces_run(const Trainer *t) {
    return t->settings.overwrite || (strcmp(t->settings.resume, "auto") == 0 && !t->resume.path);
}

void trainer_open_directory(Trainer *t) {
    // Rank 0 alone writes, so only it needs the directory and its lock.
    if (t->world.rank != 0) return;
    const char *out = t->settings.out;
    t->out = out ? memory_string(out) : run_directory_next();
    // resume_open has taken the lock where the run continues in its directory.
    if (!t->resume.lock) t->resume.lock = run_directory_lock(t->out, true);
    if (!t->resume.same_out && !replaces_run(t)) run_directory_refuse_used(t->out);
}

/* Sets the run's directory back to its state at the checkpoint to continue from. */
static void set_back(const char *out, const Settings *s, const TrainerState *at) {
    // Checkpoints after this one belong to a course of the run that is not continued.
    checkpoints_set_aside(out, at->step);
    if (!s->keep_best) return;
    checkpoints_mark_best(out, at->best_step);
    char *best = checkpoints_path(out, at->best_step);
    if (at->best_step > 0 && !path_exists(best))
        warning("%s, the best checkpoint so far (validation loss %.4f), is gone; %s/best will name the next that is "
                "better",
                best, at->best_loss, out);
    free(best);
}

void trainer_start_log(Trainer *t, const Dataset *data) {
    if (t->world.rank != 0) return;
    const Settings *s = &t->settings;
    const Resume *resume = &t->resume;
    if (resume->same_out)
        set_back(t->out, s, &resume->at);
    else if (replaces_run(t))
        run_directory_clear(t->out);
    // mpirun gives ranks a terminal of their own even where its output goes to a file
    bool unseen = s->progress == SCREEN_AUTO && !launcher_output_is_terminal();
    screen_choose(unseen ? SCREEN_LINES : (ScreenStyle)s->progress);
    startup_table_print(&t->plan, s, &t->world, data, &t->sequences);
    // FLOPs of a token, and the peak of all ranks together: the log divides them for the share of the peak.
    double flops = gpt2_flops_per_token(&t->plan.config), peak = backend_peak_flops() * t->world.size;
    if (resume->same_out) {
        t->log = log_resume(t->out, t->plan.steps, s->log_every, flops, peak, resume->at.log);
        log_checkpoint(t->log, resume->at.step, resume->path);
    } else {
        t->log = log_open(t->out, t->plan.steps, s->log_every, flops, peak);
        log_settings(t->log, s);
    }
    if (is_course_model(t) && s->data.count == 0)
        log_say(t->log, "no --data, so this trains on the program's own source. To train on the course's 10 billion "
                        "tokens (20 GB):\n    dev/data.sh fineweb-edu\n    mpirun -np 8 ./train_gpt2cu --model %s\n",
                s->model);
    if (t->start && !resume->path)
        log_say(t->log, "weights from %s (%s)", t->model_path, weights_format(t->start));
    if (resume->path)
        log_say(t->log, "resumed from %s: %lld of %lld updates are done", resume->path,
                (long long)resume->at.step, (long long)t->plan.steps);
}

/* Weights, moments and counters as the checkpoint has them. */
static void restore_checkpoint(Trainer *t) {
    checkpoint_load(t->resume.path, t->start, t->model);
    t->at = t->resume.at;
    // In its own directory the checkpoint is there already, and need not be saved once more.
    if (t->resume.same_out)
        t->saved = t->at.step;
    else
        t->at.best_step = 0; // it stays where it is
}

void trainer_start_weights(Trainer *t) {
    if (t->resume.path)
        restore_checkpoint(t);
    else if (t->start)
        weights_load(t->start, t->model), checkpoint_check_unchanged(t->model_path);
    else
        gpt2_init(t->model, t->settings.seed);
    // After the weights are on the device: so the comparison covers the load, too.
    rank_consistency_check_weights(&t->world, t->model);
}

// ---------------------------------------------------------------------------------------------
// Checkpoints

bool trainer_is_best(Trainer *t, double loss) {
    // NaN and infinite losses are never the best: a comparison with NaN is always false.
    if (!t->settings.keep_best || t->at.step == 0 || !isfinite(loss)) return false; // at 0: no checkpoint
    if (t->at.best_step > 0 && loss >= t->at.best_loss) return false;
    t->at.best_step = t->at.step;
    t->at.best_loss = loss;
    return true;
}

/* A save that fails ends the run (output.h), with the checkpoints before it untouched. The run does not continue
 * without checkpoints: its logs are on the same full disk, the user may not notice for days, and a power cut would
 * lose every step since. An ended run is noticed. Once there is room, --resume auto computes the steps since the
 * last checkpoint again, bit for bit: only time is lost. */
void trainer_save(Trainer *t) {
    if (t->saved == t->at.step) return;
    // All ranks note the step; only rank 0 has a log, and only it writes.
    t->saved = t->at.step;
    if (!t->log) return;
    Activity before = activity_begin(ACTIVITY_SAVE);
    run_directory_check(t->resume.lock, t->out);
    // The logs' lengths are taken before the checkpoint is written: a resume cuts the logs back to them.
    t->at.schedule_end = t->plan.schedule.end;
    t->at.data = stream_identity(t->sequences.stream);
    t->at.log = log_offsets(t->log);
    char *path = checkpoints_path(t->out, t->at.step);
    checkpoint_save(path, t->model, &t->at, &t->settings, t->tokenizer);
    log_checkpoint(t->log, t->at.step, path);
    // Old checkpoints are removed only after the new one is complete.
    keep_checkpoints(t->out, &t->settings, &t->at);
    activity_begin(before);
    free(path);
}

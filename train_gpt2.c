/* train_gpt2.c: the program. main, and the training loop, which asks and answers one question: how much
 * data did one update really see?
 *
 * Both builds share this file: `make train_gpt2` links it with the CPU kernels in llmc/cpu/, `make
 * train_gpt2cu` with train_gpt2.cu. It contains no kernels. Read update() first: it is chapter 27 of the
 * course in the order of its sections. Then follow what it calls:
 *
 *     what an update sees         llmc/data/sequences.h, llmc/data/batch.h
 *     loss and gradients          llmc/model/gpt2.h, and behind it llmc/ops.h and llmc/plain/
 *     the learning rate           llmc/optimizer/schedule.h
 *     the sum over ranks          llmc/plain/reduction.c
 *     clipping and AdamW          llmc/optimizer/adamw.h
 *     a run's life around updates llmc/train/trainer.h
 *     what people see             llmc/log/log.h
 *     the other commands          llmc/commands/commands.h */
#include "llmc/base/activity.h"
#include "llmc/base/clock.h"
#include "llmc/base/edit_distance.h"
#include "llmc/base/error.h"
#include "llmc/base/memory.h"
#include "llmc/base/start.h"
#include "llmc/commands/commands.h"
#include "llmc/eval/score.h"
#include "llmc/eval/text_units.h"
#include "llmc/ranks/stop.h"
#include "llmc/ranks/watchdog.h"
#include "llmc/train/evaluate.h"
#include "llmc/train/text.h"
#include "llmc/settings/foreign_options.h"
#include "llmc/train/trainer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---------------------------------------------------------------------------------------------
// One update

// clang-format off
/* Time runs to the right. Two ranks, K = 2 micro-steps each; the model has the buckets a, b and c of
 * gradients, which backward completes from the last layer to the first:
 *
 *     rank 0   forward 0 | backward 0 | forward 1 | backward 1: c   b   a |        | norm | AdamW
 *     rank 1   forward 0 | backward 0 | forward 1 | backward 1: c   b   a |        | norm | AdamW
 *     between                                          all-reduce c   b   a  (wait)
 *                            write         ...            add
 *
 * Backward of the first micro-step writes gradients, the others add to them. Only in the last micro-step
 * do ranks exchange a bucket, as soon as it is complete, while backward computes the next one. */
// clang-format on

/* One update of the weights: its data and its results. */
typedef struct {
    int64_t step;         // its index i, from 0
    uint64_t targets;     // N: targets that count, on all ranks and in all micro-steps
    uint64_t data;        // fingerprint of the sequences served, independent of their order and split
    double learning_rate; // eta(i)
    double loss;          // mean over the N targets
    double norm;          // 2-norm of the whole gradient, before clipping
    double seconds;
} Update;

/* A rank's current micro-step, as reduction_ready needs it. */
typedef struct {
    bool first, last, has_micro_batch;
} MicroStep;

/* Backward calls it when a bucket of gradients is complete for the current micro-step. Whether ranks
 * exchange is decided here, by `last`, for each bucket at the moment it is complete. In PyTorch a flag
 * decides it (require_backward_grad_sync), which must be set before the FORWARD of the last micro-step;
 * the course's erratum is about setting it too late. Here forward reads no such flag. */
static void bucket_ready(void *context, size_t first, size_t count) {
    const MicroStep *at = context;
    reduction_ready(first, count, at->first, at->last, at->has_micro_batch);
}

/* Chapter 27.3: forward and backward of this rank's micro-batches. Micro-batch k has n_k targets with mean
 * loss L_k, and the loss of the update is sum over k of (n_k / N) L_k. Each token's loss is therefore scaled
 * by 1/N, on every rank alike: that is (n_k / N) * (1 / n_k), whatever n_k is. Nothing is zeroed before: the
 * first micro-step writes the gradients (`accumulate` is false), so the last update's are gone.
 * Returns the fingerprint of the sequences this rank saw. */
static uint64_t accumulate_gradients(Trainer *t, uint64_t N) {
    Batch *batch = t->batch;
    int64_t micro_steps = batch_micro_steps(batch, t->plan.sequences); // K of this rank
    uint64_t data = 0;
    for (int64_t k = 0; k < micro_steps; k++) {
        MicroStep at = {.first = k == 0, .last = k == micro_steps - 1, .has_micro_batch = true};
        bool accumulate = !at.first && !t->settings.exact; // --exact adds them up as integers instead
        int B = batch_load(batch, &t->sequences, t->at.sequences_served, t->plan.sequences, k, &data);
        gpt2_forward(t->model, batch->ids, B, batch->T);
        gpt2_backward(t->model, batch->losses, batch->ids, batch->targets, B, batch->T, 1.0 / (double)N,
                      accumulate, bucket_ready, &at);
    }
    if (micro_steps == 0) { // more ranks than micro-batches: this one only takes part in the sums
        MicroStep at = {.first = true, .last = true, .has_micro_batch = false};
        gpt2_each_bucket(t->model, bucket_ready, &at);
    }
    return data;
}

/* Chapter 27.5: the gradient becomes the SUM over ranks, not their mean: 1/N already counts the targets of
 * all ranks, so a division by R would be one too many. A collective, and it waits. Returns the first element
 * of this rank's own part that was not finite (or with --exact out of range), or -1. */
static int64_t all_reduce_gradients(void) { return reduction_finish(); }

/* Chapter 27.4: the 2-norm of all gradients as one vector; the tied matrix counts once. square_sums (tensors
 * of the model) gets each tensor's part. It waits for the device. */
static double global_norm(const GPT2 *model, double *square_sums) {
    const TensorTable *table = &model->table;
    gradient_square_sums(square_sums, model->grads, table->spans, table->count);
    double sum = 0;
    for (int i = 0; i < table->count; i++) sum += square_sums[i];
    return sqrt(sum);
}

/* Why an update cannot be applied; "" when it can. */
typedef struct {
    char text[160];
} UpdateError;

/* After the all-reduce a value that is not finite can no longer be traced to a rank. So each rank checked its
 * own gradient before it: `bad` is its first bad element, or -1. The lowest rank that has one names it, on
 * all ranks alike. A collective. */
static void name_bad_element(const Trainer *t, int64_t bad, UpdateError *error) {
    int64_t rank = bad >= 0 ? t->world.rank : t->world.size;
    world_all_reduce_min(&rank, 1);
    if (rank == t->world.size) return;
    world_broadcast(&bad, sizeof bad, (int)rank);
    char whose[32] = "the";
    if (t->world.size > 1) snprintf(whose, sizeof whose, "rank %d's", (int)rank);
    snprintf(error->text, sizeof error->text, "%s gradient of %s is not finite%s", whose,
             tensor_table_name_at(&t->model->table, (size_t)bad),
             t->settings.exact ? " or beyond 32768, the range of --exact" : "");
}

/* The one place that looks for what is not finite: this rank's gradient before the all-reduce (`bad`), each
 * tensor's squares after it, the loss. Every rank finds the same. A collective. */
static UpdateError find_error(const Trainer *t, const Update *u, int64_t bad, const double *square_sums) {
    UpdateError error = {""};
    const TensorTable *table = &t->model->table;
    name_bad_element(t, bad, &error);
    for (int i = 0; i < table->count && !error.text[0]; i++)
        if (!isfinite(square_sums[i]))
            snprintf(error.text, sizeof error.text, "the gradient of %s is not finite",
                     table->tensors[i].name);
    if (!isfinite(u->loss) && !error.text[0])
        snprintf(error.text, sizeof error.text, "the loss is not finite");
    return error;
}

/* An update that is not finite changes no weight. It ends the run, or --nonfinite skip:K leaves it out, up to
 * K in a row. Every rank does the same at the same step. */
static void refuse_update(Trainer *t, const Update *u, const UpdateError *error) {
    if (t->at.skipped++ >= t->settings.nonfinite_skips)
        fatal(EXIT_NONFINITE,
              "step %lld: %s (loss %g, norm %g); nothing was updated; try a lower --lr, a longer --warmup, or "
              "--nonfinite skip:K",
              (long long)u->step, error->text, u->loss, u->norm);
    if (t->log)
        warning("step %lld: %s (loss %g, norm %g): skipped", (long long)u->step, error->text, u->loss, u->norm);
}

/* Chapter 27.1: one AdamW step on all weights, with the gradient scaled by the clip factor of 27.4. */
static void apply_update(Trainer *t, const Update *u) {
    GPT2 *model = t->model;
    double clip = clip_scale(u->norm, t->plan.optimizer.clip); // min(1, c / (norm + 1e-6))
    AdamWScalars scalars = adamw_scalars(&t->plan.optimizer, t->at.updates + 1, u->learning_rate, clip);
    adamw_update(model->params, model->master, model->m, model->v, model->grads, model->table.spans,
                 model->table.count, &scalars);
    t->at.updates++;
    t->at.skipped = 0;
}

/* One update, in the order of chapter 27; its section is beside each line. */
static Update update(Trainer *t, double *square_sums) {
    double start = clock_seconds();
    uint64_t served = t->at.sequences_served, S = (uint64_t)t->plan.sequences;
    Update u = {.step = t->at.step};
    u.targets = sequences_valid_total(&t->sequences, served, S);            // 27.3  N
    u.learning_rate = schedule_rate(&t->plan.schedule, u.step);             // 27.2  eta(i)
    u.data = accumulate_gradients(t, u.targets);                            // 27.3  K micro-steps
    int64_t bad = all_reduce_gradients();                                   // 27.5  waits
    world_all_reduce_u64(&u.data, 1);                                       // 27.5
    double loss = batch_all_reduce_losses(t->batch, t->plan.sequences);     // 27.6  waits
    u.loss = loss / (double)u.targets;                                      // 27.6  sum / N
    u.norm = global_norm(t->model, square_sums);                            // 27.4  waits
    UpdateError error = find_error(t, &u, bad, square_sums);                // 27.4  NaN is not clipped
    if (error.text[0])
        refuse_update(t, &u, &error);
    else
        apply_update(t, &u);                                                // 27.4, 27.1  clip, AdamW
    t->at.sequences_served += S;
    t->at.step++;
    u.seconds = clock_seconds() - start;
    t->at.tokens += u.targets;
    t->at.seconds += u.seconds;
    return u;
}

static void log_update(Log *log, const Update *u) {
    StepRecord record = {.step = u->step,
                         .loss = u->loss,
                         .lr = u->learning_rate,
                         .norm = u->norm,
                         .tokens = u->targets,
                         .data = u->data,
                         .seconds = u->seconds};
    log_train(log, &record);
}

// ---------------------------------------------------------------------------------------------
// The run

static bool due(int64_t every, int64_t done, int64_t steps) {
    return every > 0 && (done % every == 0 || done == steps);
}

/* The validation loss after `done` updates. */
static Evaluation validate(Trainer *t) {
    Activity before = activity_begin(ACTIVITY_EVALUATE);
    Evaluation result = evaluate(t->model, t->batch, &t->val, t->plan.val_sequences);
    activity_begin(before);
    if (!isfinite(result.loss))
        fatal(EXIT_NONFINITE, "step %lld: the validation loss is %g; nothing more was saved; try a lower --lr",
              (long long)t->at.step, result.loss);
    if (t->log) log_val(t->log, t->at.step, result.loss, result.tokens);
    return result;
}

/* The score on the examples of --hellaswag after `done` updates. */
static void score(Trainer *t) {
    Activity before = activity_begin(ACTIVITY_EVALUATE);
    Score score = score_examples(t->model, t->examples, &t->world);
    activity_begin(before);
    if (t->log)
        log_hella(t->log, t->at.step, score_share(score.acc, &score), score_share(score.acc_norm, &score),
                  score.examples);
}

static void log_generated_text(Trainer *t) {
    if (!t->log) return;
    const Settings *s = &t->settings;
    Sampling sampling = {.temperature = s->temperature,
                         .top_k = (int)s->top_k,
                         .seed = s->seed + (uint64_t)t->at.step};
    Activity before = activity_begin(ACTIVITY_SAMPLE);
    char *text = text_sample(t->model, t->tokenizer, s->sample_tokens, &sampling);
    activity_begin(before);
    log_sample(t->log, t->at.step, text);
    free(text);
}

/* ", 1.2345 bits per byte": a figure that compares vocabularies. Empty where the tokenizer is not known. */
static const char *bits_per_byte(const Trainer *t, const Evaluation *validation, char text[48]) {
    TextUnits units = {0};
    if (t->tokenizer) units = text_units(t->val.stream, t->tokenizer, 1, validation->tokens);
    text[0] = '\0';
    if (units.bytes)
        snprintf(text, 48, ", %.4f bits per byte",
                 validation->loss * (double)validation->tokens / log(2) / (double)units.bytes);
    return text;
}

/* Trains until all steps are done, or a signal asks to stop. */
static void train(Trainer *t) {
    const Settings *s = &t->settings;
    int64_t steps = t->plan.steps, first = t->at.step;
    double *square_sums = memory_new((size_t)t->model->table.count, sizeof(double), "square sums");
    Update last = {0};
    Evaluation validation = {0};
    // A step is one update. After it: validation, scores, samples and a checkpoint, each when it is due. The last
    // step executed is steps - 1 (chapter 27.2).
    while (t->at.step < steps && !stop_agreed()) {
        if (t->at.step == 0 && t->plan.val_sequences > 0) validation = validate(t);
        if (t->at.step == 0 && t->examples) score(t);
        last = update(t, square_sums);
        if (t->log) log_update(t->log, &last);
        bool best = false;
        if (t->plan.val_sequences > 0 && due(s->val_every, t->at.step, steps)) {
            validation = validate(t);
            best = trainer_is_best(t, validation.loss);
        }
        if (t->examples && due(s->val_every, t->at.step, steps)) score(t);
        if (s->sample_tokens > 0 && due(s->sample_every, t->at.step, steps)) log_generated_text(t);
        if (best || due(s->save_every, t->at.step, steps)) trainer_save(t);
    }
    free(square_sums);
    // stopped by a signal: what was done since the last checkpoint is saved
    if (t->at.step < steps) trainer_save(t);
    if (!t->log) return;
    if (t->at.step > first)
        log_say(t->log, "trained %lld update%s on %llu tokens: last training loss %.4f, peak memory %.1f MB",
                (long long)t->at.step, t->at.step == 1 ? "" : "s", (unsigned long long)t->at.tokens, last.loss,
                (double)memory_peak() / 1e6);
    char bits[48];
    if (validation.tokens)
        log_say(t->log, "validation loss %.4f nats per token over %llu tokens%s", validation.loss,
                (unsigned long long)validation.tokens, bits_per_byte(t, &validation, bits));
    if (s->keep_best && t->at.best_step > 0)
        log_say(t->log, "best: step %lld, validation loss %.4f; %s/best names its checkpoint",
                (long long)t->at.best_step, t->at.best_loss, t->out);
}

/* Builds the model and trains it. Returns the exit code. */
static int run(Trainer *t, const Dataset *data) {
    const Settings *s = &t->settings;
    // In the order of the diagram in trainer.h. Memory is checked before anything is changed.
    plan_check_memory(&t->plan, s, &t->world);
    trainer_open_directory(t);
    t->model = gpt2_new(&t->plan.config, t->plan.B, s->recompute, true);
    trainer_start_weights(t);
    t->batch = batch_new(t->world, t->plan.B, t->plan.T, t->plan.sequences);
    reduction_open(t->model->grads, t->model->table.elements, s->exact,
                   (int)t->plan.max_micro_steps);
    trainer_start_log(t, data);
    activity_begin(ACTIVITY_TRAIN);
    train(t);
    activity_begin(ACTIVITY_FINISH);

    // All ranks come here at the same step; rank 0 writes the end of the logs.
    bool done = t->at.step == t->plan.steps;
    if (t->log) {
        if (!done) log_say(t->log, "stopped on request; to continue: --resume auto --out %s", t->out);
        bool saved = t->saved >= 0;
        log_say(t->log, "%s are in %s; updates took %.1f s%s",
                saved ? "log.txt, metrics.jsonl and checkpoints" : "log.txt and metrics.jsonl", t->out,
                t->at.seconds, saved ? "" : "; no checkpoint was saved (--save-every 0)");
        log_close(t->log, done ? "done" : "stopped", t->at.step);
    }
    reduction_close();
    batch_free(t->batch);
    gpt2_free(t->model);
    return done ? EXIT_DONE : EXIT_RESUMABLE;
}

static int command_train(int argc, char **argv) {
    watchdog_start(options_hang_timeout(argc, argv));
    World world = world_open(&argc, &argv);
    Trainer t = {.settings = options_parse(argc, argv), .world = world, .saved = -1};
    const Settings *s = &t.settings;
    if (s->ranks || s->micro_steps || s->rates)
        fatal(EXIT_USAGE, "--%s is an option of `train_gpt2 plan`; %s",
              s->ranks ? "ranks" : s->micro_steps ? "micro-steps" : "rates",
              s->ranks         ? "start ranks with mpirun -np R"
              : s->micro_steps ? "give --total-batch"
                               : "metrics.jsonl has the rate of every step");
    // Signals and heartbeats first: the next calls may take long, and may wait for other ranks.
    stop_watch();
    watchdog_join(&world, s->rank_timeout, s->hang_timeout);
    t.resume = resume_open(&t.settings, &world);
    Dataset data = trainer_prepare(&t);
    int code = trainer_is_finished(&t) ? EXIT_DONE : run(&t, &data);
    examples_close(t.examples);
    weights_close(t.start);
    resume_close(&t.resume);
    dataset_close(&data);
    settings_free(&t.settings);
    free(t.model_path);
    free(t.out);
    watchdog_stop();
    world_close();
    return code;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {{"train", command_train},   {"plan", command_plan},     {"sample", command_sample},
                {"eval", command_eval},     {"verify", command_verify}, {"convert", command_convert},
              {"tokenize", command_tokenize}};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

/* Ends the program: the first word is not a command. */
static _Noreturn void refuse_command(const char *word) {
    const char *nearest = NULL;
    int limit = slip_distance(word);
    for (size_t i = 0; i < COMMANDS; i++) {
        int distance = edit_distance(word, commands[i].name);
        if (distance <= limit) nearest = commands[i].name, limit = distance - 1;
    }
    if (nearest) fatal(EXIT_USAGE, "'%.80s' is not a command; did you mean %s?", word, nearest);
    if (foreign_is_python(word)) fatal(EXIT_USAGE, "'%.80s': %s", word, foreign_python_hint);
    if (access(word, F_OK) == 0)
        fatal(EXIT_USAGE, "'%.80s' is not a command; to train on it: --data %.80s (see --help)", word, word);
    fatal(EXIT_USAGE, "'%.80s' is not a command; there are train, plan, sample, eval, tokenize, verify and convert",
          word);
}

/* The exit code of a command whose result is what it printed. Training has its results in files: it does not matter
 * if the reader of the output has ended. */
static int printed(int code) {
    if (fflush(stdout) != 0 || ferror(stdout))
        fatal(EXIT_RUNTIME, "standard output cannot be written: %s; what was printed is not complete", strerror(errno));
    return code;
}

int main(int argc, char **argv) {
    process_start(argv);
    if (argc > 1 && strcmp(argv[1], "--version") == 0) return command_version(argc, argv);
    if (argc < 2 || argv[1][0] == '-') return command_train(argc, argv);
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0) {
            int code = commands[i].run(argc - 1, argv + 1);
            return commands[i].run == command_train ? code : printed(code);
        }
    refuse_command(argv[1]);
}

/* train_gpt2.c: the program. main, and the training loop, which asks and answers one question: how much
 * data did one update really see?
 *
 * Both builds share this file: `make train_gpt2` links it with the CPU kernels in llmc/cpu/. It contains
 * no mathematics: that is in gpt2.c and block.c (the model), schedule.c and adamw.c (the update), sequences.c
 * and batch.c (the data), and in the kernels behind llmc/ops.h. Read update() first. */
#include "llmc/base/error.h"
#include "llmc/base/memory.h"
#include "llmc/base/edit_distance.h"
#include "llmc/base/start.h"
#include "llmc/commands/commands.h"
#include "llmc/ranks/stop.h"
#include "llmc/ranks/watchdog.h"
#include "llmc/train/evaluate.h"
#include "llmc/train/text.h"
#include "llmc/train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// ---------------------------------------------------------------------------------------------
// One update

/* Where a rank stands in its micro-steps: what reduction_ready needs to know. */
typedef struct {
    bool first, last, has_micro_batch;
} MicroStep;

static void bucket_ready(void *context, size_t first, size_t count) {
    const MicroStep *at = context;
    reduction_ready(first, count, at->first, at->last, at->has_micro_batch);
}

/* Forward and backward of this rank's micro-batches. Each token's loss is divided by N, the valid targets of the
 * whole update on all ranks, so that the gradients of all micro-batches add up to that of the mean loss
 * (chapter 27.3). Returns the fingerprint of the sequences this rank saw. */
static uint64_t accumulate_gradients(Trainer *t, uint64_t N) {
    Batch *batch = t->batch;
    int64_t micro_batches = batch_micro_steps(batch, t->plan.sequences);
    uint64_t data = 0;
    for (int64_t micro = 0; micro < micro_batches; micro++) {
        MicroStep at = {
            .first = micro == 0, .last = micro == micro_batches - 1, .has_micro_batch = true};
        bool accumulate =
            !at.first && !t->settings.exact; // --exact adds micro-batches up as integers
        int B =
            batch_load(batch, &t->sequences, t->sequences_served, t->plan.sequences, micro, &data);
        gpt2_forward(t->model, batch->ids, B, batch->T);
        gpt2_backward(t->model, batch->losses, batch->ids, batch->targets, B, batch->T, 1.0 / (double)N,
                      accumulate, bucket_ready, &at);
    }
    if (micro_batches == 0) { // more ranks than micro-batches: this one only takes part in the sums
        MicroStep at = {.first = true, .last = true, .has_micro_batch = false};
        gpt2_each_bucket(t->model, bucket_ready, &at);
    }
    return data;
}

/* What made an update unusable, for the message; "" when nothing did. */
typedef struct {
    char text[160];
} Culprit;

/* The 2-norm of the whole gradient, the tied matrix counted once (chapter 27.4). The first tensor that is
 * not finite becomes the culprit. */
static double global_norm(const GPT2 *model, double *sums, Culprit *culprit) {
    const TensorTable *table = &model->table;
    gradient_square_sums(sums, model->grads, table->spans, table->count);
    double sum = 0;
    for (int i = 0; i < table->count; i++) {
        if (!isfinite(sums[i]) && !culprit->text[0])
            snprintf(culprit->text, sizeof culprit->text, "the gradient of %s is not finite",
                     table->tensors[i].name);
        sum += sums[i];
    }
    return sqrt(sum);
}

/* After the sum over ranks nobody can see whose element spoilt it, so each rank looked at its own before:
 * `bad` is the first such element of this rank, or -1. The first rank that has one names it. */
static void name_bad_element(const Trainer *t, int64_t bad, Culprit *culprit) {
    int64_t rank = bad >= 0 ? t->world.rank : t->world.size;
    world_min_i64(&rank, 1);
    if (rank == t->world.size) return;
    world_broadcast(&bad, sizeof bad, (int)rank);
    char whose[32] = "the";
    if (t->world.size > 1) snprintf(whose, sizeof whose, "rank %d's", (int)rank);
    snprintf(culprit->text, sizeof culprit->text, "%s gradient of %s is not finite%s", whose,
             tensor_table_name_at(&t->model->table, (size_t)bad),
             t->settings.exact ? " or beyond 32768, the range of --exact" : "");
}

/* An update that is not finite changes no weight. It ends the run, or with --nonfinite skip:K is left
 * out, up to K in a row. Every rank comes here at the same step, for all of them know the culprit. */
static void refuse_update(Trainer *t, const StepRecord *record, const Culprit *culprit) {
    if (t->skipped++ >= t->settings.nonfinite_skips)
        fatal(EXIT_NONFINITE,
              "step %lld: %s (loss %g, norm %g); nothing was updated; try a lower --lr, a longer --warmup, or "
              "--nonfinite skip:K",
              (long long)t->step, culprit->text, record->loss, record->norm);
    if (t->log)
        warning("step %lld: %s (loss %g, norm %g): skipped", (long long)t->step, culprit->text,
                record->loss, record->norm);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* One update, in the order of chapter 27.3: gradients of all micro-steps, the sum over ranks, the global
 * norm and its clip factor, this step's learning rate, one AdamW step. */
static StepRecord update(Trainer *t, double *square_sums) {
    GPT2 *model = t->model;
    double start = now();
    uint64_t N =
        sequences_valid_total(&t->sequences, t->sequences_served, (uint64_t)t->plan.sequences);
    StepRecord record = {.step = t->step, .tokens = N};
    record.lr = schedule_rate(&t->plan.schedule, t->step);

    Culprit culprit = {""};
    record.data = accumulate_gradients(t, N);
    name_bad_element(t, reduction_finish(), &culprit);
    world_sum_u64(&record.data, 1);
    record.loss = batch_all_reduce_losses(t->batch, t->plan.sequences) / (double)N;
    record.norm = global_norm(model, square_sums, &culprit);
    if (!isfinite(record.loss) && !culprit.text[0])
        snprintf(culprit.text, sizeof culprit.text, "the loss is not finite");

    if (!culprit.text[0]) {
        AdamWStep step = adamw_step(&t->optimizer, t->updates + 1, record.lr, record.norm);
        adamw_update(model->params, model->master, model->m, model->v, model->grads, model->table.spans,
                     model->table.count, &step);
        t->updates++;
        t->skipped = 0;
    } else {
        refuse_update(t, &record, &culprit);
    }
    t->sequences_served += (uint64_t)t->plan.sequences;
    t->step++;
    record.seconds = now() - start;
    t->tokens += N;
    t->seconds += record.seconds;
    return record;
}

// ---------------------------------------------------------------------------------------------
// The run

static bool due(int64_t every, int64_t done, int64_t steps) {
    return every > 0 && (done % every == 0 || done == steps);
}

/* The validation loss after `done` updates. */
static Evaluation validate(Trainer *t) {
    Evaluation result = evaluate(t->model, t->batch, &t->val, t->plan.val_sequences);
    if (t->log) log_val(t->log, t->step, result.loss, result.tokens);
    return result;
}

static void log_generated_text(Trainer *t) {
    if (!t->log) return;
    const Settings *s = &t->settings;
    Sampling sampling = {.temperature = s->temperature,
                         .top_k = (int)s->top_k,
                         .seed = s->seed + (uint64_t)t->step};
    char *text =
        text_sample(t->model, stream_is_bytes(t->sequences.stream), s->sample_tokens, &sampling);
    log_sample(t->log, t->step, text);
    free(text);
}

/* Trains until all steps are done, or a signal asks to stop. */
static void train(Trainer *t) {
    const Settings *s = &t->settings;
    int64_t steps = t->plan.steps, first = t->step;
    double *square_sums = memory_new((size_t)t->model->table.count, sizeof(double), "square sums");
    StepRecord record = {0};
    Evaluation validation = {0};
    while (t->step < steps && !stop_agreed()) {
        if (t->step == 0 && t->plan.val_sequences > 0) validation = validate(t);
        record = update(t, square_sums);
        if (t->log) log_train(t->log, &record);
        if (t->plan.val_sequences > 0 && due(s->val_every, t->step, steps))
            validation = validate(t);
        if (s->sample_tokens > 0 && due(s->sample_every, t->step, steps)) log_generated_text(t);
        if (due(s->save_every, t->step, steps)) trainer_save(t);
    }
    free(square_sums);
    if (t->step < steps) trainer_save(t);
    if (!t->log) return;
    if (t->step > first)
        log_say(t->log, "trained %lld updates on %llu tokens: last training loss %.4f, peak memory %.1f MB",
                (long long)t->step, (unsigned long long)t->tokens, record.loss,
                (double)memory_peak() / 1e6);
    if (validation.tokens)
        log_say(t->log, "validation loss %.4f nats per token over %llu tokens", validation.loss,
                (unsigned long long)validation.tokens);
}

/* Builds the model and trains it. Returns the exit code. */
static int run(Trainer *t, const Dataset *data) {
    const Settings *s = &t->settings;
    plan_check_memory(&t->plan, s, &t->world);
    trainer_start_log(t, data);
    t->model = gpt2_new(&t->plan.config, t->plan.B, s->recompute, true);
    trainer_start_weights(t);
    t->batch = batch_new(t->world, t->plan.B, t->plan.T, t->plan.sequences);
    reduction_open(t->model->grads, t->model->table.elements, s->exact,
                   (int)t->plan.max_micro_steps);
    train(t);

    bool done = t->step == t->plan.steps;
    if (t->log) {
        if (!done) log_say(t->log, "stopped on request; to go on: --resume auto --out %s", t->out);
        log_say(t->log, "log.txt, metrics.jsonl and checkpoints are in %s; updates took %.1f s", t->out,
                t->seconds);
        log_close(t->log, done ? "done" : "stopped", t->step);
    }
    reduction_close();
    batch_free(t->batch);
    gpt2_free(t->model);
    return done ? EXIT_DONE : EXIT_RESUMABLE;
}

static int command_train(int argc, char **argv) {
    World world = world_open(&argc, &argv);
    Trainer t = {.settings = options_parse(argc, argv), .world = world, .saved = -1};
    const Settings *s = &t.settings;
    if (s->ranks || s->micro_steps)
        fatal(EXIT_USAGE, "--%s is an option of `train_gpt2 plan`; %s", s->ranks ? "ranks" : "micro-steps",
              s->ranks ? "start ranks with mpirun -np R" : "give --total-batch");
    stop_watch();
    watchdog_start(&world, s->rank_timeout);
    t.resume = resume_open(&t.settings, &world);
    Dataset data = trainer_prepare(&t);
    t.optimizer = (AdamW){.beta1 = s->beta1,
                          .beta2 = s->beta2,
                          .eps = s->eps,
                          .weight_decay = s->weight_decay,
                          .clip = s->clip};
    int code = trainer_is_finished(&t) ? EXIT_DONE : run(&t, &data);
    weights_close(t.start);
    resume_close(&t.resume);
    dataset_close(&data);
    settings_free(&t.settings);
    free(t.out);
    watchdog_stop();
    world_close();
    return code;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {{"train", command_train},   {"plan", command_plan},     {"sample", command_sample},
                {"eval", command_eval},     {"verify", command_verify}, {"convert", command_convert}};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

/* Ends the program: the first word is no command. */
static _Noreturn void refuse_command(const char *word) {
    const char *nearest = NULL;
    int limit = slip_distance(word);
    for (size_t i = 0; i < COMMANDS; i++) {
        int distance = edit_distance(word, commands[i].name);
        if (distance <= limit) nearest = commands[i].name, limit = distance - 1;
    }
    if (nearest) fatal(EXIT_USAGE, "'%.80s' is no command; did you mean %s?", word, nearest);
    fatal(EXIT_USAGE, "'%.80s' is no command; there are train, plan, sample, eval, verify and convert", word);
}

int main(int argc, char **argv) {
    process_start();
    if (argc < 2 || argv[1][0] == '-') return command_train(argc, argv);
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    refuse_command(argv[1]);
}

/* train_gpt2.c: the program. main, and the training loop, which asks and answers one question: how much
 * data did one update really see?
 *
 * Both builds share this file: `make train_gpt2` links it with the CPU kernels in llmc/cpu/. It contains
 * no mathematics: that is in gpt2.c and block.c (the model), schedule.c and adamw.c (the update), rows.c
 * and batch.c (the data), and in the kernels behind llmc/ops.h. Read update() first. */
#include "llmc/adamw.h"
#include "llmc/agreement.h"
#include "llmc/batch.h"
#include "llmc/checkpoint.h"
#include "llmc/checkpoints.h"
#include "llmc/commands.h"
#include "llmc/error.h"
#include "llmc/eval.h"
#include "llmc/gpt2.h"
#include "llmc/log.h"
#include "llmc/memory.h"
#include "llmc/nearest.h"
#include "llmc/options.h"
#include "llmc/run_directory.h"
#include "llmc/plan.h"
#include "llmc/resume.h"
#include "llmc/stop.h"
#include "llmc/text.h"
#include "llmc/watchdog.h"
#include "llmc/weights.h"
#include "llmc/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    Settings settings;
    World world;
    Plan plan;
    Rows rows, val;
    GPT2 *model;
    Batch *batch;
    AdamW optimizer;
    Log *log;  // NULL on all ranks but 0
    char *out; // the run's directory, likewise

    // Where the run begins: a checkpoint, other weights (NULL: random ones), or nothing.
    Resume resume;
    Weights *start;

    // What changes from update to update.
    int64_t step;      // index of the next update
    int64_t updates;   // AdamW's t: updates that changed the weights
    uint64_t position; // rows served so far
    int64_t skipped;   // updates in a row that were not finite
    uint64_t tokens;   // targets trained on
    double seconds;    // spent in updates
    int64_t saved;     // step of the newest checkpoint; -1: none
} Trainer;

// ---------------------------------------------------------------------------------------------
// One update

/* Where a rank stands in its micro-steps: what reduction_ready needs to know. */
typedef struct {
    bool first, last, has_unit;
} MicroStep;

static void bucket_ready(void *context, size_t first, size_t count) {
    const MicroStep *at = context;
    reduction_ready(first, count, at->first, at->last, at->has_unit);
}

/* Forward and backward of this rank's units. Each token's loss is divided by N, the valid targets of the
 * whole update on all ranks, so that the gradients of all units add up to that of the mean loss
 * (chapter 27.3). Returns the fingerprint of the rows this rank saw. */
static uint64_t accumulate_gradients(Trainer *t, uint64_t N) {
    Batch *batch = t->batch;
    int64_t units = batch_units(batch, t->plan.rows);
    uint64_t data = 0;
    for (int64_t micro = 0; micro < units; micro++) {
        MicroStep at = {.first = micro == 0, .last = micro == units - 1, .has_unit = true};
        bool accumulate = !at.first && !t->settings.exact; // --exact adds units up as integers
        int B = batch_load(batch, &t->rows, t->position, t->plan.rows, micro, &data);
        gpt2_forward(t->model, batch->ids, B, batch->T);
        gpt2_backward(t->model, batch->losses, batch->ids, batch->targets, B, batch->T, 1.0 / (double)N,
                      accumulate, bucket_ready, &at);
    }
    if (units == 0) { // more ranks than units: this one only takes part in the sums
        MicroStep at = {.first = true, .last = true, .has_unit = false};
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
    uint64_t N = rows_valid_total(&t->rows, t->position, (uint64_t)t->plan.rows);
    StepRecord record = {.step = t->step, .tokens = N};
    record.lr = schedule_rate(&t->plan.schedule, t->step);

    Culprit culprit = {""};
    record.data = accumulate_gradients(t, N);
    name_bad_element(t, reduction_finish(), &culprit);
    world_sum_u64(&record.data, 1);
    record.loss = batch_loss_sum(t->batch, t->plan.rows) / (double)N;
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
    t->position += (uint64_t)t->plan.rows;
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
    Evaluation result = evaluate(t->model, t->batch, &t->val, t->plan.val_rows);
    if (t->log) log_val(t->log, t->step, result.loss, result.tokens);
    return result;
}

static void speak(Trainer *t) {
    if (!t->log) return;
    const Settings *s = &t->settings;
    Sampling sampling = {.temperature = s->temperature,
                         .top_k = (int)s->top_k,
                         .seed = s->seed + (uint64_t)t->step};
    char *text = text_sample(t->model, stream_is_bytes(t->rows.stream), s->sample_tokens, &sampling);
    log_sample(t->log, t->step, text);
    free(text);
}

/* Writes the checkpoint after t->step updates, and removes old ones. */
static void save(Trainer *t) {
    if (t->saved == t->step) return;
    t->saved = t->step;
    if (!t->log) return;
    TrainerState at = {.step = t->step,
                       .updates = t->updates,
                       .skipped = t->skipped,
                       .position = t->position,
                       .tokens = t->tokens,
                       .seconds = t->seconds,
                       .schedule_end = t->plan.schedule.end,
                       .log = log_offsets(t->log),
                       .data = stream_identity(t->rows.stream)};
    char *path = checkpoints_path(t->out, t->step);
    checkpoint_save(path, t->model, &at, &t->settings, stream_is_bytes(t->rows.stream));
    log_checkpoint(t->log, t->step, path);
    checkpoints_keep(t->out, t->settings.keep);
    free(path);
}

/* Takes up the run where the checkpoint left it. */
static void take_up(Trainer *t) {
    const TrainerState *at = &t->resume.at;
    checkpoint_load(t->resume.path, t->start, t->model);
    t->step = at->step;
    t->updates = at->updates;
    t->skipped = at->skipped;
    t->position = at->position;
    t->tokens = at->tokens;
    t->seconds = at->seconds;
    if (t->resume.same_out) t->saved = at->step;
}

/* Trains until all steps are done, or a signal asks to stop. */
static void train(Trainer *t) {
    const Settings *s = &t->settings;
    int64_t steps = t->plan.steps, first = t->step;
    double *square_sums = memory_new((size_t)t->model->table.count, sizeof(double), "square sums");
    StepRecord record = {0};
    Evaluation validation = {0};
    while (t->step < steps && !stop_agreed()) {
        if (t->step == 0 && t->plan.val_rows > 0) validation = validate(t);
        record = update(t, square_sums);
        if (t->log) log_train(t->log, &record);
        if (t->plan.val_rows > 0 && due(s->val_every, t->step, steps)) validation = validate(t);
        if (s->sample_tokens > 0 && due(s->sample_every, t->step, steps)) speak(t);
        if (due(s->save_every, t->step, steps)) save(t);
    }
    free(square_sums);
    if (t->step < steps) save(t);
    if (!t->log) return;
    if (t->step > first)
        log_say(t->log, "trained %lld updates on %llu tokens: last training loss %.4f, peak memory %.1f MB",
                (long long)t->step, (unsigned long long)t->tokens, record.loss,
                (double)memory_peak() / 1e6);
    if (validation.tokens)
        log_say(t->log, "validation loss %.4f nats per token over %llu tokens", validation.loss,
                (unsigned long long)validation.tokens);
}

/* The run's directory: the one to go on in, or a new one. --resume auto without a good checkpoint starts
 * anew where the run was. */
static char *open_directory(const Trainer *t) {
    const Settings *s = &t->settings;
    if (t->resume.same_out) {
        checkpoints_set_aside(s->out, t->resume.at.step);
        return memory_string(s->out);
    }
    bool anew = strcmp(s->resume, "auto") == 0 && !t->resume.path;
    if (anew) checkpoints_set_aside(s->out, -1);
    return run_directory_open(s->out, s->overwrite || anew);
}

/* Opens the run's files on rank 0, prints the start-up table and writes the settings record; or cuts the
 * logs back to where the checkpoint was written. */
static void start_log(Trainer *t, const Dataset *data) {
    if (t->world.rank != 0) return;
    const Settings *s = &t->settings;
    const Resume *resume = &t->resume;
    t->out = open_directory(t);
    plan_print(&t->plan, s, &t->world, data, &t->rows);
    double flops = gpt2_flops_per_token(&t->plan.config), peak = backend_peak_flops() * t->world.size;
    if (resume->same_out) {
        t->log = log_resume(t->out, t->plan.steps, s->log_every, flops, peak, resume->at.log);
        log_checkpoint(t->log, resume->at.step, resume->path);
    } else {
        t->log = log_open(t->out, t->plan.steps, s->log_every, flops, peak);
        log_settings(t->log, s);
    }
    if (t->start && !resume->path)
        log_say(t->log, "weights from %s (%s)", s->model, weights_format(t->start));
    if (resume->path)
        log_say(t->log, "resumed from %s: %lld of %lld updates are done", resume->path,
                (long long)resume->at.step, (long long)t->plan.steps);
}

/* Opens the data and the device, and plans the run: all that is common to training and planning. */
static Dataset prepare(Trainer *t) {
    const Settings *s = &t->settings;
    Dataset data = dataset_open(s);
    ranks_agree(&t->world, s, &data);
    const char *start = t->resume.path ? t->resume.path : weights_path(s->model);
    if (start) t->start = weights_open(start);
    Config config = plan_config(s, &data, t->start ? weights_config(t->start) : NULL);
    stream_set_vocab(data.train, config.vocab);
    if (data.val) stream_set_vocab(data.val, config.vocab);
    t->rows = rows_new(data.train, config.seq_len, s->seed, s->shuffle);
    if (data.val) t->val = rows_new(data.val, config.seq_len, s->seed, false);
    backend_open(t->world.local_rank, t->world.local_size, (int)s->threads);
    t->plan = plan_make(s, &config, &t->world, &t->rows, data.val ? &t->val : NULL);
    return data;
}

/* `plan`: prints what one update will see, here or in a world of --ranks, and trains nothing. */
static int command_plan(int argc, char **argv) {
    Trainer t = {.world = world_open(&argc, &argv)};
    t.settings = options_parse(argc, argv);
    const Settings *s = &t.settings;
    if (s->ranks)
        t.world = (World){.size = (int)s->ranks, .local_size = (int)s->ranks, .launcher = "--ranks"};
    Dataset data = prepare(&t);
    t.settings.total_batch = t.plan.rows * t.plan.T; // --micro-steps may have decided
    if (t.world.rank == 0) plan_print(&t.plan, s, &t.world, &data, &t.rows);
    weights_close(t.start);
    dataset_close(&data);
    options_free(&t.settings);
    world_close();
    return EXIT_DONE;
}

/* Whether the checkpoint to resume from is the end of the run; refuses one that is of another run. */
static bool is_finished(const Trainer *t) {
    const Resume *resume = &t->resume;
    if (!resume->path) return false;
    RunFacts facts = {t->plan.T, stream_identity(t->rows.stream), t->plan.schedule.end};
    resume_check(resume, &t->settings, &facts, weights_config(t->start)->seq_len);
    if (resume->at.step < t->plan.steps) return false;
    if (t->world.rank == 0)
        printf("%s: this run is finished, all %lld updates are done; --steps N goes on\n", resume->path,
               (long long)t->plan.steps);
    return true;
}

/* Builds the model and trains it. Returns the exit code. */
static int run(Trainer *t, const Dataset *data) {
    const Settings *s = &t->settings;
    start_log(t, data);
    t->model = gpt2_new(&t->plan.config, t->plan.B, s->recompute, true);
    if (t->resume.path)
        take_up(t);
    else if (t->start)
        weights_load(t->start, t->model);
    else
        gpt2_init(t->model, s->seed);
    ranks_agree_on_start(&t->world, t->model);
    t->batch = batch_new(t->world, t->plan.B, t->plan.T, t->plan.rows);
    reduction_open(t->model->grads, t->model->table.elements, s->exact, (int)t->plan.most);
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
    Dataset data = prepare(&t);
    t.optimizer = (AdamW){.beta1 = s->beta1,
                          .beta2 = s->beta2,
                          .eps = s->eps,
                          .weight_decay = s->weight_decay,
                          .clip = s->clip};
    int code = is_finished(&t) ? EXIT_DONE : run(&t, &data);
    weights_close(t.start);
    resume_close(&t.resume);
    dataset_close(&data);
    options_free(&t.settings);
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
    if (argc < 2 || argv[1][0] == '-') return command_train(argc, argv);
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    refuse_command(argv[1]);
}

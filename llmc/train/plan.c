/* plan.c: see plan.h. */
#include "plan.h"

#include "../base/error.h"
#include "../data/batch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef long long wide; // for printf

// ---------------------------------------------------------------------------------------------
// Deriving

/* The value an option gives, or the named shape's own when it was not given (0). */
static int given_or(int64_t given, int own) { return given ? (int)given : own; }

static Config named_shape(const Settings *s, const Dataset *data) {
    Config config;
    if (!config_named(s->model, &config))
        fatal(EXIT_USAGE,
              "--model %s is neither a shape (tiny, gpt2, gpt2-medium, gpt2-large or gpt2-xl) nor a file or "
              "directory",
              s->model);
    config.layers = given_or(s->layers, config.layers);
    config.heads = given_or(s->heads, config.heads);
    config.channels = given_or(s->channels, config.channels);
    config.seq_len = given_or(s->seq_len, config.seq_len);
    config.vocab = given_or(s->vocab, dataset_vocab(data));
    return config;
}

static void check_stored(const char *option, int64_t given, int stored) {
    if (given && given != stored)
        fatal(EXIT_USAGE, "--%s %lld: the weights to start from have %d; leave it out", option, (wide)given,
              stored);
}

/* The shape of weights that exist. Only their rows can be made shorter: then positions are dropped. */
static Config stored_shape(const Settings *s, const Dataset *data, const Config *stored) {
    check_stored("layers", s->layers, stored->layers);
    check_stored("heads", s->heads, stored->heads);
    check_stored("channels", s->channels, stored->channels);
    check_stored("vocab", s->vocab, stored->vocab);
    if (s->seq_len > stored->seq_len) check_stored("seq-len", s->seq_len, stored->seq_len);
    if (stream_is_bytes(data->train) && stored->vocab != 256)
        fatal(EXIT_USAGE,
              "%s is text, read as bytes, but the weights to start from have a vocabulary of %d tokens; give "
              "token files with --data",
              stream_name(data->train), stored->vocab);
    Config config = *stored;
    config.seq_len = given_or(s->seq_len, stored->seq_len);
    return config;
}

Config plan_config(const Settings *s, const Dataset *data, const Config *stored) {
    Config config = stored ? stored_shape(s, data, stored) : named_shape(s, data);
    const char *problem = config_problem(&config);
    if (problem)
        fatal(EXIT_USAGE, "%s (this shape: %d layers, %d heads, %d channels, rows of %d tokens)", problem,
              config.layers, config.heads, config.channels, config.seq_len);
    return config;
}

/* What `plan --micro-steps K` asks about: K full units on every rank. */
static int64_t rows_of_micro_steps(const Settings *s, int64_t T, int ranks) {
    double tokens = (double)s->batch * (double)T * (double)s->micro_steps * ranks;
    if (tokens > 1e15)
        fatal(EXIT_USAGE, "--micro-steps %lld makes updates of %g tokens; the most is 1e15",
              (wide)s->micro_steps, tokens);
    return s->batch * s->micro_steps * ranks;
}

static int64_t rows_per_update(int64_t total, int64_t T) {
    if (total % T == 0) return total / T;
    int64_t below = total / T * T;
    if (below == 0)
        fatal(EXIT_USAGE,
              "--total-batch %lld is less than one row of %lld tokens; the nearest valid total is %lld",
              (wide)total, (wide)T, (wide)T);
    fatal(EXIT_USAGE,
          "--total-batch %lld is not a whole number of rows of %lld tokens (--seq-len); the nearest valid "
          "totals are %lld and %lld",
          (wide)total, (wide)T, (wide)below, (wide)(below + T));
}

static int64_t steps_of(const Settings *s, const Rows *train, int64_t rows) {
    if (s->steps >= 0) return s->steps;
    double steps = ceil(s->epochs * (double)train->rows / (double)rows);
    if (!(steps >= 1 && steps < 9e15))
        fatal(EXIT_USAGE, "--epochs %g of %lld rows make %g updates; use --steps", s->epochs,
              (wide)train->rows, steps);
    return (int64_t)steps;
}

static uint64_t val_rows(const Settings *s, const Rows *val) {
    if (!val || s->val_every == 0) return 0;
    if (s->val_tokens == 0 || (uint64_t)s->val_tokens >= val->targets) return val->rows;
    return (uint64_t)divide_up(s->val_tokens, val->seq_len);
}

Plan plan_make(const Settings *s, const Config *config, const World *world, const Rows *train,
               const Rows *val) {
    Plan plan = {.config = *config, .B = (int)s->batch, .T = config->seq_len};
    plan.rows = s->micro_steps ? rows_of_micro_steps(s, plan.T, world->size)
                               : rows_per_update(s->total_batch, plan.T);
    if (plan.B > plan.rows) plan.B = (int)plan.rows; // a unit cannot have more rows than the update
    plan.units = divide_up(plan.rows, plan.B);
    plan.most = divide_up(plan.units, world->size);
    plan.least = plan.units / world->size;
    plan.steps = steps_of(s, train, plan.rows);
    plan.schedule = (Schedule){.kind = s->schedule,
                               .max = s->lr,
                               .min = s->min_lr,
                               .warmup = s->warmup,
                               .end = s->decay_steps >= 0 ? s->decay_steps : plan.steps};
    plan.val_rows = val_rows(s, val);
    return plan;
}

// ---------------------------------------------------------------------------------------------
// Memory

/* What a rank takes with units of B rows; *sums: of that, for sums of gradients over units and ranks. */
static MemoryPlan memory_with(const Plan *plan, const Settings *s, const World *world, int B, size_t *sums) {
    TensorTable table = tensor_table_new(&plan->config);
    int64_t most = divide_up(divide_up(plan->rows, B), world->size);
    *sums = reduction_bytes(table.elements, s->exact, (int)most, world->size);
    tensor_table_free(&table);
    return gpt2_memory(&plan->config, B, s->recompute, true);
}

static size_t total_memory(const MemoryPlan *m, size_t sums) {
    return m->params + m->grads + m->optimizer + m->activations + m->scratch + sums;
}

static bool fits(const Plan *plan, const Settings *s, const World *world, int B) {
    size_t sums;
    MemoryPlan m = memory_with(plan, s, world, B, &sums);
    return total_memory(&m, sums) <= device_memory();
}

void plan_check_memory(const Plan *plan, const Settings *s, const World *world) {
    if (fits(plan, s, world, plan->B)) return;
    size_t sums;
    MemoryPlan m = memory_with(plan, s, world, plan->B, &sums);
    double needed = (double)total_memory(&m, sums) / 1e9, there = (double)device_memory() / 1e9;
    int low = 0, high = plan->B; // units of `low` rows fit, of `high` they do not
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        *(fits(plan, s, world, middle) ? &low : &high) = middle;
    }
    if (low == 0)
        fatal(EXIT_RUNTIME,
              "%.2f GB of memory are needed and %.2f are free; not even --batch 1 would fit: %suse a smaller "
              "model",
              needed, there, s->recompute ? "" : "try --recompute, or ");
    fatal(EXIT_RUNTIME, "%.2f GB of memory are needed and %.2f are free; --batch %d would fit", needed, there,
          low);
}

// ---------------------------------------------------------------------------------------------
// Printing

/* 1234567 as "1,234,567", in one of a few static buffers. */
static const char *grouped(uint64_t value) {
    static char buffers[8][32];
    static int next;
    char *end = buffers[next++ % 8] + 31;
    *end = '\0';
    for (int digits = 0; digits == 0 || value > 0; digits++, value /= 10) {
        if (digits > 0 && digits % 3 == 0) *--end = ',';
        *--end = (char)('0' + value % 10);
    }
    return end;
}

/* "1 unit", "2,000 units" */
static const char *counted(uint64_t count, const char *what) {
    static char text[64];
    snprintf(text, sizeof text, "%s %s%s", grouped(count), what, count == 1 ? "" : "s");
    return text;
}

static void print_model(const Plan *plan) {
    const Config *c = &plan->config;
    TensorTable table = tensor_table_new(c);
    DecayGroup decayed = tensor_table_group(&table, true), others = tensor_table_group(&table, false);
    printf("model      %d layers, %d heads, %d channels, rows of %d tokens, vocabulary %s (%s in memory)\n",
           c->layers, c->heads, c->channels, c->seq_len, grouped((uint64_t)c->vocab),
           grouped((uint64_t)config_padded_vocab(c)));
    printf("           %s parameters\n", grouped(table.parameters));
    printf("           num decayed parameter tensors: %d, with %s parameters\n", decayed.tensors,
           grouped(decayed.parameters));
    printf("           num non-decayed parameter tensors: %d, with %s parameters\n", others.tensors,
           grouped(others.parameters));
    tensor_table_free(&table);
}

static void print_data(const Plan *plan, const Dataset *data, const Rows *train) {
    printf("data       %s: %s targets an epoch, in %s rows%s\n", stream_name(data->train),
           grouped(train->targets), grouped(train->rows), train->shuffle ? ", shuffled" : ", in order");
    if (plan->val_rows == 0) {
        printf("           no validation\n");
        return;
    }
    printf("           validation on %s rows of %s\n", grouped(plan->val_rows), stream_name(data->val));
}

static void print_update(const Plan *plan, int64_t batch, const World *world, const Rows *train) {
    uint64_t total = (uint64_t)plan->rows * (uint64_t)plan->T;
    printf("update     %s tokens = %s rows of %d = %s of %d rows, over %d rank%s\n", grouped(total),
           grouped((uint64_t)plan->rows), plan->T, counted((uint64_t)plan->units, "unit"), plan->B,
           world->size, world->size == 1 ? "" : "s");
    if (batch > plan->B)
        printf("           --batch %lld is more than the update has: it is one unit\n", (wide)batch);
    if (plan->rows == plan->B * plan->most * world->size)
        printf("           B %d x T %d x K %s x R %d\n", plan->B, plan->T,
               grouped((uint64_t)plan->most), world->size);
    if (plan->rows % plan->B)
        printf("           the last unit has %s\n", counted((uint64_t)(plan->rows % plan->B), "row"));
    int busy = (int)(plan->units % world->size); // ranks that take one unit more
    if (busy == 0)
        printf("           every rank takes %s\n", counted((uint64_t)plan->most, "unit"));
    else
        printf("           %d of the ranks take %s, the others %s\n", busy,
               counted((uint64_t)plan->most, "unit"), grouped((uint64_t)plan->least));
    double epochs = (double)plan->steps * (double)plan->rows / (double)train->rows;
    printf("run        %s updates, %s tokens, %.3g epochs\n", grouped((uint64_t)plan->steps),
           grouped((uint64_t)plan->steps * total), epochs);
}

static void print_memory(const Plan *plan, const Settings *s, const World *world) {
    size_t sums;
    MemoryPlan m = memory_with(plan, s, world, plan->B, &sums);
    printf("memory     %.1f MB a rank: weights %.1f, gradients %.1f, optimizer %.1f, activations %.1f, "
           "scratch %.1f\n",
           (double)total_memory(&m, sums) / 1e6, (double)m.params / 1e6, (double)(m.grads + sums) / 1e6,
           (double)m.optimizer / 1e6, (double)m.activations / 1e6, (double)m.scratch / 1e6);
}

/* Prints one setting that is set, breaking the line before column 100. context: the column. */
static void print_setting(void *context, const char *name, const char *value, bool quoted, bool given) {
    int *column = context;
    (void)quoted;
    if (!value) return; // something else decides, and stands above
    if (!value) return; // something else decides, and is printed elsewhere
    int width = (int)(strlen(name) + strlen(value)) + 2 + given;
    if (*column + width > 100) {
        printf("\n           ");
        *column = 11;
    }
    printf("%s%s %s", name, given ? "*" : "", value);
    printf("  ");
    *column += width + 1;
}

/* The learning rate at the steps where the schedule turns, half-way, and after the end. */
static void print_rates(const Plan *plan) {
    const Schedule *schedule = &plan->schedule;
    const int64_t steps[] = {0, schedule->warmup - 1, schedule->warmup,
                             (schedule->warmup + schedule->end) / 2, plan->steps - 1, schedule->end};
    int64_t last = -1;
    const char *comma = "rates      ";
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (steps[i] <= last) continue;
        printf("%sstep %lld %.6g", comma, (wide)steps[i], schedule_rate(schedule, steps[i]));
        comma = ", ";
        last = steps[i];
    }
    printf("\n");
}

static void print_work(const Plan *plan) {
    double token = gpt2_flops_per_token(&plan->config);
    double update = token * (double)plan->rows * plan->T;
    printf("work       %.4g FLOPs a token, %.4g an update, %.4g the run\n", token, update,
           update * (double)plan->steps);
}

void plan_print(const Plan *plan, const Settings *settings, const World *world, const Dataset *data,
                const Rows *train) {
    printf("device     %s; %d rank%s, launcher: %s\n", backend_name(), world->size,
           world->size == 1 ? "" : "s", world->launcher);
    print_model(plan);
    print_data(plan, data, train);
    print_update(plan, settings->batch, world, train);
    print_rates(plan);
    print_work(plan);
    print_memory(plan, settings, world);
    int column = 11;
    printf("settings   ");
    options_each(settings, print_setting, &column);
    printf("\n           (* given by you)\n\n");
}

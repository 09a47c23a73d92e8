/* plan.c: what follows from settings, data and ranks, in three parts: the model's shape, the numbers of an update
 * (chapter 27.5) and of the run, and the memory it needs. Nothing is rounded silently: what cannot be used
 * exactly is refused, with the nearest values that can. */
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

/* A shape by its name, with single sizes replaced by options. */
static Config named_shape(const Settings *s, const Dataset *data) {
    Config config;
    if (!config_named(s->model, &config)) {
        const char *near = config_nearest_name(s->model);
        fatal(EXIT_USAGE,
              "--model %s is neither a shape (tiny, gpt2, gpt2-medium, gpt2-large or gpt2-xl) nor a file or "
              "directory%s%s%s",
              s->model, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    }
    // given_or: 0 means that an option was not given, since no size of a model can be 0.
    config.layers = given_or(s->layers, config.layers);
    config.heads = given_or(s->heads, config.heads);
    config.channels = given_or(s->channels, config.channels);
    config.seq_len = given_or(s->seq_len, config.seq_len);
    config.vocab = given_or(s->vocab, dataset_vocab(data));
    return config;
}

/* A size that the weights fix may be given, but only as it is. */
static void check_stored(const char *option, int64_t given, int stored) {
    if (given && given != stored)
        fatal(EXIT_USAGE, "--%s %lld: the weights to start from have %d; leave it out", option, (wide)given,
              stored);
}

/* The shape of weights that exist. Only their sequences can be made shorter: the other positions are kept. */
static Config stored_shape(const Settings *s, const Config *stored) {
    check_stored("layers", s->layers, stored->layers);
    check_stored("heads", s->heads, stored->heads);
    check_stored("channels", s->channels, stored->channels);
    check_stored("vocab", s->vocab, stored->vocab);
    // Shorter sequences use the first position embeddings; longer ones would need embeddings that were never trained.
    if (s->seq_len > stored->seq_len) check_stored("seq-len", s->seq_len, stored->seq_len);
    Config config = *stored;
    config.seq_len = given_or(s->seq_len, stored->seq_len);
    // All stored positions stay in the tensor, and in the checkpoint, also those beyond seq_len.
    config.positions = stored->seq_len;
    return config;
}

Config plan_config(const Settings *s, const Dataset *data, const Config *stored) {
    Config config = stored ? stored_shape(s, stored) : named_shape(s, data);
    const char *problem = config_problem(&config);
    // Checked after all options are applied: sizes that are valid one by one may not fit together.
    if (problem)
        fatal(EXIT_USAGE,
              "%s (this shape: %d layers, %d heads, %d channels, sequences of %d tokens)", problem,
              config.layers, config.heads, config.channels, config.seq_len);
    return config;
}

/* The update that `plan --micro-steps K` describes: K full micro-batches on every rank. */
static int64_t sequences_of_micro_steps(const Settings *s, int64_t T, int ranks) {
    // In doubles, since the product of the options may overflow 64 bits.
    double tokens = (double)s->batch * (double)T * (double)s->micro_steps * ranks;
    if (tokens > 1e15)
        fatal(EXIT_USAGE, "--micro-steps %lld makes updates of %g tokens; the most is 1e15",
              (wide)s->micro_steps, tokens);
    return s->batch * s->micro_steps * ranks;
}

/* S, exactly. (The course's script asserts that its batch divides the total; here only T must.) */
static int64_t sequences_per_update(int64_t total, int64_t T) {
    if (total % T == 0) return total / T;
    // Example: total 1000 with T = 64 is 15.6 sequences; the nearest totals are 960 and 1024.
    int64_t below = total / T * T;
    if (below == 0)
        fatal(EXIT_USAGE,
              "--total-batch %lld is less than one sequence of %lld tokens; the nearest valid "
              "total is %lld",
              (wide)total, (wide)T, (wide)T);
    fatal(EXIT_USAGE,
          "--total-batch %lld is not a whole number of sequences of %lld tokens (--seq-len); the "
          "nearest valid "
          "totals are %lld and %lld",
          (wide)total, (wide)T, (wide)below, (wide)(below + T));
}

/* Updates of the run: --steps, or as many as --epochs passes over the data need, rounded up. */
static int64_t steps_of(const Settings *s, const Sequences *train, int64_t sequences) {
    if (s->steps >= 0) return s->steps;
    // Example: 0.5 epochs of 1001 sequences, 100 in an update: 5.005 updates, so 6.
    double steps = ceil(s->epochs * (double)train->per_epoch / (double)sequences);
    if (!(steps >= 1 && steps < 9e15))
        fatal(EXIT_USAGE, "--epochs %g of %lld sequences make %g updates; use --steps", s->epochs,
              (wide)train->per_epoch, steps);
    return (int64_t)steps;
}

/* Sequences of one validation: all, or enough for --val-tokens targets. */
static uint64_t val_sequences(const Settings *s, const Sequences *val) {
    if (!val || s->val_every == 0) return 0;
    // More targets than there are, or no number given: the whole stream.
    if (s->val_tokens == 0 || (uint64_t)s->val_tokens >= val->targets) return val->per_epoch;
    return (uint64_t)divide_up(s->val_tokens, val->seq_len);
}

Plan plan_make(const Settings *s, const Config *config, const World *world, const Sequences *train,
               const Sequences *val) {
    Plan plan = {.config = *config, .B = (int)s->batch, .T = config->seq_len};
    // From the tokens of an update follow its sequences: S = total / T. With --micro-steps it is S = B K R.
    plan.sequences = s->micro_steps ? sequences_of_micro_steps(s, plan.T, world->size)
                                    : sequences_per_update(s->total_batch, plan.T);
    if (plan.B > plan.sequences)
        plan.B = (int)plan.sequences; // a micro-batch cannot have more sequences than the update
    // Micro-batch u goes to rank u mod R: ranks differ by one micro-step at most.
    plan.micro_batches = divide_up(plan.sequences, plan.B);
    plan.max_micro_steps = divide_up(plan.micro_batches, world->size);
    plan.min_micro_steps = plan.micro_batches / world->size;
    plan.steps = steps_of(s, train, plan.sequences);
    // The schedule counts updates, not micro-steps. Without --decay-steps it ends with the run.
    plan.schedule = (Schedule){.kind = s->schedule,
                               .max = s->lr,
                               .min = s->min_lr,
                               .warmup = s->warmup,
                               .end = s->decay_steps >= 0 ? s->decay_steps : plan.steps};
    plan.optimizer = (AdamW){.beta1 = s->beta1,
                             .beta2 = s->beta2,
                             .eps = s->eps,
                             .weight_decay = s->weight_decay,
                             .clip = s->clip};
    plan.val_sequences = val_sequences(s, val);
    if (s->keep_best && plan.val_sequences == 0)
        fatal(EXIT_USAGE, "--keep-best needs a validation loss, but this run has none; give --val, --val-fraction or "
                          "--val-every, or leave --keep-best out");
    return plan;
}

// ---------------------------------------------------------------------------------------------
// Memory

// The sums depend on the number of micro-steps: a smaller B takes less memory for activations, but makes more of
// them.
MemoryPlan plan_memory(const Plan *plan, const Settings *s, const World *world, int B, size_t *sums) {
    TensorTable table = tensor_table_new(&plan->config);
    int64_t most = divide_up(divide_up(plan->sequences, B), world->size);
    *sums = reduction_bytes(table.elements, s->exact, (int)most, world->size);
    tensor_table_free(&table);
    return gpt2_memory(&plan->config, B, s->recompute, true);
}

size_t plan_memory_total(const MemoryPlan *m, size_t sums) {
    return m->params + m->grads + m->optimizer + m->activations + m->scratch + sums;
}

/* Whether a micro-batch of B sequences fits the device. */
static bool fits(const Plan *plan, const Settings *s, const World *world, int B) {
    size_t sums;
    MemoryPlan m = plan_memory(plan, s, world, B, &sums);
    return plan_memory_total(&m, sums) <= device_memory();
// compared with what is free on the device, not with all it has
}

void plan_check_memory(const Plan *plan, const Settings *s, const World *world) {
    if (fits(plan, s, world, plan->B)) return;
    size_t sums;
    // It does not fit: the message tells how much is missing and which batch would fit.
    MemoryPlan m = plan_memory(plan, s, world, plan->B, &sums);
    double needed = (double)plan_memory_total(&m, sums) / 1e9, there = (double)device_memory() / 1e9;
    // Bisection: memory grows with the batch.
    int low = 0, high = plan->B; // micro-batches of `low` sequences fit, of `high` they do not
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

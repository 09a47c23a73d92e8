/* startup_table.c: prints, before the first update, how one update is split: the model with its decay
 * groups, the data, the update cut into micro-batches and ranks, learning rates, work, memory, settings.
 * Each block of lines has a function of its own; startup_table_print at the end has their order. */
#include "startup_table.h"

#include <stdio.h>
#include <string.h>

typedef long long wide; // for printf

/* 1234567 as "1,234,567", in one of a few static buffers. */
static const char *grouped(uint64_t value) {
    // One printf may use up to 8 results at once; the ninth call takes the first buffer again.
    static char buffers[8][32];
    static int next;
    // The digits are written from the last to the first, with a comma after every three.
    char *end = buffers[next++ % 8] + 31;
    *end = '\0';
    for (int digits = 0; digits == 0 || value > 0; digits++, value /= 10) {
        if (digits > 0 && digits % 3 == 0) *--end = ',';
        *--end = (char)('0' + value % 10);
    }
    return end;
}

/* "1 sequence", "2,000 sequences", "3 micro-batches" */
static const char *counted(uint64_t count, const char *what) {
    static char text[64];
    // The only unit with an ending "es" is the micro-batch.
    const char *plural = what[strlen(what) - 1] == 'h' ? "es" : "s";
    snprintf(text, sizeof text, "%s %s%s", grouped(count), what, count == 1 ? "" : plural);
    return text;
}

/* The shape, and both decay groups in the words of the course's script (chapter 27.1). */
static void print_model(const Plan *plan) {
    const Config *c = &plan->config;
    TensorTable table = tensor_table_new(c);
    DecayGroup decayed = tensor_table_group(&table, true), others = tensor_table_group(&table, false);
    printf("model      %d layers, %d heads, %d channels, sequences of %d tokens, vocabulary %s (%s "
           "in memory)\n",
           c->layers, c->heads, c->channels, c->seq_len, grouped((uint64_t)c->vocab),
           grouped((uint64_t)config_padded_vocab(c)));
    printf("           %s parameters\n", grouped(table.parameters));
    // Weights may have more positions than the sequences of this run use.
    if (config_positions(c) > c->seq_len)
        printf("           %s positions have an embedding; those from %d on are not trained\n",
               grouped((uint64_t)config_positions(c)), c->seq_len);
    printf("           num decayed parameter tensors: %d, with %s parameters\n", decayed.tensors,
           grouped(decayed.parameters));
    printf("           num non-decayed parameter tensors: %d, with %s parameters\n", others.tensors,
           grouped(others.parameters));
    tensor_table_free(&table);
}

/* Targets and sequences of an epoch, and how validation is done. */
static void print_data(const Plan *plan, const Dataset *data, const Sequences *train) {
    printf("data       %s: %s targets an epoch, in %s sequences%s\n", stream_name(data->train),
           grouped(train->targets), grouped(train->per_epoch),
           train->shuffle ? ", shuffled" : ", in order");
    if (*data->note) printf("           %s\n", data->note);
    if (plan->val_sequences == 0)
        printf("           no validation\n");
    else
        printf("           validation on %s sequences of %s\n", grouped(plan->val_sequences),
               stream_name(data->val));
    if (data->text_bytes)
        printf("           %s bytes of text were encoded: %s tokens\n", grouped(data->text_bytes),
               grouped(dataset_tokens(data)));
    printf("tokenizer  %s", data->tokenizer ? tokenizer_name(data->tokenizer) : "not known: samples are token ids");
    if (data->tokenizer) printf(", %s tokens", grouped((uint64_t)tokenizer_vocab(data->tokenizer)));
    printf("\n");
}

/* What one update sees (chapter 27.5): sequences, micro-batches, micro-steps of each rank. Where everything
 * divides evenly it is N = B T K R. */
static void print_update(const Plan *plan, int64_t batch, const World *world,
                         const Sequences *train) {
    // Tokens of an update: S sequences of T.
    uint64_t total = (uint64_t)plan->sequences * (uint64_t)plan->T;
    printf("update     %s tokens = %s sequences of %d = %s of %d sequences, over %d rank%s\n",
           grouped(total), grouped((uint64_t)plan->sequences), plan->T,
           counted((uint64_t)plan->micro_batches, "micro-batch"), plan->B, world->size,
           world->size == 1 ? "" : "s");
    if (batch > plan->B)
        printf("           --batch %lld is more than the update has: it is one micro-batch\n",
               (wide)batch);
    // S = B K R: only then have all ranks K full micro-batches.
    if (plan->sequences == plan->B * plan->max_micro_steps * world->size)
        printf("           B %d x T %d x K %s x R %d\n", plan->B, plan->T,
               grouped((uint64_t)plan->max_micro_steps), world->size);
    if (plan->sequences % plan->B)
        printf("           the last micro-batch has %s\n",
               counted((uint64_t)(plan->sequences % plan->B), "sequence"));
    int busy = (int)(plan->micro_batches % world->size); // ranks that take one micro-batch more
    if (busy == 0)
        printf("           every rank takes %s\n",
               counted((uint64_t)plan->max_micro_steps, "micro-batch"));
    else
        printf("           %d of the ranks take %s, the others %s\n", busy,
               counted((uint64_t)plan->max_micro_steps, "micro-batch"),
               grouped((uint64_t)plan->min_micro_steps));
    // Sequences of the run, divided by those of an epoch.
    double epochs = (double)plan->steps * (double)plan->sequences / (double)train->per_epoch;
    printf("run        %s updates, %s tokens, %.3g epochs\n", grouped((uint64_t)plan->steps),
           grouped((uint64_t)plan->steps * total), epochs);
}

/* Memory of one rank: parameters are only a part of it (chapter 27.1). */
static void print_memory(const Plan *plan, const Settings *s, const World *world) {
    size_t sums;
    MemoryPlan m = plan_memory(plan, s, world, plan->B, &sums);
    printf("memory     %.1f MB a rank: weights %.1f, gradients %.1f, optimizer %.1f, activations %.1f, "
           "scratch %.1f\n",
           (double)plan_memory_total(&m, sums) / 1e6, (double)m.params / 1e6, (double)(m.grads + sums) / 1e6,
           (double)m.optimizer / 1e6, (double)m.activations / 1e6, (double)m.scratch / 1e6);
}

/* Prints one setting that has a value, breaking the line before column 100. context: the column. */
static void print_setting(void *context, const char *name, const char *value, bool quoted, bool given) {
    int *column = context;
    (void)quoted;
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

/* The learning rate at those steps of the run where the schedule turns, half-way, and at the last. */
static void print_rates(const Plan *plan) {
    const Schedule *schedule = &plan->schedule;
    const int64_t steps[] = {0, schedule->warmup - 1, schedule->warmup,
                             (schedule->warmup + schedule->end) / 2, plan->steps - 1};
    int64_t last = -1;
    const char *comma = "rates      ";
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        // Without a warm-up, or in a short run, some of these steps coincide or lie beyond the end.
        if (steps[i] <= last || steps[i] >= plan->steps) continue;
        printf("%sstep %lld %.6g", comma, (wide)steps[i], schedule_rate(schedule, steps[i]));
        comma = ", ";
        last = steps[i];
    }
    printf("\n");
    if (schedule->warmup >= plan->steps && schedule->warmup > 1)
        printf("           the warm-up of %lld steps is longer than the run: --lr %.6g is never reached; give a "
               "smaller --warmup\n",
               (wide)schedule->warmup, schedule->max);
}

/* Floating point operations of a token, an update and the run. */
static void print_work(const Plan *plan) {
    double token = gpt2_flops_per_token(&plan->config);
    // An update has S T tokens. Ranks do not matter: they share this work.
    double update = token * (double)plan->sequences * plan->T;
    printf("work       %.4g FLOPs a token, %.4g an update, %.4g the run\n", token, update,
           update * (double)plan->steps);
}

void startup_table_print(const Plan *plan, const Settings *settings, const World *world, const Dataset *data,
                const Sequences *train) {
    printf("device     %s; %d rank%s, launcher: %s\n", backend_name(), world->size,
           world->size == 1 ? "" : "s", world->launcher);
    print_model(plan);
    print_data(plan, data, train);
    print_update(plan, settings->batch, world, train);
    print_rates(plan);
    print_work(plan);
    print_memory(plan, settings, world);
    // The settings come last: all that was derived from them stands above.
    int column = 11;
    printf("settings   ");
    settings_each(settings, print_setting, &column);
    printf("\n           (* given by you)\n\n");
}

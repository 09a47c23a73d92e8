/* command_eval.c: `train_gpt2 eval`: the loss of a model on data, weighted by token; or on one list of token
 * ids, with the logits of what follows it. Runs on any number of ranks. */
#include "../base/error.h"
#include "../base/memory.h"
#include "../checkpoint/checkpoint_list.h"
#include "../settings/option_parse.h"
#include "../train/dataset.h"
#include "../train/evaluate.h"
#include "../train/text.h"
#include "../weights/weights.h"
#include "commands.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    const char *model, *ids;
    StringList data;
    double val_fraction;
    int64_t seq_len, batch, threads;
    bool logits;
} EvalOptions;

#define FIELD(name) offsetof(EvalOptions, name)
static const Option rows[] = {
    {"model", "PATH", "Model", OPTION_STRING, FIELD(model), NO_RANGE, NULL, NULL, HELP_MODEL},
    {"data", "PATH", "Data", OPTION_LIST, FIELD(data), NO_RANGE, NULL, NULL,
     "file, directory (its validation files, if it has such) or quoted glob; may repeat; else the "
     "built-in text"},
    {"val-fraction", "X", "Data", OPTION_REAL, FIELD(val_fraction), FRACTION, "0", "0",
     "only this share of the data's end, as train keeps it for validation; 0: all"},
    {"seq-len", "T", "Data", OPTION_INTEGER, FIELD(seq_len), COUNT, NULL, NULL,
     "tokens in a row, up to the model's"},
    {"ids", "LIST", "Data", OPTION_STRING, FIELD(ids), NO_RANGE, NULL, NULL,
     "instead of data: these token ids, in quotes"},
    {"logits", NULL, "Data", OPTION_SWITCH, FIELD(logits), NO_RANGE, "false", "false",
     "with --ids: also print the logits of the token that follows"},
    {"batch", "B", "Work", OPTION_INTEGER, FIELD(batch), COUNT, "8", "8",
     "sequences that a rank computes at a time; does not change the result"},
    {"threads", "N", "Work", OPTION_INTEGER, FIELD(threads), THREADS, NULL, NULL, HELP_THREADS},
};
static const OptionTable table = {
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
    .usage = "Usage: train_gpt2 eval --model PATH [--data PATH]... [--OPTION VALUE]...\n"
             "       mpirun -np R train_gpt2 eval ...\n"
             "\n"
             "Prints the mean loss of the tokens of data, in nats, and the perplexity, its "
             "exponential.\n",
};

static void print_loss(double loss, uint64_t tokens) {
    printf("loss %.9g nats per token, perplexity %.9g, %llu tokens\n", loss, exp(loss),
           (unsigned long long)tokens);
}

/* The mean loss of ids 1 .. n, each after those before it. */
static double loss_of_ids(GPT2 *model, const int32_t *ids, int n) {
    size_t id_bytes = (size_t)n * element_size(OF_ID),
           loss_bytes = (size_t)n * element_size(OF_ROW_STAT);
    Id *inputs = device_alloc(id_bytes, "ids"), *targets = device_alloc(id_bytes, "ids");
    RowStat *device_losses = device_alloc(loss_bytes, "losses");
    double *losses = memory_new((size_t)n, sizeof *losses, "losses"), sum = 0;
    write_ids(inputs, ids, (size_t)n);
    write_ids(targets, ids + 1, (size_t)n - 1);
    gpt2_forward(model, inputs, 1, n - 1);
    gpt2_loss(model, device_losses, targets, 1, n - 1);
    read_stats(losses, device_losses, (size_t)n - 1);
    for (int i = 0; i < n - 1; i++) sum += losses[i];
    free(losses);
    device_free(device_losses, loss_bytes);
    device_free(targets, id_bytes);
    device_free(inputs, id_bytes);
    return sum / (n - 1);
}

static void print_logits(GPT2 *model, const int32_t *ids, int n) {
    size_t id_bytes = (size_t)n * element_size(OF_ID);
    Id *inputs = device_alloc(id_bytes, "ids");
    float *logits = memory_new((size_t)model->config.vocab, sizeof *logits, "logits");
    write_ids(inputs, ids, (size_t)n);
    gpt2_extend(model, inputs, n, 0);
    gpt2_logits(model, logits, n);
    printf("logits");
    for (int i = 0; i < model->config.vocab; i++) printf(" %.9g", logits[i]);
    printf("\n");
    free(logits);
    device_free(inputs, id_bytes);
}

static void evaluate_ids(GPT2 *model, const EvalOptions *o) {
    int n;
    int32_t *ids = text_ids("--ids", o->ids, model->config.vocab, &n);
    if (n < 1 || n > model->config.seq_len)
        fatal(EXIT_USAGE, "--ids has %d token ids; this model takes 1 to %d", n,
              model->config.seq_len);
    if (n > 1) print_loss(loss_of_ids(model, ids, n), (uint64_t)n - 1);
    if (o->logits) print_logits(model, ids, n);
    free(ids);
}

static void evaluate_data(GPT2 *model, const EvalOptions *o, const World *world) {
    Settings settings = {.data = o->data, .val_fraction = o->val_fraction};
    Dataset data = dataset_open(&settings);
    Stream *stream = data.val ? data.val : data.train;
    if (stream_is_bytes(stream) && model->config.vocab != 256)
        fatal(EXIT_USAGE,
              "%s is text, read as bytes, but the model has %d tokens; give token files",
              stream_name(stream), model->config.vocab);
    stream_set_vocab(stream, model->config.vocab);
    Sequences all = sequences_new(stream, model->config.seq_len, 0, false);
    Batch *batch = batch_new(*world, (int)o->batch, all.seq_len, o->batch * world->size);
    Evaluation result = evaluate(model, batch, &all, all.per_epoch);
    if (world->rank == 0) print_loss(result.loss, result.tokens);
    batch_free(batch);
    dataset_close(&data);
}

int command_eval(int argc, char **argv) {
    World world = world_open(&argc, &argv);
    EvalOptions o = {0};
    OptionValues values = {.table = &table, .fields = &o};
    option_parse(&values, argc, argv);
    option_fill_in(&values, false);
    if (!o.model) fatal(EXIT_USAGE, "eval needs --model PATH: what is to be evaluated");
    if (o.ids && world.size > 1)
        fatal(EXIT_USAGE, "eval --ids runs on one rank; start it without mpirun");

    backend_open(world.local_rank, world.local_size, (int)o.threads);
    char *path = checkpoints_resolve(o.model);
    Weights *weights = weights_open(path);
    Config config = *weights_config(weights);
    if (o.seq_len > config.seq_len)
        fatal(EXIT_USAGE, "--seq-len %lld: this model's sequences have at most %d tokens",
              (long long)o.seq_len, config.seq_len);
    if (o.seq_len) config.seq_len = (int)o.seq_len;
    GPT2 *model = gpt2_new(&config, o.ids ? 1 : (int)o.batch, false, false);
    weights_load(weights, model);
    weights_close(weights);
    if (o.ids)
        evaluate_ids(model, &o);
    else
        evaluate_data(model, &o, &world);
    gpt2_free(model);
    free(o.data.items);
    free(path);
    world_close();
    return EXIT_DONE;
}

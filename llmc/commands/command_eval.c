/* command_eval.c: `train_gpt2 eval`: the loss of a model on data or a text, weighted by token; or on one list
 * of token ids, with the logits of what follows it; or the number of multiple-choice examples that it answers
 * correctly. Runs on any number of ranks. */
#include "../base/error.h"
#include "../base/memory.h"
#include "../checkpoint/checkpoint.h"
#include "../checkpoint/checkpoint_list.h"
#include "../data/encoded_text.h"
#include "../eval/score.h"
#include "../eval/text_units.h"
#include "../settings/option_parse.h"
#include "../train/choose_tokenizer.h"
#include "../train/dataset.h"
#include "../train/evaluate.h"
#include "../train/rank_consistency.h"
#include "../train/text.h"
#include "../weights/weights.h"
#include "commands.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *model, *tokenizer, *ids, *text, *hellaswag;
    StringList data;
    double val_fraction;
    int data_type;
    int64_t seq_len, batch, threads, hellaswag_examples;
    bool logits;
} EvalOptions;

#define FIELD(name) offsetof(EvalOptions, name)
static const Option rows[] = {
    {"model", "PATH", "Model", OPTION_STRING, FIELD(model), NO_RANGE, NULL, NULL, HELP_MODEL},
    {"tokenizer", "NAME", "Model", OPTION_STRING, FIELD(tokenizer), NO_RANGE, NULL, NULL,
     HELP_TOKENIZER},
    {"data", "PATH", "Data", OPTION_LIST, FIELD(data), NO_RANGE, NULL, NULL,
     "file, directory (its files named val, else test) or quoted glob; may repeat; else the "
     "built-in text"},
    {"val-fraction", "X", "Data", OPTION_REAL, FIELD(val_fraction), FRACTION, "0", "0",
     "only this share of the data's end, as train keeps it for validation; 0: all"},
    {"data-type", "TYPE", "Data", OPTION_CHOICE, FIELD(data_type), CHOICES(DATA_TYPES), "auto", "auto",
     HELP_DATA_TYPE},
    {"seq-len", "T", "Data", OPTION_INTEGER, FIELD(seq_len), COUNT, NULL, NULL,
     "tokens in a sequence, up to the model's"},
    {"text", "TEXT", "Data", OPTION_STRING, FIELD(text), NO_RANGE, NULL, NULL,
     "instead of data: this text"},
    {"hellaswag", "FILE", "Data", OPTION_STRING, FIELD(hellaswag), NO_RANGE, NULL, NULL,
     "score the model on HellaSwag's JSON lines or an llm.c evaluation file; the data are evaluated "
     "too where --data or --text names them"},
    {"hellaswag-examples", "N", "Data", OPTION_INTEGER, FIELD(hellaswag_examples), COUNT_OR_0, "0",
     "0", "only the first N examples; 0: all"},
    {"ids", "LIST", "Data", OPTION_STRING, FIELD(ids), CHOICES("token ids in quotes"), NULL, NULL,
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
    .file_option = "model",
    .usage = "Usage: train_gpt2 eval --model PATH [--data PATH]... [--OPTION VALUE]...\n"
             "       mpirun -np R train_gpt2 eval ...\n"
             "\n"
             "Prints the mean loss of the data's tokens in nats, and the perplexity, its exponential. If the\n"
             "tokenizer is known it also prints figures that compare vocabularies: bits per byte, and the\n"
             "perplexity of a word.\n",
};

/* exp(x), which beyond 709 is larger than any double. */
static void print_exp(double x) {
    // A loss of 710 nats is finite, but its exponential is not; promise 17 forbids "inf" as a result.
    bool fits = isfinite(exp(x));
    printf("%s%.9g", fits ? "" : "above ", fits ? exp(x) : DBL_MAX);
}

/* of: " of " and the data's name, or "". Promise 17: no command reports NaN or infinity as a result. */
static void print_loss(double loss, uint64_t tokens, const char *of, const char *name) {
    if (!isfinite(loss))
        fatal(EXIT_NONFINITE,
              "the loss of %llu tokens%s%s is %g: the weights, though finite, are too large to compute with",
              (unsigned long long)tokens, of, name, loss);
    printf("loss %.9g nats per token, perplexity ", loss);
    print_exp(loss);
    printf(", %llu token%s%s%s\n", (unsigned long long)tokens, tokens == 1 ? "" : "s", of, name);
}

/* The mean loss of ids 1 .. n, each after those before it. */
static double loss_of_ids(GPT2 *model, const int32_t *ids, int n) {
    // Token i + 1 is the target of token i: n ids give n - 1 losses.
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

/* The logits of the token that follows the ids. */
static void print_logits(GPT2 *model, const int32_t *ids, int n) {
    size_t id_bytes = (size_t)n * element_size(OF_ID);
    Id *inputs = device_alloc(id_bytes, "ids");
    float *logits = memory_new((size_t)model->config.vocab, sizeof *logits, "logits");
    write_ids(inputs, ids, (size_t)n);
    // The whole list is computed at once, from position 0; only the last position's logits are read.
    gpt2_extend(model, inputs, n, 0);
    gpt2_logits(model, logits, n);
    printf("logits");
    for (int i = 0; i < model->config.vocab; i++) printf(" %.9g", logits[i]);
    printf("\n");
    free(logits);
    device_free(inputs, id_bytes);
}

/* --ids: the loss of one list of tokens. */
static void evaluate_ids(GPT2 *model, const EvalOptions *o) {
    int n;
    int32_t *ids = text_ids("--ids", o->ids, model->config.vocab, &n);
    if (n < 1 || n > model->config.seq_len)
        fatal(EXIT_USAGE, "--ids has %d token ids; this model takes 1 to %d", n,
              model->config.seq_len);
    // The first token has no predecessor, so a list of n ids has n - 1 losses.
    if (n == 1 && !o->logits)
        fatal(EXIT_USAGE, "--ids has 1 token id, which follows none and so has no loss; give two or more, or --logits");
    if (n > 1) print_loss(loss_of_ids(model, ids, n), (uint64_t)n - 1, "", "");
    if (o->logits) print_logits(model, ids, n);
    free(ids);
}

/* The loss in units of text instead of tokens: of all tokens of the stream but the first. */
static void print_text_units(const Stream *stream, const Tokenizer *tokenizer, const Evaluation *result) {
    TextUnits units = text_units(stream, tokenizer, 1, stream_length(stream) - 1);
    // The mean over tokens becomes the sum again: per byte and per word, the same nats are divided by other counts.
    double sum = result->loss * (double)result->tokens;
    if (units.bytes)
        printf("bits per byte %.9g over %llu byte%s", sum / log(2) / (double)units.bytes,
               (unsigned long long)units.bytes, units.bytes == 1 ? "" : "s");
    if (units.words) {
        printf(", perplexity ");
        print_exp(sum / (double)units.words);
        printf(" per word, %llu word%s", (unsigned long long)units.words, units.words == 1 ? "" : "s");
    }
    if (units.bytes) printf("\n");
}

/* The loss over a whole stream, in stream order, weighted by token. */
static void evaluate_stream(GPT2 *model, const EvalOptions *o, const World *world, Stream *stream,
                            const Tokenizer *tokenizer) {
    stream_set_vocab(stream, model->config.vocab);
    // In the order of the data, each target once; seed 0 is not used, because nothing is shuffled.
    Sequences all = sequences_new(stream, model->config.seq_len, 0, false);
    // One update of the size that all ranks compute at a time: --batch sequences each. The loss is a sum over tokens
    // divided once by their number (chapter 27.6), so neither --batch nor the ranks change it.
    Batch *batch = batch_new(*world, (int)o->batch, all.seq_len, o->batch * world->size);
    Evaluation result = evaluate(model, batch, &all, all.per_epoch);
    if (world->rank == 0) {
        print_loss(result.loss, result.tokens, " of ", stream_name(stream));
        if (tokenizer) print_text_units(stream, tokenizer, &result);
    }
    batch_free(batch);
}

/* --data: the held-out part of it, if names imply one. */
static void evaluate_data(GPT2 *model, const EvalOptions *o, const World *world, const char *weights) {
    Settings settings = {.data = o->data,
                         .val_fraction = o->val_fraction,
                         .data_type = o->data_type,
                         .tokenizer = o->tokenizer};
    Dataset data = dataset_open_held_out(&settings, weights, model->config.vocab);
    evaluate_stream(model, o, world, data.val, data.tokenizer);
    dataset_close(&data);
}

/* The tokenizer, which must be known because of `option`. */
static const Tokenizer *need_tokenizer(const Tokenizer *tokenizer, const char *option, const char *weights) {
    if (tokenizer) return tokenizer;
    fatal(EXIT_USAGE, "--%s needs a tokenizer, and that of %s is not known; name it with --tokenizer", option, weights);
}

/* --text: a text from the command line. */
static void evaluate_text(GPT2 *model, const EvalOptions *o, const World *world, const Tokenizer *tokenizer) {
    Stream *stream = encode_bytes((const unsigned char *)o->text, strlen(o->text), "--text", tokenizer);
    evaluate_stream(model, o, world, stream, tokenizer);
    stream_close(stream);
}

/* --hellaswag: counts of right answers are added over ranks, then divided. */
static void evaluate_examples(GPT2 *model, const EvalOptions *o, const World *world, const Tokenizer *tokenizer) {
    const ExamplesFor it = {tokenizer, model->config.vocab, model->config.seq_len};
    Examples *examples = examples_open(o->hellaswag, &it, o->hellaswag_examples);
    // Each rank scores its share. If their files differed, the sum of the counts would have no meaning.
    rank_consistency_check_examples(world, examples);
    Score score = score_examples(model, examples, world);
    if (world->rank == 0)
        printf("acc %.4f (%llu of %llu), acc_norm %.4f (%llu)\n", score_share(score.acc, &score),
               (unsigned long long)score.acc, (unsigned long long)score.examples, score_share(score.acc_norm, &score),
               (unsigned long long)score.acc_norm);
    examples_close(examples);
}

/* Whatever the options ask for. */
static void evaluate_all(GPT2 *model, const EvalOptions *o, const World *world, const char *weights) {
    if (o->ids) {
        evaluate_ids(model, o);
        return;
    }
    Tokenizer *tokenizer = choose_tokenizer(o->tokenizer, weights, model->config.vocab);
    if (o->text)
        evaluate_text(model, o, world, need_tokenizer(tokenizer, "text", weights));
    else if (o->data.count > 0 || !o->hellaswag)
        evaluate_data(model, o, world, weights);
    if (o->hellaswag) evaluate_examples(model, o, world, tokenizer);
    tokenizer_free(tokenizer);
}

/* Options that exclude each other. */
static void check_together(const EvalOptions *o, const World *world) {
    if (!o->model) fatal(EXIT_USAGE, "eval needs --model PATH, the model to evaluate: a run, a checkpoint, weights");
    // One list of ids is one row of work: there is nothing to share out.
    if (o->ids && world->size > 1) fatal(EXIT_USAGE, "eval --ids runs on one rank; start it without mpirun");
    if (!!o->ids + !!o->text + (o->data.count > 0) > 1)
        fatal(EXIT_USAGE, "--data, --text and --ids each say what to evaluate; give one of them");
    if (!o->hellaswag && o->hellaswag_examples > 0)
        fatal(EXIT_USAGE, "--hellaswag-examples %lld needs a file of examples; name it with --hellaswag",
              (long long)o->hellaswag_examples);
    if (o->ids && o->hellaswag) fatal(EXIT_USAGE, "--ids and --hellaswag each say what to evaluate; give one of them");
}

int command_eval(int argc, char **argv) {
    World world = world_open(&argc, &argv);
    EvalOptions o = {0};
    OptionValues values = {.table = &table, .fields = &o};
    option_parse(&values, argc, argv);
    option_fill_in(&values, false);
    check_together(&o, &world);

    // All that the options alone can show to be wrong is refused above, before a device and a large file are opened.
    backend_open(world.local_rank, world.local_size, (int)o.threads);
    char *path = checkpoints_resolve(o.model);
    Weights *weights = weights_open(path);
    Config config = *weights_config(weights);
    if (o.seq_len > config.seq_len)
        fatal(EXIT_USAGE, "--seq-len %lld: this model's sequences have at most %d tokens",
              (long long)o.seq_len, config.seq_len);
    // shorter sequences need only the first positions
    if (o.seq_len) config.seq_len = (int)o.seq_len;
    GPT2 *model = gpt2_new(&config, o.ids ? 1 : (int)o.batch, false, false);
    weights_load(weights, model);
    // A checkpoint was verified by name; this notices one that was replaced while it was read.
    checkpoint_check_unchanged(path);
    weights_close(weights);
    evaluate_all(model, &o, &world, path);
    gpt2_free(model);
    free(o.data.items);
    free(path);
    world_close();
    return EXIT_DONE;
}

/* command_sample.c: `train_gpt2 sample`: a model continues a prompt; each token is printed as soon as it is
 * generated. Without a known tokenizer, or with --ids, token ids are read and printed. */
#include "../base/error.h"
#include "../base/memory.h"
#include "../base/utf8.h"
#include "../checkpoint/checkpoint.h"
#include "../checkpoint/checkpoint_list.h"
#include "../ranks/world.h"
#include "../settings/option_parse.h"
#include "../text/printable.h"
#include "../train/choose_tokenizer.h"
#include "../train/text.h"
#include "../weights/weights.h"
#include "commands.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *model, *tokenizer, *prompt;
    bool ids, slide;
    int64_t tokens, count, top_k, threads;
    double temperature, top_p;
    uint64_t seed;
} SampleOptions;

#define FIELD(name) offsetof(SampleOptions, name)
static const Option rows[] = {
    {"model", "PATH", "Model", OPTION_STRING, FIELD(model), NO_RANGE, NULL, NULL,
     HELP_MODEL},
    {"tokenizer", "NAME", "Model", OPTION_STRING, FIELD(tokenizer), NO_RANGE, NULL, NULL,
     HELP_TOKENIZER},
    {"prompt", "TEXT", "Text", OPTION_STRING, FIELD(prompt), NO_RANGE, NULL, NULL,
     "what to continue: text, or with --ids token ids; -: standard input, to the last byte; else the end-of-text token "
     "(for bytes: a line break)"},
    {"ids", NULL, "Text", OPTION_SWITCH, FIELD(ids), NO_RANGE, "false", "false",
     "read and print token ids; always so where the model's tokenizer is not known"},
    {"tokens", "N", "Text", OPTION_INTEGER, FIELD(tokens), INTERVAL, "200", "200", "tokens to add"},
    {"slide", NULL, "Text", OPTION_SWITCH, FIELD(slide), NO_RANGE, "true", "true",
     "when the context is full, continue from its later half, instead of stopping"},
    {"count", "N", "Text", OPTION_INTEGER, FIELD(count), COUNT, "1", "1",
     "texts, each with the next seed"},
    {"temperature", "X", "Choice", OPTION_REAL, FIELD(temperature), NOT_NEGATIVE, "0.8", "0.8",
     "0 takes the likeliest token, 1 draws with the model's probabilities, higher is more random"},
    {"top-k", "K", "Choice", OPTION_INTEGER, FIELD(top_k), COUNT_OR_0, "0", "0",
     "among the K likeliest tokens; 0: among all"},
    {"top-p",
     "X",
     "Choice",
     OPTION_REAL,
     FIELD(top_p),
     {0, 1, false, false, false, NULL},
     "1",
     "1",
     "among the likeliest tokens that together have this probability; 0: the likeliest"},
    {"seed", "N", "Choice", OPTION_SEED, FIELD(seed), NO_RANGE, "42", "42", "seed of the random choices"},
    {"threads", "N", "Choice", OPTION_INTEGER, FIELD(threads), THREADS, NULL, NULL,
     "CPU threads, instead of all cores; does not change the result"},
};
static const OptionTable table = {
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
    .file_option = "model",
    .usage = "Usage: train_gpt2 sample --model PATH [--prompt TEXT] [--OPTION VALUE]...\n"
             "\n"
             "Continues a prompt and prints prompt and continuation as they come.\n",
};

// ---------------------------------------------------------------------------------------------
// The prompt

enum { INPUT_PIECE = 65536 };

/* Standard input to its end, as a string. */
static char *read_input(size_t *bytes) {
    char *text = NULL;
    *bytes = 0;
    // fread returns 0 at the end, and on an error, which ferror tells apart.
    for (size_t n = 1; n > 0; *bytes += n) {
        text = memory_grow(text, *bytes + INPUT_PIECE + 1, 1, "the prompt");
        n = fread(text + *bytes, 1, INPUT_PIECE, stdin);
    }
    if (ferror(stdin)) fatal(EXIT_INPUT, "--prompt -: standard input cannot be read");
    text[*bytes] = '\0';
    return text;
}

/* A prompt must be UTF-8. */
static void check_utf8(const char *text, size_t bytes) {
    for (size_t i = 0, length; i < bytes; i += length) {
        length = utf8_length((const unsigned char *)text + i, bytes - i);
        if (length == 0)
            fatal(EXIT_USAGE, "--prompt: byte %zu, 0x%02x, is not UTF-8; give token ids with --ids", i,
                  (unsigned char)text[i]);
    }
}

/* The ids of the prompt; free() releases them. tokenizer: NULL where the prompt is token ids. */
static TokenList read_prompt(const SampleOptions *o, const Tokenizer *tokenizer, int vocab) {
    TokenList list = {0};
    size_t bytes = o->prompt ? strlen(o->prompt) : 0;
    // Without a prompt the text is empty, and the end-of-text token takes its place later.
    bool input = o->prompt && strcmp(o->prompt, "-") == 0;
    char *text = input ? read_input(&bytes) : memory_string(o->prompt ? o->prompt : "");
    if (tokenizer) {
        check_utf8(text, bytes);
        tokenizer_encode(tokenizer, text, bytes, false, &list);
    } else {
        int count;
        list.ids = text_ids("--prompt", text, vocab, &count);
        list.count = (size_t)count;
    }
    free(text);
    if (list.count > INT_MAX) fatal(EXIT_USAGE, "--prompt has %zu tokens; the most is %d", list.count, INT_MAX);
    return list;
}

// ---------------------------------------------------------------------------------------------
// Printing

/* Prints tokens as they come: characters as soon as they are whole, or without a tokenizer ids. */
typedef struct {
    const Tokenizer *tokenizer;
    PrintableStream text;
    bool begun;
} Printer;

/* Called for each new token: prints whole characters as soon as they are complete. */
static void print_token(void *context, int token) {
    Printer *p = context;
    if (p->tokenizer) {
        size_t bytes;
        const unsigned char *text = tokenizer_bytes(p->tokenizer, token, &bytes);
        printable_add(&p->text, text, bytes, stdout);
    } else {
        printf(p->begun ? " %d" : "%d", token);
    }
    p->begun = true;
    // Without a flush a pipe would show the text only at the end. A full disk is noticed here too.
    if (fflush(stdout) != 0) fatal(EXIT_RUNTIME, "cannot write to standard output");
}

// ---------------------------------------------------------------------------------------------

/* tokenizer: of the model; NULL: not known. */
static void sample(GPT2 *model, const SampleOptions *o, const Tokenizer *tokenizer) {
    // NULL: ids are read and printed, because the user wants them or because no tokenizer is known.
    const Tokenizer *spoken = o->ids ? NULL : tokenizer;
    TokenList prompt = read_prompt(o, spoken, model->config.vocab);
    int32_t start = text_start(tokenizer);
    const int32_t *ids = prompt.count > 0 ? prompt.ids : &start; // an empty prompt is not shown
    int n = prompt.count > 0 ? (int)prompt.count : 1;
    for (int64_t i = 0; i < o->count; i++) {
        Sampling sampling = {.temperature = o->top_p == 0 ? 0 : o->temperature, // only the likeliest
                             .top_k = (int)o->top_k,
                             .top_p = o->top_p,
                             .stop = !o->slide,
                             .seed = o->seed + (uint64_t)i};
        Printer printer = {.tokenizer = spoken};
        // Each text has a seed of its own: text 3 of --seed 42 is text 1 of --seed 44.
        if (i > 0) printf("---\n");
        for (size_t k = 0; k < prompt.count; k++) print_token(&printer, prompt.ids[k]);
        generate(model, ids, n, o->tokens, &sampling, print_token, &printer);
        printable_end(&printer.text, stdout);
        printf("\n");
    }
    free(prompt.ids);
}

int command_sample(int argc, char **argv) {
    World world = world_open(&argc, &argv);
    SampleOptions o = {0};
    OptionValues values = {.table = &table, .fields = &o};
    option_parse(&values, argc, argv);
    option_fill_in(&values, false);
    if (!o.model)
        fatal(EXIT_USAGE, "sample needs --model PATH, the model that generates the text: a run, a checkpoint, weights");
    // Tokens are generated one after the other: several ranks would print the same text several times.
    if (world.size > 1) fatal(EXIT_USAGE, "sample runs on one rank; start it without mpirun");

    backend_open(0, 1, (int)o.threads);
    char *path = checkpoints_resolve(o.model);
    Weights *weights = weights_open(path);
    // One sequence at a time, without gradients or the optimizer's moments.
    GPT2 *model = gpt2_new(weights_config(weights), 1, false, false);
    weights_load(weights, model);
    checkpoint_check_unchanged(path);
    weights_close(weights);
    Tokenizer *tokenizer = choose_tokenizer(o.tokenizer, path, model->config.vocab);
    sample(model, &o, tokenizer);
    tokenizer_free(tokenizer);
    gpt2_free(model);
    free(path);
    world_close();
    return EXIT_DONE;
}

/* command_sample.c: `train_gpt2 sample`: a model continues a prompt, and what it says is shown as it says
 * it. Models with a vocabulary of 256 speak bytes; others, and --ids, speak token ids. */
#include "../base/error.h"
#include "../base/memory.h"
#include "../base/utf8.h"
#include "../checkpoint/checkpoint_list.h"
#include "../ranks/world.h"
#include "../settings/option_parse.h"
#include "../train/text.h"
#include "../weights/weights.h"
#include "commands.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *model, *prompt;
    bool ids, slide;
    int64_t tokens, count, top_k, threads;
    double temperature, top_p;
    uint64_t seed;
} SampleOptions;

#define FIELD(name) offsetof(SampleOptions, name)
static const Option rows[] = {
    {"model", "PATH", "Model", OPTION_STRING, FIELD(model), NO_RANGE, NULL, NULL,
     HELP_MODEL},
    {"prompt", "TEXT", "Text", OPTION_STRING, FIELD(prompt), NO_RANGE, NULL, NULL,
     "what to continue: text, or with --ids token ids; else a line break, or GPT-2's end of text"},
    {"ids", NULL, "Text", OPTION_SWITCH, FIELD(ids), NO_RANGE, "false", "false",
     "read and print token ids; always so where tokens are not bytes"},
    {"tokens", "N", "Text", OPTION_INTEGER, FIELD(tokens), INTERVAL, "200", "200", "tokens to add"},
    {"slide", NULL, "Text", OPTION_SWITCH, FIELD(slide), NO_RANGE, "true", "true",
     "when the context is full, go on from its later half, instead of stopping"},
    {"count", "N", "Text", OPTION_INTEGER, FIELD(count), COUNT, "1", "1",
     "texts, each with the next seed"},
    {"temperature", "X", "Choice", OPTION_REAL, FIELD(temperature), NOT_NEGATIVE, "0.8", "0.8",
     "0 takes the likeliest token, 1 draws as the model predicts, above is wilder"},
    {"top-k", "K", "Choice", OPTION_INTEGER, FIELD(top_k), COUNT_OR_0, "0", "0",
     "among the K likeliest tokens; 0: among all"},
    {"top-p",
     "X",
     "Choice",
     OPTION_REAL,
     FIELD(top_p),
     {0, 1, false, false},
     "1",
     "1",
     "among the likeliest tokens that together have this probability"},
    {"seed", "N", "Choice", OPTION_SEED, FIELD(seed), NO_RANGE, "42", "42", "of the choices"},
    {"threads", "N", "Choice", OPTION_INTEGER, FIELD(threads), THREADS, NULL, NULL,
     "CPU threads, instead of all cores; does not change the result"},
};
static const OptionTable table = {
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
    .usage = "Usage: train_gpt2 sample --model PATH [--prompt TEXT] [--OPTION VALUE]...\n"
             "\n"
             "Continues a prompt and prints prompt and continuation as they come.\n",
};

// ---------------------------------------------------------------------------------------------
// The prompt

/* The bytes of a text that must be UTF-8, as ids. */
static int32_t *ids_of_text(const char *text, int *count) {
    size_t bytes = strlen(text);
    int32_t *ids = memory_new(bytes, sizeof *ids, "the prompt");
    for (size_t i = 0, length; i < bytes; i += length) {
        length = utf8_length((const unsigned char *)text + i, bytes - i);
        if (length == 0)
            fatal(EXIT_USAGE, "--prompt: byte %zu, 0x%02x, is not UTF-8; give token ids with --ids",
                  i, (unsigned char)text[i]);
        for (size_t k = i; k < i + length; k++) ids[k] = (unsigned char)text[k];
    }
    *count = (int)bytes;
    return ids;
}

/* The ids to begin with; free() releases them. */
static int32_t *read_prompt(const SampleOptions *o, bool bytes, int vocab, int *count) {
    int32_t *ids = NULL;
    *count = 0;
    if (o->prompt)
        ids = bytes && !o->ids ? ids_of_text(o->prompt, count)
                               : text_ids("--prompt", o->prompt, vocab, count);
    if (*count > 0) return ids;
    ids = memory_grow(ids, 1, sizeof *ids, "the prompt");
    ids[0] = text_start(bytes, vocab);
    *count = 1;
    return ids;
}

// ---------------------------------------------------------------------------------------------
// Printing

/* Prints tokens as they come: ids, or characters as soon as they are whole. */
typedef struct {
    bool ids, begun;
    unsigned char held[4]; // the beginning of a character
    size_t count;
} Printer;

/* Whether the bytes held may become a character with those to come. */
static bool is_beginning(const unsigned char *held, size_t count) {
    size_t whole = held[0] >= 0xF0 ? 4 : held[0] >= 0xE0 ? 3 : held[0] >= 0xC2 ? 2 : 1;
    bool good = count < whole && held[0] <= 0xF4;
    for (size_t i = 1; i < count; i++) good = good && (held[i] & 0xC0) == 0x80;
    return good;
}

/* Prints what is held as far as it can be decided; `last`: nothing more comes. */
static void print_held(Printer *p, bool last) {
    while (p->count > 0) {
        size_t length = utf8_length(p->held, p->count);
        if (length == 0 && !last && is_beginning(p->held, p->count)) return;
        if (length == 0) length = 1;
        char *text = text_printable(p->held, length);
        fputs(text, stdout);
        free(text);
        p->count -= length;
        memmove(p->held, p->held + length, p->count);
    }
}

static void print_token(void *context, int token) {
    Printer *p = context;
    if (p->ids) {
        printf(p->begun ? " %d" : "%d", token);
    } else {
        p->held[p->count++] = (unsigned char)token;
        print_held(p, false);
    }
    p->begun = true;
    if (fflush(stdout) != 0) fatal(EXIT_RUNTIME, "cannot write to standard output");
}

// ---------------------------------------------------------------------------------------------

static void sample(GPT2 *model, const SampleOptions *o, bool bytes) {
    int n;
    int32_t *prompt = read_prompt(o, bytes, model->config.vocab, &n);
    for (int64_t i = 0; i < o->count; i++) {
        Sampling sampling = {.temperature = o->temperature,
                             .top_k = (int)o->top_k,
                             .top_p = o->top_p,
                             .stop = !o->slide,
                             .seed = o->seed + (uint64_t)i};
        Printer printer = {.ids = o->ids || !bytes};
        if (i > 0) printf("---\n");
        for (int k = 0; k < n && o->prompt; k++) print_token(&printer, prompt[k]);
        generate(model, prompt, n, o->tokens, &sampling, print_token, &printer);
        print_held(&printer, true);
        printf("\n");
    }
    free(prompt);
}

int command_sample(int argc, char **argv) {
    World world = world_open(&argc, &argv);
    SampleOptions o = {0};
    OptionValues values = {.table = &table, .fields = &o};
    option_parse(&values, argc, argv);
    option_fill_in(&values, false);
    if (!o.model) fatal(EXIT_USAGE, "sample needs --model PATH: what is to speak");
    if (world.size > 1) fatal(EXIT_USAGE, "sample runs on one rank; start it without mpirun");

    backend_open(0, 1, (int)o.threads);
    char *path = checkpoints_resolve(o.model);
    Weights *weights = weights_open(path);
    GPT2 *model = gpt2_new(weights_config(weights), 1, false, false);
    weights_load(weights, model);
    weights_close(weights);
    sample(model, &o, model->config.vocab == 256);
    gpt2_free(model);
    free(path);
    world_close();
    return EXIT_DONE;
}

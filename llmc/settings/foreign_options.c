/* foreign_options.c: see foreign_options.h. The short options are those of llm.c's train_gpt2.cu, whose names
 * and meanings its usage text gives; the long ones are settings of nanoGPT's train.py and sample.py, arguments
 * of llm.c's train_gpt2.py, and of Hugging Face's Trainer. */
#include "foreign_options.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../base/number.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------------
// llm.c's short options

typedef struct {
    const char *name;
    const char *value; // NULL: any other
    const char *
        words; // here: % is the value, * the value times the learning rate; "": always done; or NULL,
    const char *remedy; // and this is the way to do it
} ShortOption;

static const char ranks_remedy[] = "ranks are started by mpirun -np R or srun, which number them";

/* Of one name the first row whose value fits. Numbers compare by value: 0, 0.0. */
static const ShortOption short_options[] = {
    {"-i", NULL, "--data %", NULL},
    {"-j", NULL, "--val %", NULL},
    // llm.c names a shape by its depth: d12 has 12 layers. The width follows from it; heads have 64 channels.
    {"-e", "d6", "--model gpt2 --layers 6 --heads 6 --channels 384", NULL},
    {"-e", "d12", "--model gpt2", NULL},
    {"-e", "d24", "--model gpt2-medium", NULL},
    {"-e", "d36", "--model gpt2-large", NULL},
    {"-e", "d48", "--model gpt2-xl", NULL},
    {"-e", "d60", "--model gpt2-xl --layers 60 --heads 30 --channels 1920", NULL},
    {"-e", NULL, "--model %", NULL},
    {"-o", NULL, "--out %", NULL},
    {"-b", NULL, "--batch %", NULL},
    {"-t", NULL, "--seq-len %", NULL},
    // -1 asks llm.c for a value of its own choice. Here the size of an update is always a number that the user knows.
    {"-d", "-1", NULL, "give --total-batch N, the tokens of one update"},
    {"-d", NULL, "--total-batch %", NULL},
    {"-x", "-1", "--epochs 1", NULL},
    {"-x", NULL, "--steps %", NULL},
    {"-k", NULL, "--schedule %", NULL},
    {"-l", NULL, "--lr %", NULL},
    {"-u", NULL, "--warmup %", NULL},
    {"-q", NULL, "--min-lr *", NULL},
    {"-c", NULL, "--weight-decay %", NULL},
    {"-v", NULL, "--val-every %", NULL},
    {"-m", NULL, NULL, "give --val-tokens N, the validation targets: batches x B x T x ranks"},
    {"-s", NULL, "--sample-every %", NULL},
    {"-g", NULL, "--sample-tokens %", NULL},
    {"-n", NULL, "--save-every %", NULL},
    {"-nk", NULL, "--keep %", NULL},
    {"-nm", "0", "", NULL},
    {"-nm", NULL, NULL, "--keep 0 keeps all checkpoints, --keep-best the best beside the newest"},
    // A value of 0 or 1 becomes a word, or a switch with its negation.
    {"-y", "0", "--resume never", NULL},
    {"-y", "1", "--resume auto", NULL},
    {"-r", "0", "--no-recompute", NULL},
    {"-r", "1", "--recompute", NULL},
    {"-r", "2", "--recompute", NULL},
    // The value that asks for what this program does anyway is accepted; any other is refused with a remedy. A script
    // that lists llm.c's defaults thus runs unchanged.
    {"-z", "0", "", NULL},
    {"-z", NULL, NULL, "every rank keeps the whole optimizer state; leave -z out"},
    {"-w", "1", "", NULL},
    {"-w", NULL, NULL, "master weights are always kept in float; leave -w out"},
    {"-f", "0", "", NULL},
    {"-f", NULL, NULL, "float is never rounded to TF32, bf16 is the fast type; leave -f out"},
    {"-a", "0", "", NULL},
    {"-a", NULL, NULL,
     "to overfit one batch, give --data a file with only its tokens, and --val-fraction 0"},
    {"-h", "0", "", NULL},
    {"-h", "1", "--hellaswag dev/data/hellaswag/hellaswag_val.bin", NULL},
    {"-sl", "0", "", NULL},
    {"-sl", NULL, NULL,
     "no update is skipped as an outlier; --clip bounds each, --nonfinite skip:K skips NaN"},
    {"-sg", "0", "", NULL},
    {"-sg", NULL, NULL,
     "no update is skipped as an outlier; --clip bounds each, --nonfinite skip:K skips NaN"},
    {"-lg", "-1", "", NULL},
    {"-lg", "0", "", NULL},
    {"-lg", NULL, NULL, "the GPU's clocks are not logged; run nvidia-smi dmon beside the program"},
    {"-ge", NULL, NULL, "GELU is fused wherever that is faster; leave -ge out"},
    // llm.c can start without MPI when the command line numbers its processes. Here the launcher always does that.
    {"-pn", "1", "", NULL},
    {"-pn", NULL, NULL, ranks_remedy},
    {"-pr", NULL, NULL, ranks_remedy},
    {"-pg", NULL, NULL, ranks_remedy},
    {"-pm", "mpi", "", NULL},
    {"-pm", NULL, NULL, ranks_remedy},
    {"-ps", NULL, NULL, ranks_remedy},
    {"-pf", NULL, NULL, ranks_remedy},
};

enum { SHORT_OPTIONS = sizeof short_options / sizeof short_options[0], SAID = 1200 };

static char said[SAID]; // "-l is --lr here, -e d12 is --model gpt2"

/* Whether a text is a number as a whole. */
static bool is_number(const char *text) {
    double value;
    return text && number_read_real(text, &value) == NUMBER_OK;
}

bool foreign_is_short(const char *word, const char *next) {
    if (word[0] != '-' || !isalpha((unsigned char)word[1])) return false;
    // -h alone asks for help; with a number it is llm.c's HellaSwag switch.
    if (strcmp(word, "-h") == 0) return is_number(next);
    return word[1 + strspn(word + 1, "abcdefghijklmnopqrstuvwxyz")] == '\0';
}

/* Whether two texts mean the same: compared as numbers where both are numbers. */
static bool same_value(const char *a, const char *b) {
    double x, y;
    if (number_read_real(a, &x) == NUMBER_OK && number_read_real(b, &y) == NUMBER_OK) return x == y;
    return strcmp(a, b) == 0;
}

/* The row of an option and its value; NULL where there is none. *known: llm.c has the option. */
static const ShortOption *find_short(const char *name, const char *value, bool *known) {
    *known = false;
    for (int i = 0; i < SHORT_OPTIONS; i++) {
        const ShortOption *row = &short_options[i];
        if (strcmp(row->name, name) != 0) continue;
        *known = true;
        if (!row->value || same_value(row->value, value)) return row;
    }
    return NULL;
}

/* The learning rate that the command line gives, as text; NULL: none. */
static const char *given_rate(int argc, char **argv) {
    const char *rate = NULL;
    // -q comes before or after -l, so the whole line is searched. The last rate counts, as for every option.
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--lr=", 5) == 0) rate = argv[i] + 5;
        if (i + 1 < argc && (strcmp(argv[i], "-l") == 0 || strcmp(argv[i], "--lr") == 0))
            rate = argv[i + 1];
    }
    return rate;
}

/* value * the learning rate, to 15 digits, so that a tenth of 6e-4 is 6e-5. */
static char *share_of_rate(const char *name, const char *value, const char *rate) {
    double share, of;
    if (!rate)
        fatal(EXIT_USAGE,
              "%s %.40s is a share of the learning rate: give -l (here --lr) too, or --min-lr X",
              name, value);
    if (number_read_real(value, &share) != NUMBER_OK || number_read_real(rate, &of) != NUMBER_OK)
        fatal(EXIT_USAGE, "%s '%.40s' of -l '%.40s' is not a number; give --lr and --min-lr", name,
              value, rate);
    char *text = memory_new(NUMBER_CHARS, 1, "an option");
    snprintf(text, NUMBER_CHARS, "%.15g", share * of);
    return text;
}

/* Adds "-l is --lr" to what foreign_say says; what: the words here. */
static void remember(const ShortOption *row, const char *value, const char *what) {
    size_t at = strlen(said);
    snprintf(said + at, SAID - at, "%s%s%s%s is %s here", at ? ", " : "", row->name,
             row->value ? " " : "", row->value ? value : "", *what ? what : "always so");
}

/* row->words divided at blanks, with the value in its place. Returns their number. */
static int fill_in(const ShortOption *row, const char *value, const char *rate,
                   char *words[FOREIGN_WORDS]) {
    static char *kept[4 * SHORT_OPTIONS]; // they live as long as the program does
    static int used;
    int count = 0;
    char *text = memory_string(row->words), *rest = text;
    for (char *word; (word = strtok_r(rest, " ", &rest)) && count < FOREIGN_WORDS;) {
        char *owned = *word == '*'   ? share_of_rate(row->name, value, rate)
                      : *word == '%' ? memory_string(value)
                                     : memory_string(word);
        if (used < (int)(sizeof kept / sizeof kept[0])) kept[used++] = owned;
        words[count++] = owned;
    }
    free(text);
    return count;
}

int foreign_translate(int argc, char **argv, int at, char *words[FOREIGN_WORDS]) {
    const char *name = argv[at], *value = at + 1 < argc ? argv[at + 1] : NULL;
    bool known;
    const ShortOption *row = find_short(name, value ? value : "", &known);
    if (!known) return -1;
    // A value may begin with one dash (-x -1), but not with two: then the user has forgotten it.
    if (!value || strncmp(value, "--", 2) == 0)
        fatal(EXIT_USAGE,
              "%s has no value; llm.c's options have one each (--help lists this program's)", name);
    if (!row)
        fatal(EXIT_USAGE,
              "%s %.40s: llm.c gives it no such value; --help lists this program's options", name,
              value);
    if (!row->words)
        fatal(EXIT_USAGE, "%s %.80s (of llm.c) has no counterpart: %s", name, value, row->remedy);
    int count = fill_in(row, value, given_rate(argc, argv), words);
    // What is printed: "-l is --lr here", but "-e d12 is --model gpt2 here", where the value has another meaning too.
    char what[120];
    bool whole = row->value || strchr(row->words, '*'); // not just a name and the same value
    snprintf(what, sizeof what, "%.*s", whole ? 118 : (int)strcspn(row->words, " "), row->words);
    if (strchr(row->words, '*')) snprintf(what, sizeof what, "%s %s", words[0], words[1]);
    remember(row, value, what);
    return count;
}

void foreign_say(void) {
    if (*said) notice("%s; all other settings have this program's defaults", said);
    *said = '\0';
}

// ---------------------------------------------------------------------------------------------
// Long names

typedef struct {
    const char *name;   // with - for _
    const char *here;   // an option here, or NULL,
    const char *remedy; // and this is the way
} LongOption;

static const char output_remedy[] =
    "metrics.jsonl holds every value, and dev/plot draws the curves";
static const char device_remedy[] =
    "train_gpt2 runs on the CPU, train_gpt2cu on the GPU; leave it out";
static const char accumulation_remedy[] =
    "--total-batch N sets the tokens of one update; micro-steps follow from it";
static const char type_remedy[] =
    "the build decides: make train_gpt2cu computes in bf16, PRECISION=FP32 in float";
static const char speed_remedy[] = "the kernels are compiled already; leave it out";

/* Rows of one name: the first whose option the command has. */
static const LongOption long_options[] = {
    // shape
    {"n-layer", "layers", NULL},
    {"n-head", "heads", NULL},
    {"n-embd", "channels", NULL},
    {"block-size", "seq-len", NULL},
    {"sequence-length", "seq-len", NULL},
    {"context-length", "seq-len", NULL},
    {"vocab-size", "vocab", NULL},
    {"init-from", "model", NULL},
    {"model-name-or-path", "model", NULL},
    {"checkpoint", "model", NULL},
    {"bias", NULL, "GPT-2's linear layers and LayerNorms have biases; leave it out"},
    {"dropout", NULL, "there is no dropout (0.0 everywhere); leave it out"},
    // data
    {"dataset", "data", NULL},
    {"data-dir", "data", NULL},
    {"train-data", "data", NULL},
    {"input-bin", "data", NULL},
    {"input-val-bin", "val", NULL},
    {"val-data", "val", NULL},
    // batch
    {"batch-size", "batch", NULL},
    {"micro-batch-size", "batch", NULL},
    {"per-device-train-batch-size", "batch", NULL},
    {"total-batch-size", "total-batch", NULL},
    {"gradient-accumulation-steps", NULL, accumulation_remedy},
    {"grad-accum-steps", NULL, accumulation_remedy},
    {"max-iters", "steps", NULL},
    {"max-steps", "steps", NULL},
    {"num-iterations", "steps", NULL},
    {"iterations", "steps", NULL},
    {"num-train-epochs", "epochs", NULL},
    {"num-epochs", "epochs", NULL},
    {"gradient-checkpointing", "recompute", NULL},
    {"num-threads", "threads", NULL},
    // optimizer
    {"learning-rate", "lr", NULL},
    {"max-lr", "lr", NULL},
    {"warmup-iters", "warmup", NULL},
    {"warmup-steps", "warmup", NULL},
    {"lr-decay-iters", "decay-steps", NULL},
    {"lr-scheduler-type", "schedule", NULL},
    {"decay-lr", NULL, "--schedule constant keeps the learning rate constant"},
    {"learning-rate-decay-frac", NULL, "--min-lr X is the learning rate at the end"},
    {"grad-clip", "clip", NULL},
    {"max-grad-norm", "clip", NULL},
    {"adam-beta1", "beta1", NULL},
    {"adam-beta2", "beta2", NULL},
    {"adam-epsilon", "eps", NULL},
    {"zero-stage", NULL, "every rank keeps the whole optimizer state; leave it out"},
    {"overfit-single-batch", NULL, "give --data a file with only its tokens, and --val-fraction 0"},
    // output
    // One name may have two rows: of nanoGPT's train.py and sample.py, the one whose option this command has is taken.
    {"out-dir", "out", NULL},
    {"out-dir", "model", NULL}, // of sample.py
    {"output-dir", "out", NULL},
    {"overwrite-output-dir", "overwrite", NULL},
    {"resume-from-checkpoint", "resume", NULL},
    {"eval-interval", "val-every", NULL},
    {"eval-steps", "val-every", NULL},
    {"val-loss-every", "val-every", NULL},
    {"eval-iters", NULL, "--val-tokens N sets the number of validation targets"},
    {"val-max-steps", NULL, "--val-tokens N sets the number of validation targets"},
    {"eval-only", NULL, "train_gpt2 eval --model PATH --data PATH prints the loss"},
    {"log-interval", "log-every", NULL},
    {"logging-steps", "log-every", NULL},
    {"save-interval", "save-every", NULL},
    {"save-steps", "save-every", NULL},
    {"save-total-limit", "keep", NULL},
    {"always-save-checkpoint", NULL,
     "--save-every N saves every N steps, --keep-best also when validation improves"},
    {"load-best-model-at-end", "keep-best", NULL},
    {"wandb-log", NULL, output_remedy},
    {"wandb-project", NULL, output_remedy},
    {"wandb-run-name", NULL, output_remedy},
    {"report-to", NULL, output_remedy},
    // the machine
    // What other programs choose at run time is decided here by the build.
    {"device", NULL, device_remedy},
    {"backend", NULL, device_remedy},
    {"dtype", NULL, type_remedy},
    {"bf16", NULL, type_remedy},
    {"fp16", NULL, type_remedy},
    {"compile", NULL, speed_remedy},
    {"flash", NULL, speed_remedy},
    {"tensorcores", NULL, speed_remedy},
    // sampling
    {"start", "prompt", NULL},
    {"num-samples", "count", NULL},
    {"max-new-tokens", "tokens", NULL},
    {"n-predict", "tokens", NULL},
};

/* Whether two names are the same but for - and _. */
static bool same_name(const char *a, const char *b) {
    while (*a && (*a == '_' ? '-' : *a) == *b) a++, b++;
    return !*a && !*b;
}

/* The row of a name, however its words are joined; NULL: none. */
static const Option *find_option(const OptionTable *table, const char *name) {
    for (int i = 0; i < table->count; i++)
        if (same_name(name, table->rows[i].name)) return &table->rows[i];
    return NULL;
}

const char foreign_python_hint[] =
    "settings are not read from Python files; give them as options (n_layer is "
    "--layers, max_iters is --steps; --help lists all)";

bool foreign_is_python(const char *word) {
    // nanoGPT takes a file of settings as its first argument: train.py config/train_shakespeare_char.py
    size_t length = strlen(word);
    return length > 3 && strcmp(word + length - 3, ".py") == 0;
}

/* What the option `name` is in the table; NULL, with its *remedy or NULL, where it is nothing. */
static const Option *counterpart(const OptionTable *table, const char *name, const char **remedy) {
    const Option *option = find_option(table, name);
    *remedy = NULL;
    for (size_t i = 0; !option && !*remedy && i < sizeof long_options / sizeof long_options[0];
         i++) {
        const LongOption *row = &long_options[i];
        if (!same_name(name, row->name)) continue;
        *remedy = row->remedy;
        if (row->here) option = find_option(table, row->here);
    }
    return option;
}

enum { NAME = 64 }; // no option's name is as long

/* The name in --name=value, and the text after =, or NULL. */
static const char *split_word(const char *word, char name[NAME]) {
    snprintf(name, NAME, "%s", word + strspn(word, "-"));
    name[strcspn(name, "=")] = '\0';
    const char *equals = strchr(word, '=');
    return equals ? equals + 1 : NULL;
}

/* Appends "--name=value" as it is here. */
static void append_option(char *text, size_t size, const Option *option, const char *value) {
    size_t at = strlen(text);
    bool valued = value && option->metavar; // a switch takes none
    snprintf(text + at, size - at, "--%s%s%.60s", option->name, valued ? "=" : "",
             valued ? value : "");
}

/* Whether a word is written like an option of this table, but is not one. */
static bool is_foreign(const OptionTable *table, const char *word, const char *name) {
    if (strncmp(word, "--", 2) != 0) return false;
    const Option *same = find_option(table, name);
    return !same || strcmp(same->name, name) != 0;
}

const char *foreign_hint(const OptionTable *table, int count, char **words) {
    static char text[900];
    char name[NAME];
    const char *value = split_word(words[0], name), *remedy;
    const Option *option = counterpart(table, name, &remedy);
    if (!option && !remedy) return NULL;
    snprintf(text, sizeof text, "%s", option ? "did you mean " : remedy);
    if (option) append_option(text, sizeof text, option, value);
    const char *join = option ? "? And " : ". And "; // what comes before the first of the others
    bool alone = true;
    // A command line from another program has several such names. All are translated in one message, so that the user
    // corrects the line once.
    for (int i = 1; i < count && strlen(text) < sizeof text - 3 * NAME; i++) {
        value = split_word(words[i], name);
        if (!is_foreign(table, words[i], name) || !(option = counterpart(table, name, &remedy)))
            continue;
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s--%s is ", join, name);
        append_option(text, sizeof text, option, value);
        join = ", ", alone = false;
    }
    if (alone && !remedy) strcat(text, "?"); // there is room: text is far longer than one option
    return text;
}

/* train_options.c: the options of training and planning, one row each. The defaults of gpt2 are those of the
 * course's reproduction of the 124M model; tiny's make a run of about a minute on two cores. */
#include "option.h"

#include <limits.h>
#include <math.h>

#define FIELD(name) offsetof(Settings, name)

const Option option_table[] = {
    // A --model that begins with gpt2 selects the second column of defaults. The other options of this section have no
    // default, because each replaces one number of the model's shape.
    {"model", "NAME", "Model", OPTION_STRING, FIELD(model), NO_RANGE, "tiny", "gpt2",
     "shape and settings to start from: tiny, gpt2 (124M), gpt2-medium, gpt2-large or gpt2-xl; or "
     "weights: a "
     "Hugging Face directory, a checkpoint, or an llm.c .bin file"},
    {"layers", "L", "Model", OPTION_INTEGER, FIELD(layers), COUNT, NULL, NULL,
     "transformer blocks, instead of the model's"},
    {"heads", "NH", "Model", OPTION_INTEGER, FIELD(heads), COUNT, NULL, NULL,
     "attention heads, instead of the model's; must divide the channels"},
    {"channels", "C", "Model", OPTION_INTEGER, FIELD(channels), COUNT, NULL, NULL,
     "width of the residual stream, instead of the model's"},
    {"seq-len", "T", "Model", OPTION_INTEGER, FIELD(seq_len), COUNT, NULL, NULL,
     "tokens in a sequence, instead of the model's; of weights, up to theirs"},
    {"vocab", "V", "Model", OPTION_INTEGER, FIELD(vocab), COUNT, NULL, NULL,
     "size of the vocabulary, instead of the tokenizer's (256 for bytes, GPT-2's 50,257) or of what nanoGPT's "
     "meta.pkl beside the data contains"},

    // Only --data and --val may repeat. This section, --total-batch and --seq-len decide what an update sees.
    {"data", "PATH", "Data", OPTION_LIST, FIELD(data), NO_RANGE, NULL, NULL,
     "train on this file, directory or quoted glob; may repeat; else on the built-in text. Of a "
     "directory or glob, files named val are for validation, those named test are left out"},
    {"val", "PATH", "Data", OPTION_LIST, FIELD(val), NO_RANGE, NULL, NULL,
     "validate on this file, directory or quoted glob; may repeat"},
    {"tokenizer", "NAME", "Data", OPTION_STRING, FIELD(tokenizer), NO_RANGE, NULL, NULL,
     "bytes, gpt2, or tokenizer files (vocab.json and merges.txt, or tokenizer.json) or their "
     "directory; else the weights' own, or bytes for tiny and gpt2 for gpt2"},
    {"val-fraction", "X", "Data", OPTION_REAL, FIELD(val_fraction), FRACTION, "0.1", "0.1",
     "without --val, the share of the data's end that is kept for validation; 0: none"},
    {"data-type", "TYPE", "Data", OPTION_CHOICE, FIELD(data_type), CHOICES(DATA_TYPES), "auto", "auto",
     HELP_DATA_TYPE},
    {"shuffle", NULL, "Data", OPTION_SWITCH, FIELD(shuffle), NO_RANGE, "true", "true",
     "train on each epoch's sequences in a random order, instead of the data's"},
    {"seed", "N", "Data", OPTION_SEED, FIELD(seed), NO_RANGE, "42", "42",
     "seed of the initial weights, the order of sequences, and samples"},

    // Chapter 27.5: 524288 = 64 * 1024 * K * R tokens of an update, and 10^10 tokens / 524288 = 19073 updates. --batch
    // only divides the work; --total-batch decides what an update sees.
    {"batch", "B", "Batch", OPTION_INTEGER, FIELD(batch), COUNT, "8", "64",
     "sequences that a rank computes at a time; changes the result by rounding only"},
    {"total-batch", "N", "Batch", OPTION_INTEGER, FIELD(total_batch), LARGE, "1024", "524288",
     "tokens of one update, over all ranks and micro-steps; a multiple of the sequence's length"},
    {"steps", "N", "Batch", OPTION_INTEGER, FIELD(steps), LARGE, "1000", "19073",
     "updates to make"},
    {"epochs", "X", "Batch", OPTION_REAL, FIELD(epochs), POSITIVE, NULL, NULL,
     "passes over the data, such as 2.5, instead of --steps"},
    {"recompute", NULL, "Batch", OPTION_SWITCH, FIELD(recompute), NO_RANGE, "false", "false",
     "keep only each block's input and compute the rest again: less memory, more time"},
    {"threads", "N", "Batch", OPTION_INTEGER, FIELD(threads), THREADS, NULL, NULL, HELP_THREADS},
    {"rank-timeout", "SECONDS", "Batch", OPTION_REAL, FIELD(rank_timeout), TIMEOUT, "10", "10",
     "end all ranks when one has sent no heartbeat for this long; 0: wait forever"},
    {"hang-timeout", "SECONDS", "Batch", OPTION_REAL, FIELD(hang_timeout), TIMEOUT, "1800", "1800",
     "end all ranks when one is alive but has made no progress for this long; 0: wait forever"},

    // gpt2's are those of chapters 27.1 and 27.2. The warm-up is 715 * 524288 tokens, about 375 million.
    {"lr", "X", "Optimizer", OPTION_REAL, FIELD(lr), POSITIVE, "1e-3", "6e-4",
     "the largest learning rate; 3e-5 where --model is weights"},
    {"min-lr", "X", "Optimizer", OPTION_REAL, FIELD(min_lr), NOT_NEGATIVE, "1e-4", "6e-5",
     "the learning rate at the end; a tenth of --lr if only --lr is given"},
    {"warmup", "N", "Optimizer", OPTION_INTEGER, FIELD(warmup), INTERVAL, "100", "715",
     "steps in which the learning rate rises linearly"},
    {"decay-steps", "N", "Optimizer", OPTION_INTEGER, FIELD(decay_steps), LARGE, NULL, NULL,
     "step at which the learning rate reaches its minimum, instead of the last step"},
    {"schedule", "KIND", "Optimizer", OPTION_CHOICE, FIELD(schedule),
     CHOICES("cosine linear constant wsd"), "cosine",
     "cosine", "how the learning rate falls after the warmup"},
    {"beta1", "X", "Optimizer", OPTION_REAL, FIELD(beta1), FRACTION, "0.9", "0.9",
     "AdamW: decay rate of the first moment, the running mean of gradients"},
    {"beta2", "X", "Optimizer", OPTION_REAL, FIELD(beta2), FRACTION, "0.99", "0.95",
     "AdamW: decay rate of the second moment, the running mean of squared gradients"},
    {"eps", "X", "Optimizer", OPTION_REAL, FIELD(eps), POSITIVE, "1e-8", "1e-8",
     "AdamW: added to the square root of the second moment"},
    {"weight-decay", "X", "Optimizer", OPTION_REAL, FIELD(weight_decay), NOT_NEGATIVE, "0.1", "0.1",
     "AdamW: decoupled weight decay, only of matrices and embeddings"},
    {"clip", "X", "Optimizer", OPTION_REAL, FIELD(clip), NOT_NEGATIVE, "1.0", "1.0",
     "largest norm of an update's gradient: a larger gradient is scaled down to it; 0: no clipping"},
    {"nonfinite", "WHAT", "Optimizer", OPTION_NONFINITE, FIELD(nonfinite_skips), COUNT, "stop",
     "stop",
     "when a loss or gradient is NaN or infinite: stop, or skip up to K updates in a row"},
    {"exact", NULL, "Optimizer", OPTION_SWITCH, FIELD(exact), NO_RANGE, "true", "true",
     "exact sums: the same bits for every number of ranks, micro-steps and threads at equal --batch"},

    // Nothing in this section changes the weights of a step. 10485760 = 20 * 524288: validation reads as many targets
    // as 20 updates.
    {"out", "DIR", "Output", OPTION_STRING, FIELD(out), NO_RANGE, NULL, NULL,
     "directory of the run's files, instead of the next free out/run-NNNN"},
    {"overwrite", NULL, "Output", OPTION_SWITCH, FIELD(overwrite), NO_RANGE, "false", "false",
     "replace a run that --out already holds"},
    {"resume", "WHAT", "Output", OPTION_STRING, FIELD(resume),
     CHOICES("auto, must, never, a checkpoint or the directory of a run"), "never", "never",
     "auto: continue from the newest good checkpoint in --out, or start a new run if there is none; must: "
     "fail if there is none; a checkpoint or a run's directory: continue from there; never: start a new run. "
     "Options not given are those of the checkpoint"},
    {"force", NULL, "Output", OPTION_SWITCH, FIELD(force), NO_RANGE, "false", "false",
     "resume even if data or options differ from those of the checkpoint"},
    {"save-every", "N", "Output", OPTION_INTEGER, FIELD(save_every), INTERVAL, "250", "1000",
     "steps between checkpoints, and one at the end; 0: off"},
    {"keep", "K", "Output", OPTION_INTEGER, FIELD(keep), COUNT_OR_0, "2", "2",
     "keep only the newest K checkpoints; 0: all"},
    {"keep-best", NULL, "Output", OPTION_SWITCH, FIELD(keep_best), NO_RANGE, "false", "false",
     "also save a checkpoint whenever the validation loss is the lowest so far, and keep it; OUT/best "
     "names it"},
    {"val-every", "N", "Output", OPTION_INTEGER, FIELD(val_every), INTERVAL, "250", "250",
     "steps between validations; 0: off"},
    {"val-tokens", "N", "Output", OPTION_INTEGER, FIELD(val_tokens), INTERVAL, "0", "10485760",
     "validate on the first N targets, rounded up to whole sequences; 0: on all"},
    {"hellaswag", "FILE", "Output", OPTION_STRING, FIELD(hellaswag), NO_RANGE, NULL, NULL,
     "at each validation also score the model on HellaSwag's JSON lines or an llm.c evaluation "
     "file"},
    {"hellaswag-examples", "N", "Output", OPTION_INTEGER, FIELD(hellaswag_examples), COUNT_OR_0,
     "0", "0", "score only the first N examples; 0: all"},
    {"sample-every", "N", "Output", OPTION_INTEGER, FIELD(sample_every), INTERVAL, "250", "250",
     "steps between samples of what the model writes; 0: off"},
    {"sample-tokens", "N", "Output", OPTION_INTEGER, FIELD(sample_tokens), COUNT_OR_0, "200", "32",
     "length of a sample; 0: no samples"},
    {"log-every", "N", "Output", OPTION_INTEGER, FIELD(log_every), INTERVAL, "1", "1",
     "steps between lines on the screen (files have every step); 0: off"},
    {"progress", "HOW", "Output", OPTION_CHOICE, FIELD(progress), CHOICES("auto bar lines"), "auto", "auto",
     "on the screen: a bar, a line for each step, or auto: a bar on a terminal, else lines"},
    {"temperature", "X", "Output", OPTION_REAL, FIELD(temperature), NOT_NEGATIVE, "0.8", "1.0",
     "of samples: 0 takes the likeliest token, 1 draws with the model's probabilities, higher is more random"},
    {"top-k", "N", "Output", OPTION_INTEGER, FIELD(top_k), COUNT_OR_0, "0", "50",
     "sample among the K likeliest tokens; 0: among all"},

    // For `plan` only. In training the launcher sets the number of ranks, and --total-batch that of micro-steps.
    {"ranks", "R", "Plan", OPTION_INTEGER, FIELD(ranks), COUNT, NULL, NULL,
     "plan a run on R ranks"},
    {"micro-steps", "K", "Plan", OPTION_INTEGER, FIELD(micro_steps), COUNT, NULL, NULL,
     "instead of --total-batch: plan updates of K micro-batches on every rank"},
    {"rates", "N", "Plan", OPTION_INTEGER, FIELD(rates), COUNT, NULL, NULL,
     "instead of the table, print the learning rate of N steps from the first to the last, for dev/plot"},
};
const int option_count = sizeof option_table / sizeof *option_table;
static const char usage[] =
    "Usage: train_gpt2 [--OPTION VALUE]...\n"
    "       mpirun -np R train_gpt2 [--OPTION VALUE]...\n"
    "       train_gpt2 plan [--OPTION VALUE]...\n"
    "       train_gpt2 sample|eval|tokenize|verify|convert ... (each has its own --help)\n"
    "       train_gpt2 --version\n"
    "\n"
    "Trains a GPT-2. Without options: a tiny one, on the program's own source, in about a minute. On R\n"
    "ranks the run is the same run, only faster. plan trains nothing; it prints how one update is\n"
    "split. --OPTION=VALUE works as well. If an option is given twice, the last counts. In numbers, k and\n"
    "M are 1,000 and 1,000,000.\n";
static const char more[] =
    "\nDefaults after \"gpt2\" hold for every --model with GPT-2's vocabulary, named or stored.\n"
    "llm.c's short options (-i, -j, -e, -b, -t, -d, -l, ...) are understood.\n";

const OptionTable train_options = {
    .rows = option_table,
    .count = sizeof option_table / sizeof *option_table,
    .usage = usage,
    .more = more,
    .short_options = true,
    .file_option = "data",
};
_Static_assert(sizeof option_table / sizeof *option_table <= 64,
               "Settings.given has one bit per row");

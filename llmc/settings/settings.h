/* settings.h: the command line. One table (name, type, range, defaults, help) drives the parser,
 * --help, the start-up table and the recorded settings.
 *
 * Every number is used exactly or refused with one line that names option, value, range and a
 * remedy (EXIT_USAGE). Numbers are parsed whole (number.h): 1e4, 10k, 0.5M work where a number is
 * meant (k and M are 1,000 and 1,000,000; an integer option takes 0.5M but not 0.5); 2x, abc, nan
 * and "" are refused. GNU long options: --name value and --name=value; a switch is --name or
 * --no-name; names are not abbreviated; of an option given twice the last counts, but --data and
 * --val add up.
 *
 * Not here: checks that need model or data (heads dividing channels, sequences in total-batch). */
#ifndef LLMC_SETTINGS_H
#define LLMC_SETTINGS_H

#include "../optimizer/schedule.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The values of an option that may repeat. */
typedef struct {
    const char **items;
    int count;
} StringList;

/* Comments such as "0: ..." name the value that means "not given"; a user cannot give it. */
typedef struct {
    // model
    const char *model; // a named shape, or a path (weights.h)
    int64_t layers, heads, channels, seq_len,
        vocab; // 0: as the named shape (vocab: as the data) has it
    // data
    StringList data, val; // none: the built-in text; val none: val_fraction of the stream's end
    const char *tokenizer; // NULL: the weights' own, or the named shape's
    double val_fraction;  // in [0, 1); 0: no validation
    int data_type;        // a DataType (data/shard.h): of files without a header
    bool shuffle;
    uint64_t seed;
    // batch
    int64_t batch;       // B: sequences of one micro-step on one rank
    int64_t total_batch; // tokens per update
    int64_t steps;       // updates; -1: as many as `epochs` take
    double epochs;       // 0: `steps` decides
    bool recompute;
    int64_t threads;     // 0: this rank's share of the cores
    double rank_timeout; // seconds without a heartbeat until a rank counts as lost; 0: never
    double hang_timeout; // seconds without progress until a living rank counts as hanging; 0: never
    // optimizer
    double lr, min_lr;
    int64_t warmup;
    int64_t decay_steps; // -1: `steps`
    ScheduleKind schedule;
    double beta1, beta2, eps, weight_decay, clip;
    int64_t nonfinite_skips; // --nonfinite skip:K; 0: stop
    bool exact;
    // output
    const char *out; // NULL: the next free out/run-NNNN
    bool overwrite;
    const char *resume;       // "never", "auto", "must" or a checkpoint
    bool force;               // resume although settings make it another run
    int64_t save_every, keep; // steps; checkpoints, 0: all
    bool keep_best;           // the checkpoint with the lowest validation loss stays, too
    int64_t val_every, sample_every, sample_tokens, log_every; // 0: off
    int64_t val_tokens; // validation targets, rounded up to whole sequences; 0: all
    const char *hellaswag;      // NULL: none
    int64_t hellaswag_examples; // 0: all
    int progress; // a ScreenStyle (log/screen.h)
    double temperature;
    int64_t top_k; // 0: off
    // plan
    int64_t ranks, micro_steps; // 0: as it is
    int64_t rates;              // points of the learning rate to print; 0: the whole table

    uint64_t given; // which options the user set: bit i for row i of the table
} Settings;

/* Parses the options of `train`. argv[0] is skipped; strings are not copied. Handles --help
 * (prints, exits 0). Values not given come from the defaults of the named model's family: gpt2 for
 * names that begin with "gpt2", else tiny. --min-lr's is a tenth of a given --lr. min_lr <= lr
 * holds afterwards. */
Settings options_parse(int argc, char **argv);

/* The value of --hang-timeout before anything else is known: how long start-up may hang. The default where the
 * option is not given or is wrong (options_parse reports that later). */
double options_hang_timeout(int argc, char **argv);

/* The defaults of the other family for all options that the user did not give: for weights, whose vocabulary
 * decides the family, whatever their directory is called. */
void settings_set_family(Settings *settings, bool gpt2);

/* Releases the memory of the settings' lists. */
void settings_free(Settings *settings);

/* Visits every option in the order of --help with its value as text that the parser takes back (a
 * real with as many digits as read back exactly; a list joined by ", "). value is NULL where an
 * option is not set and something else decides. quoted: a string in JSON, else a number or true or
 * false. given: the user set it. */
typedef void (*OptionVisitor)(void *context, const char *name, const char *value, bool quoted,
                              bool given);
void settings_each(const Settings *settings, OptionVisitor visit, void *context);

/* The recorded value of an option, as settings_each gave it; of a list, item 0, 1, ... NULL: none. */
typedef const char *(*OptionRecord)(void *context, const char *name, int item);

/* Resuming: every option that describes the run and was not given takes its recorded value instead of a
 * default. Those that only concern this start of it keep theirs: out, overwrite, resume, force, threads,
 * progress and both timeouts. The strings are not copied. */
void settings_adopt(Settings *settings, OptionRecord record, void *context);

/* Whether the user set an option. */
bool settings_given(const Settings *settings, const char *name);

/* The text of --help, generated from the table; no line is longer than 100 columns. */
void options_help(FILE *out);

#endif

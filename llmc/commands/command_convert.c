/* command_convert.c: `train_gpt2 convert FROM TO`: weights from one format to another. To float32 nothing is
 * lost; --bf16 rounds to the nearest. */
#include "../base/error.h"
#include "../checkpoint/checkpoint.h"
#include "../checkpoint/checkpoint_list.h"
#include "../files/path.h"
#include "../settings/option_parse.h"
#include "../train/choose_tokenizer.h"
#include "../weights/hf_config.h"
#include "../weights/llmc_bin.h"
#include "../weights/weights.h"
#include "commands.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    bool bf16;
} ConvertOptions;

static const Option rows[] = {
    {"bf16", NULL, "Output", OPTION_SWITCH, offsetof(ConvertOptions, bf16), NO_RANGE, "false",
     "false",
     "write BF16 weights (llm.c's version 5), instead of float (version 3); only for .bin"},
};
static const OptionTable table = {
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
    .operands = "FROM TO",
    .usage = "Usage: train_gpt2 convert FROM TO [--bf16]\n"
             "\n"
             "Writes the weights of FROM (a checkpoint, the directory of a run, a Hugging Face "
             "directory, or an\n"
             "llm.c .bin file) as TO: an llm.c file when its name ends in .bin, else a Hugging "
             "Face directory.\n",
};

/* Whether the target's name asks for llm.c's format. */
static bool is_bin(const char *name) {
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".bin") == 0;
}

/* Writes llm.c's format, float32 or bf16. */
static void write_bin(const char *name, const char *from, Weights *weights, bool bf16) {
    // The target gets its name only when all of it is on the disk: an interrupted conversion leaves no file.
    Output *output = output_begin(name, OUTPUT_NEW_FILE);
    OutputFile *file = output_open(output, NULL);
    llmc_bin_write(file, weights_config(weights), bf16 ? LLMC_BIN_BF16 : LLMC_BIN_FLOAT,
                   weights_read_rows, weights);
    output_close(file);
    checkpoint_check_unchanged(from);
    output_commit(output);
}

/* The tokenizer's files, so that the directory encodes as before. */
static void write_tokenizer(Output *output, const Tokenizer *tokenizer, int seq_len) {
    const char *name;
    for (int i = 0; (name = tokenizer_file(tokenizer, i)); i++) {
        OutputFile *file = output_open(output, name);
        tokenizer_write(tokenizer, i, file, seq_len);
        output_close(file);
    }
}

/* tokenizer: NULL where it is not known. */
static void write_directory(const char *name, const char *from, Weights *weights, const Tokenizer *tokenizer) {
    const Config *config = weights_config(weights);
    // An empty prefix: the tensors have Hugging Face's own names, without those of the optimizer's moments.
    const TensorGroup all = {"", weights_read_rows, weights};
    Output *output = output_begin(name, OUTPUT_DIRECTORY);
    OutputFile *file = output_open(output, "config.json");
    hf_config_write(file, config, tokenizer ? tokenizer_end_of_text(tokenizer) : -1);
    output_close(file);
    file = output_open(output, "model.safetensors");
    hf_write_tensors(file, weights_table(weights), &all, 1);
    output_close(file);
    if (tokenizer) write_tokenizer(output, tokenizer, config->seq_len);
    checkpoint_check_unchanged(from);
    output_commit(output);
}

int command_convert(int argc, char **argv) {
    ConvertOptions o = {0};
    OptionValues values = {.table = &table, .fields = &o};
    option_parse(&values, argc, argv);
    option_fill_in(&values, false);
    if (values.operands.count != 2)
        fatal(EXIT_USAGE, "convert needs two names, FROM and TO, and got %d",
              values.operands.count);
    const char *to = values.operands.items[1];
    if (o.bf16 && !is_bin(to))
        fatal(EXIT_USAGE, "--bf16 is only for llm.c files: %s must end in .bin", to);
    // Nothing is overwritten: the target may be the only copy of somebody's weights.
    if (path_exists(to))
        fatal(EXIT_USAGE, "%s exists already; move it away or choose another name", to);

    // the target's name decides the format: FILE.bin is llm.c's, everything else a Hugging Face directory
    char *from = checkpoints_resolve(values.operands.items[0]);
    Weights *weights = weights_open(from);
    Tokenizer *tokenizer = choose_tokenizer(NULL, from, weights_config(weights)->vocab);
    if (is_bin(to))
        write_bin(to, from, weights, o.bf16);
    else
        write_directory(to, from, weights, tokenizer);
    // What was read is printed, because FROM may be a run, whose newest checkpoint was chosen.
    tokenizer_free(tokenizer);
    printf("%s: the weights of %s (%s)\n", to, from, weights_format(weights));
    weights_close(weights);
    free(values.operands.items);
    free(from);
    return EXIT_DONE;
}

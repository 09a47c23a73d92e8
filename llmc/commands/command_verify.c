/* command_verify.c: `train_gpt2 verify PATH...`: prints what a path is, and whether it is complete: a checkpoint
 * (all checksums), a run (each of its checkpoints), a model's weights, or data. Every path is checked; if one is
 * not complete, the exit code is 3. */
#include "../base/error.h"
#include "../checkpoint/checkpoint.h"
#include "../checkpoint/checkpoint_list.h"
#include "../data/stream.h"
#include "../files/path.h"
#include "../settings/option_parse.h"
#include "../weights/llmc_bin.h"
#include "../weights/weights.h"
#include "commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    int64_t vocab; // 0: any
} VerifyOptions;

static const Option rows[] = {
    {"vocab", "V", "Data", OPTION_INTEGER, offsetof(VerifyOptions, vocab), COUNT, NULL, NULL,
     "refuse data with an id that a vocabulary of this size does not have"},
};
static const OptionTable table = {
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
    .operands = "PATH...",
    .usage = "Usage: train_gpt2 verify [--vocab V] PATH...\n"
             "\n"
             "Prints what each path is, and whether it is complete: a checkpoint or the directory of a "
             "run\n"
             "(all checksums), a Hugging Face directory, an llm.c model, or data (token files, arrays,\n"
             "text), of which it reads every token. Data with the same identity hold the same "
             "tokens.\n",
};

/* A RowWriter that ignores its rows: reading checks them. */
static void forget(void *unused, const Tensor *tensor, size_t row, size_t rows, float *values) {
    (void)unused, (void)tensor, (void)row, (void)rows, (void)values;
}

/* Reads all weights, which ends the program when one is not finite. */
static void read_weights(Weights *weights) {
    const TensorTable *all = weights_table(weights);
    for (int i = 0; i < all->count; i++) tensor_copy(&all->tensors[i], weights_read_rows, weights, forget, NULL);
}

/* Reads all weights, and prints the shape. */
static void print_model(const char *path) {
    Weights *weights = weights_open(path);
    read_weights(weights);
    const Config *c = weights_config(weights);
    printf(
        "%s: GPT-2 weights (%s): %d layers, %d heads, %d channels, sequences of %d, vocabulary %d, "
        "%zu parameters\n",
        path, weights_format(weights), c->layers, c->heads, c->channels, c->seq_len, c->vocab,
        weights_table(weights)->parameters);
    weights_close(weights);
}

/* All checksums, then the weights. */
static void verify_checkpoint(const char *path) {
    char problem[CHECKPOINT_PROBLEM];
    TrainerState at;
    if (!checkpoint_verify(path, problem))
        fatal(EXIT_INPUT, "%s: a damaged checkpoint: %s", path, problem);
    // The checksums prove that the files are those that were written; reading the weights proves that they are finite.
    json_free(checkpoint_state(path, &at));
    print_model(path);
    printf("%s: a complete checkpoint after %lld updates on %llu tokens; all checksums are right\n", path,
           (long long)at.step, (unsigned long long)at.tokens);
}

/* Each checkpoint of a run. */
static void verify_run(const char *path) {
    int count;
    char **checkpoints = checkpoints_all(path, &count);
    for (int i = 0; i < count; i++) {
        verify_checkpoint(checkpoints[i]);
        free(checkpoints[i]);
    }
    free(checkpoints);
}

/* Every token of a file is read; with --vocab also compared. */
static void verify_data(const char *path, int64_t vocab) {
    Stream *stream = stream_open(&path, 1, STREAM_ALL);
    if (vocab) stream_set_vocab(stream, (int)vocab);
    printf("%s: data, %llu %s in %d file%s, the largest is %llu, identity %016llx\n", path,
           (unsigned long long)stream_length(stream), stream_is_bytes(stream) ? "bytes of text" : "tokens",
           stream_files(stream), stream_files(stream) == 1 ? "" : "s", (unsigned long long)stream_largest(stream),
           (unsigned long long)stream_identity(stream));
    stream_close(stream);
}

/* Whether a path is a regular file. */
static bool is_file(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Whether a name ends so. */
static bool is_safetensors(const char *path) {
    static const char ending[] = ".safetensors";
    size_t length = strlen(path), end = sizeof ending - 1;
    return length >= end && strcmp(path + length - end, ending) == 0;
}

/* One path: its kind decides what is checked. */
static void verify(const char *path, int64_t vocab) {
    // The order matters: a checkpoint has a config.json as well, and a run is a directory as data can be.
    if (checkpoint_is_one(path))
        verify_checkpoint(path);
    else if (checkpoints_is_bare_run(path))
        printf("%s: the directory of a run that has no checkpoint yet\n", path);
    else if (checkpoints_any(path))
        verify_run(path);
    else if (path_exists_in(path, "config.json") || path_exists_in(path, "model.safetensors"))
        print_model(path);
    else if (is_file(path) && (is_safetensors(path) || llmc_bin_matches(path)))
        print_model(path);
    else
        verify_data(path, vocab);
}

/* Verifies in a process of its own, because an error ends the process. Returns its exit code. */
static int verify_apart(const char *path, int64_t vocab) {
    // what is buffered would otherwise be printed by both processes
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) fatal(EXIT_RUNTIME, "no process to verify %s: %s", path, strerror(errno));
    if (child == 0) {
        verify(path, vocab);
        exit(EXIT_DONE);
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_RUNTIME;
}

int command_verify(int argc, char **argv) {
    VerifyOptions options = {0};
    OptionValues values = {.table = &table, .fields = &options};
    option_parse(&values, argc, argv);
    int count = values.operands.count, code = EXIT_DONE;
    if (count == 0) fatal(EXIT_USAGE, "verify needs the names of files or directories");
    // One path needs no process of its own. Of several, all are verified, and the first failure's code is returned.
    if (count == 1) verify(values.operands.items[0], options.vocab);
    for (int i = 0; count > 1 && i < count; i++) {
        int failure = verify_apart(values.operands.items[i], options.vocab);
        if (code == EXIT_DONE) code = failure;
    }
    free(values.operands.items);
    return code;
}

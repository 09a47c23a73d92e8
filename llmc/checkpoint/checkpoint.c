/* checkpoint.c: a checkpoint is a directory: model and config as Hugging Face's tools read them, AdamW's moments, and
 * trainer_state.json with settings, counters and a checksum of each other file. Saving writes it under a temporary
 * name and renames it last (files/output.h). Verifying compares all checksums before anything is loaded. */
#define _GNU_SOURCE // st_mtim
#include "checkpoint.h"

#include "../base/error.h"
#include "../base/finite.h"
#include "../base/memory.h"
#include "../base/rng.h"
#include "../files/path.h"
#include "../weights/hf_config.h"
#include "../weights/hf_tensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char state_file[] = "trainer_state.json", optimizer_file[] = "optimizer.safetensors";

// ---------------------------------------------------------------------------------------------
// Saving

/* Ends the program when one of the rows is NaN or infinite. Promise 17: no such number reaches a checkpoint, and
 * none comes from one. what: "" or "a moment of ". */
static void check_finite(int code, const char *what, const Tensor *tensor, size_t row, size_t rows,
                         const float *values) {
    size_t columns = tensor_columns(tensor), bad = first_nonfinite(values, rows * columns);
    if (bad < rows * columns)
        fatal(code, "%s%s (element %zu of row %zu) is %g: %s", what, tensor->name, bad % columns, row + bad / columns,
              values[bad],
              code == EXIT_INPUT ? "choose another checkpoint with --resume"
                                 : "nothing is saved; continue from the checkpoint before it, with a lower --lr");
}

/* Rows of the weights as float32, checked: a RowReader. */
static void read_weights(void *context, const Tensor *tensor, size_t row, size_t rows, float *out) {
    size_t columns = tensor_columns(tensor);
    gpt2_read_weights(context, tensor, row * columns, out, rows * columns);
    check_finite(EXIT_NONFINITE, "", tensor, row, rows, out);
}

/* Rows of one of the optimizer's buffers. */
static void read_moments(void *context, const Tensor *tensor, size_t row, size_t rows, float *out) {
    size_t columns = tensor_columns(tensor);
    read_floats(out, device_at(context, OF_OPTIMIZER_STATE, tensor->offset + row * columns),
                OF_OPTIMIZER_STATE, rows * columns);
    check_finite(EXIT_NONFINITE, "a moment of ", tensor, row, rows, out);
}

/* model.safetensors: all tensors in Hugging Face's names and orientation. */
static void write_model(OutputFile *file, const GPT2 *model) {
    const TensorGroup weights = {"", read_weights, (void *)model};
    hf_write_tensors(file, &model->table, &weights, 1);
}

/* The table of the moments' file, where every matrix is stored (out, in), as in memory: no other tool asks for
 * Conv1D's orientation there, and two thirds of a checkpoint need not be transposed. */
static TensorTable moments_table(const TensorTable *weights) {
    TensorTable table = {.count = weights->count};
    table.tensors = memory_new((size_t)table.count, sizeof(Tensor), "the tensor table");
    for (int i = 0; i < table.count; i++) {
        table.tensors[i] = weights->tensors[i];
        table.tensors[i].transposed = false;
    }
    return table;
}

/* optimizer.safetensors: m and v of every tensor, under its name with the prefix m. or v. */
static void write_optimizer(OutputFile *file, const GPT2 *model) {
    const TensorGroup moments[] = {{"m.", read_moments, model->m}, {"v.", read_moments, model->v}};
    TensorTable table = moments_table(&model->table);
    hf_write_tensors(file, &table, moments, 2);
    tensor_table_free(&table);
}

enum { MOST_FILES = 8 };

/* Where files are written, and the checksums of those that are. */
typedef struct {
    Output *output;
    NamedChecksum sums[MOST_FILES];
    int count;
} Files;

/* The next file of the checkpoint. */
static OutputFile *begin_file(Files *files, const char *name) {
    files->sums[files->count].name = name;
    return output_open(files->output, name);
}

/* Closes a file and keeps its checksum for the state. */
static void end_file(Files *files, OutputFile *file) { files->sums[files->count++].sum = output_close(file); }

/* The names of all files that a checkpoint may have: first those that every one has. */
static const char *const names[] = {"config.json",    "model.safetensors",     optimizer_file, state_file,
                                    "tokenizer.json", "tokenizer_config.json", "vocab.json",   "merges.txt"};
enum { NEEDED = 3, NAMES = sizeof names / sizeof names[0] }; // but the state, which has no checksum in itself

/* Whether a checkpoint may have a file of this name: others are not ours to remove. */
bool checkpoint_has_file(const char *name) {
    for (int i = 0; i < NAMES; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* The files by which other tools encode as this program does. */
static void write_tokenizer(Files *files, const Tokenizer *tokenizer, int seq_len) {
    const char *name;
    for (int i = 0; (name = tokenizer_file(tokenizer, i)); i++) {
        OutputFile *file = begin_file(files, name);
        tokenizer_write(tokenizer, i, file, seq_len);
        end_file(files, file);
    }
}

void checkpoint_save(const char *path, const GPT2 *model, const TrainerState *state,
                     const Settings *settings, const Tokenizer *tokenizer) {
    Files files = {.output = output_begin(path, OUTPUT_DIRECTORY)};
    OutputFile *file = begin_file(&files, "config.json");
    hf_config_write(file, &model->config, tokenizer ? tokenizer_end_of_text(tokenizer) : -1);
    end_file(&files, file);
    file = begin_file(&files, "model.safetensors");
    write_model(file, model);
    end_file(&files, file);
    file = begin_file(&files, optimizer_file);
    write_optimizer(file, model);
    end_file(&files, file);
    if (tokenizer) write_tokenizer(&files, tokenizer, config_positions(&model->config));
    // The state comes last: it has the checksums of all other files.
    file = output_open(files.output, state_file);
    trainer_state_write(file, state, settings, files.sums, files.count);
    output_close(file);
    output_commit(files.output);
}

// ---------------------------------------------------------------------------------------------
// Verifying. Files are read with read(2): here a missing or shortened file is a result, not an error.

enum { READ_BYTES = 1 << 16, MAX_STATE = 1 << 24 };

/* Promise 3: a checkpoint counts as damaged only if its files are missing or not as they were written. One that
 * cannot be read at the moment (permissions, a disk or a network that fails) ends the program: to continue from the
 * one before it would discard good steps. */
static void refuse_unreadable(const char *path, int failure) {
    if (failure && failure != ENOENT && failure != ENOTDIR && failure != EISDIR)
        fatal(EXIT_RUNTIME,
              "%s: cannot be read: %s; nothing was changed; if it is lost, move its checkpoint away to continue from "
              "the one before it",
              path, strerror(failure));
}

/* The state file's text, as much of it as a state file may have. */
typedef struct {
    char *text;
    size_t bytes;
} Text;

/* Returns 0 or an errno. */
static int read_text(const char *path, Text *text) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe must not hang us
    if (descriptor < 0) return errno;
    int failure = 0;
    while (text->bytes < MAX_STATE && !failure) {
        text->text = memory_grow(text->text, text->bytes + READ_BYTES, 1, state_file);
        ssize_t n = read(descriptor, text->text + text->bytes, READ_BYTES);
        if (n == 0) break;
        if (n > 0) text->bytes += (size_t)n;
        if (n < 0 && errno != EINTR) failure = errno;
    }
    close(descriptor);
    return failure;
}

/* The state's document, or NULL with problem. */
static const Json *read_state(const char *directory, char *problem) {
    Text text = {0};
    char *path = path_join(directory, state_file), why[STATE_PROBLEM];
    int failure = read_text(path, &text);
    refuse_unreadable(path, failure);
    const Json *root = NULL;
    if (failure) {
        snprintf(problem, CHECKPOINT_PROBLEM, "%s: %s", path, strerror(failure));
    } else {
        // An empty file has no text to point at, and is refused as a state with a wrong checksum.
        root = trainer_state_read(text.text ? text.text : "", text.bytes, why);
        if (!root) snprintf(problem, CHECKPOINT_PROBLEM, "%s: %s", path, why);
    }
    free(text.text);
    free(path);
    return root;
}

/* Compares a file with its checksum in the state. */
static bool verify_file(const char *directory, const Json *root, const char *name, char *problem) {
    char *path = path_join(directory, name);
    FileChecksum want, got;
    // size first: its message is clearer than a wrong checksum
    bool listed = trainer_state_sum(root, name, &want), good = false;
    int failure = listed ? file_checksum_read(path, &got) : 0;
    refuse_unreadable(path, failure);
    if (!listed)
        snprintf(problem, CHECKPOINT_PROBLEM, "%s: trainer_state.json has no checksum of it", path);
    else if (failure)
        snprintf(problem, CHECKPOINT_PROBLEM, "%s: %s", path, strerror(failure));
    else if (got.bytes != want.bytes)
        snprintf(problem, CHECKPOINT_PROBLEM, "%s: has %llu bytes, expected %llu", path,
                 (unsigned long long)got.bytes, (unsigned long long)want.bytes);
    else if (got.sum != want.sum)
        snprintf(problem, CHECKPOINT_PROBLEM,
                 "%s: its bytes are not those that were written (wrong checksum)", path);
    else
        good = true;
    free(path);
    return good;
}

/* A number that changes when a file of the checkpoint is written, cut or replaced. */
static uint64_t stamp_of(const char *directory) {
    uint64_t stamp = 0;
    for (int i = 0; i < NAMES; i++) {
        struct stat status;
        char *path = path_join(directory, names[i]);
        // A file that is missing counts as zeros, so that its appearing changes the number too.
        if (stat(path, &status) != 0) memset(&status, 0, sizeof status);
        free(path);
        const uint64_t parts[] = {(uint64_t)status.st_dev,         (uint64_t)status.st_ino,
                                  (uint64_t)status.st_size,        (uint64_t)status.st_mtim.tv_sec,
                                  (uint64_t)status.st_mtim.tv_nsec, (uint64_t)status.st_ctim.tv_sec,
                                  (uint64_t)status.st_ctim.tv_nsec};
        for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) stamp = hash_add(stamp, parts[k]);
    }
    return stamp;
}

/* The checkpoint that was found good last, and its stamp from before its files were read. */
static struct {
    char *path;
    uint64_t stamp;
} verified;

bool checkpoint_verify(const char *path, char *problem) {
    // Taken before the files are read: a file replaced during the reading then differs from it.
    uint64_t stamp = stamp_of(path);
    const Json *root = read_state(path, problem);
    if (!root) return false;
    bool good = true;
    // every file that the state lists, and every file that a checkpoint must have
    for (int i = 0; i < NAMES && good; i++) {
        bool listed = json_member(json_member(root, "files"), names[i]) != NULL;
        if (listed || i < NEEDED) good = verify_file(path, root, names[i], problem);
    }
    json_free(root);
    if (!good) return false;
    free(verified.path);
    verified.path = memory_string(path);
    verified.stamp = stamp;
    return true;
}

// Promise 3: what is loaded is what was verified.
void checkpoint_check_unchanged(const char *path) {
    if (verified.path && strcmp(verified.path, path) == 0 && stamp_of(path) != verified.stamp)
        fatal(EXIT_INPUT, "%s: was changed or removed while it was being loaded; try again", path);
}

bool checkpoint_is_one(const char *path) {
    return path_exists_in(path, state_file) || path_exists_in(path, optimizer_file);
}

// ---------------------------------------------------------------------------------------------
// Loading

const Json *checkpoint_state(const char *path, TrainerState *state) {
    char problem[CHECKPOINT_PROBLEM], why[STATE_PROBLEM];
    const Json *root = read_state(path, problem);
    if (!root) fatal(EXIT_INPUT, "%s; choose another checkpoint with --resume", problem);
    if (!trainer_state_counters(root, state, why))
        fatal(EXIT_INPUT, "%s/%s: %s", path, state_file, why);
    return root;
}

/* A RowWriter for m or v, checked. */
static void write_moments(void *moments, const Tensor *tensor, size_t row, size_t rows,
                          float *values) {
    size_t columns = tensor_columns(tensor);
    check_finite(EXIT_INPUT, "a moment of ", tensor, row, rows, values);
    void *at = device_at(moments, OF_OPTIMIZER_STATE, tensor->offset + row * columns);
    write_floats(at, OF_OPTIMIZER_STATE, values, rows * columns);
}

void checkpoint_load(const char *path, Weights *weights, GPT2 *model) {
    // Exercise 4 of chapter 27: without m and v the next updates would differ, though weights and rate are the same.
    weights_load(weights, model);
    char *optimizer = path_join(path, optimizer_file);
    SafeTensors *file = safetensors_open(optimizer);
    TensorTable table = moments_table(weights_table(weights));
    const char *prefixes[] = {"m.", "v."};
    OptimizerState *moments[] = {model->m, model->v};
    for (int k = 0; k < 2; k++) {
        HfReader *reader = hf_reader_new(file, prefixes[k], &table);
        for (int i = 0; i < model->table.count; i++)
            tensor_copy(&model->table.tensors[i], hf_read_rows, reader, write_moments, moments[k]);
        hf_reader_free(reader);
    }
    tensor_table_free(&table);
    safetensors_close(file);
    free(optimizer);
    // only now: all files have been read
    checkpoint_check_unchanged(path);
}

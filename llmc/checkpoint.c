/* checkpoint.c: see checkpoint.h. */
#include "checkpoint.h"

#include "byte_tokenizer.h"
#include "checksum.h"
#include "error.h"
#include "hf_model.h"
#include "memory.h"
#include "parallel.h"

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

static void read_weights(void *context, const Tensor *tensor, size_t row, size_t rows, float *out) {
    size_t columns = tensor_columns(tensor);
    gpt2_read_weights(context, tensor, row * columns, out, rows * columns);
}

/* Rows of one of the optimizer's buffers. */
static void read_moments(void *context, const Tensor *tensor, size_t row, size_t rows, float *out) {
    size_t columns = tensor_columns(tensor);
    read_floats(out, device_at(context, OF_STATE, tensor->offset + row * columns), OF_STATE,
                rows * columns);
}

static void write_config(OutputFile *file, const GPT2 *model) {
    hf_config_write(file, &model->config);
}

static void write_model(OutputFile *file, const GPT2 *model) {
    const TensorGroup weights = {"", read_weights, (void *)model};
    hf_write_tensors(file, &model->table, &weights, 1);
}

static void write_optimizer(OutputFile *file, const GPT2 *model) {
    const TensorGroup moments[] = {{"m.", read_moments, model->m}, {"v.", read_moments, model->v}};
    hf_write_tensors(file, &model->table, moments, 2);
}

static void write_tokenizer(OutputFile *file, const GPT2 *model) {
    (void)model; // the same for all
    byte_tokenizer_write(file);
}

static void write_tokenizer_config(OutputFile *file, const GPT2 *model) {
    byte_tokenizer_write_config(file, model->config.seq_len);
}

/* The files of a checkpoint, but trainer_state.json. */
static const struct {
    const char *name;
    void (*write)(OutputFile *file, const GPT2 *model);
    bool byte_tokens; // only where tokens are bytes
} files[] = {{"config.json", write_config, false},
             {"model.safetensors", write_model, false},
             {optimizer_file, write_optimizer, false},
             {"tokenizer.json", write_tokenizer, true},
             {"tokenizer_config.json", write_tokenizer_config, true}};
enum { FILES = sizeof files / sizeof files[0] };

bool checkpoint_has_file(const char *name) {
    for (int i = 0; i < FILES; i++)
        if (strcmp(name, files[i].name) == 0) return true;
    return strcmp(name, state_file) == 0;
}

void checkpoint_save(const char *path, const GPT2 *model, const TrainerState *state,
                     const Settings *settings, bool byte_tokens) {
    NamedSum sums[FILES];
    int count = 0;
    Output *output = output_begin(path, OUTPUT_DIRECTORY);
    for (int i = 0; i < FILES; i++) {
        if (files[i].byte_tokens && !byte_tokens) continue;
        OutputFile *file = output_open(output, files[i].name);
        files[i].write(file, model);
        sums[count++] = (NamedSum){files[i].name, output_close(file)};
    }
    OutputFile *file = output_open(output, state_file);
    trainer_state_write(file, state, settings, sums, count);
    output_close(file);
    output_commit(output);
}

// ---------------------------------------------------------------------------------------------
// Verifying. Files are read with read(2): a file that is gone or cut is no error of the program here.

enum { READ_BYTES = 1 << 20, MAX_STATE = 1 << 24 };

static char *file_path_of(const char *directory, const char *name) {
    size_t bytes = strlen(directory) + strlen(name) + 2;
    char *path = memory_new(bytes, 1, "a file name");
    snprintf(path, bytes, "%s/%s", directory, name);
    return path;
}

/* Reads a whole file through `take`. Returns 0 or an errno. */
static int read_through(const char *path,
                        void (*take)(void *context, const void *data, size_t bytes),
                        void *context) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC), failure = 0;
    if (descriptor < 0) return errno;
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL); // a wish: the system reads ahead
    char *buffer = memory_new(READ_BYTES, 1, "a buffer for reading");
    for (ssize_t n; (n = read(descriptor, buffer, READ_BYTES)) != 0;) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            failure = errno;
            break;
        }
        take(context, buffer, (size_t)n);
    }
    free(buffer);
    close(descriptor);
    return failure;
}

static void add_to_sum(void *context, const void *data, size_t bytes) {
    checksum_add(context, data, bytes);
}

/* The state file's text, as much of it as a state file may have. */
typedef struct {
    char *text;
    size_t bytes;
} Text;

static void add_to_text(void *context, const void *data, size_t bytes) {
    Text *text = context;
    if (text->bytes + bytes > MAX_STATE) bytes = MAX_STATE - text->bytes;
    text->text = memory_grow(text->text, text->bytes + bytes, 1, state_file);
    memcpy(text->text + text->bytes, data, bytes);
    text->bytes += bytes;
}

/* The state's document, or NULL with problem. */
static const Json *read_state(const char *directory, char *problem) {
    Text text = {0};
    char *path = file_path_of(directory, state_file), why[STATE_PROBLEM];
    int failure = read_through(path, add_to_text, &text);
    const Json *root = NULL;
    if (failure) {
        snprintf(problem, CHECKPOINT_PROBLEM, "%s: %s", path, strerror(failure));
    } else {
        root = trainer_state_read(text.text ? text.text : "", text.bytes, why);
        if (!root) snprintf(problem, CHECKPOINT_PROBLEM, "%s: %s", path, why);
    }
    free(text.text);
    free(path);
    return root;
}

/* Compares a file with the sum that the state has of it. */
static bool verify_file(const char *directory, const Json *root, const char *name, char *problem) {
    char *path = file_path_of(directory, name);
    FileSum want;
    Checksum got;
    checksum_begin(&got);
    bool listed = trainer_state_sum(root, name, &want), good = false;
    int failure = listed ? read_through(path, add_to_sum, &got) : 0;
    if (!listed)
        snprintf(problem, CHECKPOINT_PROBLEM, "%s: trainer_state.json has no sum of it", path);
    else if (failure)
        snprintf(problem, CHECKPOINT_PROBLEM, "%s: %s", path, strerror(failure));
    else if (got.bytes != want.bytes)
        snprintf(problem, CHECKPOINT_PROBLEM, "%s: has %llu bytes, expected %llu", path,
                 (unsigned long long)got.bytes, (unsigned long long)want.bytes);
    else if (checksum_value(&got) != want.sum)
        snprintf(problem, CHECKPOINT_PROBLEM,
                 "%s: its bytes are not those that were written (wrong sum)", path);
    else
        good = true;
    free(path);
    return good;
}

bool checkpoint_verify(const char *path, char *problem) {
    const Json *root = read_state(path, problem);
    if (!root) return false;
    char problems[FILES][CHECKPOINT_PROBLEM];
    bool good[FILES];
    PARALLEL_EACH // one file is summed while another is read
    for (int i = 0; i < FILES; i++) {
        bool listed = json_member(json_member(root, "files"), files[i].name) != NULL;
        bool expected = listed || !files[i].byte_tokens;
        good[i] = !expected || verify_file(path, root, files[i].name, problems[i]);
    }
    json_free(root);
    int bad = 0;
    while (bad < FILES && good[bad]) bad++;
    if (bad < FILES) memcpy(problem, problems[bad], CHECKPOINT_PROBLEM);
    return bad == FILES;
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

static void write_moments(void *moments, const Tensor *tensor, size_t row, size_t rows,
                          float *values) {
    size_t columns = tensor_columns(tensor);
    void *at = device_at(moments, OF_STATE, tensor->offset + row * columns);
    write_floats(at, OF_STATE, values, rows * columns);
}

void checkpoint_load(const char *path, Weights *weights, GPT2 *model) {
    weights_load(weights, model);
    char *optimizer = file_path_of(path, optimizer_file);
    SafeTensors *file = safetensors_open(optimizer);
    const char *prefixes[] = {"m.", "v."};
    State *moments[] = {model->m, model->v};
    for (int k = 0; k < 2; k++) {
        HfReader *reader = hf_reader_new(file, prefixes[k], weights_table(weights));
        for (int i = 0; i < model->table.count; i++)
            tensor_copy(&model->table.tensors[i], hf_read_rows, reader, write_moments, moments[k]);
        hf_reader_free(reader);
    }
    safetensors_close(file);
    free(optimizer);
}

/* weights.c: see weights.h. */
#include "weights.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "llmc_bin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct Weights {
    Config config;
    TensorTable table;
    char format[48];
    LlmcBin *bin; // or
    char *path;   // of the safetensors file,
    SafeTensors *file;
    HfReader *reader;
};

/* Before memory is taken for a table of tensors, the file must have as many. */
static void check_count(const SafeTensors *file, const Config *config) {
    int least = 12 * config->layers + 4;
    if (safetensors_count(file) < least)
        fatal(EXIT_INPUT, "%s: has %d tensors, but config.json's n_layer = %d needs %d",
              safetensors_path(file), safetensors_count(file), config->layers, least);
}

static void check_there(const char *directory, const char *path) {
    char other[4096];
    if (access(path, F_OK) == 0) return;
    snprintf(other, sizeof other, "%s/pytorch_model.bin", directory);
    if (access(other, F_OK) == 0)
        fatal(EXIT_INPUT,
              "%s: pickles are not read; save the model again with safe_serialization=True", other);
    snprintf(other, sizeof other, "%s.index.json", path);
    if (access(other, F_OK) == 0)
        fatal(EXIT_INPUT, "%s: weights in several files are not read; save the model again as one",
              other);
}

static void open_directory(Weights *weights, const char *path) {
    size_t bytes = strlen(path) + sizeof "/model.safetensors";
    char *config_path = memory_new(bytes, 1, "a file name");
    weights->path = memory_new(bytes, 1, "a file name");
    snprintf(config_path, bytes, "%s/config.json", path);
    snprintf(weights->path, bytes, "%s/model.safetensors", path);
    check_there(path, weights->path);
    weights->config = hf_config_read(config_path);
    free(config_path);

    weights->file = safetensors_open(weights->path);
    const char *prefix = hf_prefix(weights->file);
    check_count(weights->file, &weights->config);
    weights->table = tensor_table_new(&weights->config);
    hf_check_weights(weights->file, prefix, &weights->table);
    weights->reader = hf_reader_new(weights->file, prefix, &weights->table);
    char wte[64];
    snprintf(wte, sizeof wte, "%swte.weight", prefix);
    snprintf(weights->format, sizeof weights->format, "safetensors, %s",
             safetensors_find(weights->file, wte)->dtype);
}

const char *weights_path(const char *model) {
    Config shape;
    return !config_named(model, &shape) && access(model, F_OK) == 0 ? model : NULL;
}

Weights *weights_open(const char *path) {
    Weights *weights = memory_new(1, sizeof *weights, "a model file");
    struct stat status;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        open_directory(weights, path);
        return weights;
    }
    weights->bin = llmc_bin_open(path);
    weights->config = *llmc_bin_config(weights->bin);
    weights->table = tensor_table_new(&weights->config);
    snprintf(weights->format, sizeof weights->format, "llm.c model, version %d",
             llmc_bin_version(weights->bin));
    return weights;
}

void weights_close(Weights *weights) {
    if (!weights) return;
    llmc_bin_close(weights->bin);
    hf_reader_free(weights->reader);
    safetensors_close(weights->file);
    tensor_table_free(&weights->table);
    free(weights->path);
    free(weights);
}

const Config *weights_config(const Weights *weights) { return &weights->config; }

const TensorTable *weights_table(const Weights *weights) { return &weights->table; }

const char *weights_format(const Weights *weights) { return weights->format; }

void weights_read_rows(void *context, const Tensor *tensor, size_t row, size_t rows, float *out) {
    Weights *weights = context;
    if (weights->bin)
        llmc_bin_read_rows(weights->bin, tensor, row, rows, out);
    else
        hf_read_rows(weights->reader, tensor, row, rows, out);
}

static void write_rows(void *model, const Tensor *tensor, size_t row, size_t rows, float *values) {
    size_t columns = tensor_columns(tensor);
    gpt2_write_weights(model, tensor, row * columns, values, rows * columns);
}

void weights_load(Weights *weights, GPT2 *model) {
    for (int i = 0; i < model->table.count; i++)
        tensor_copy(&model->table.tensors[i], weights_read_rows, weights, write_rows, model);
}

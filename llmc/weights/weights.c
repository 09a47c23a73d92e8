/* weights.c: a model in whatever form a user has it: a Hugging Face directory, one of its safetensors files, a
 * checkpoint, an llm.c file. weights_open finds out which; from then on tensors are read in one way. What cannot
 * be read is named, with the way to convert it. */
#include "weights.h"

#include "../base/error.h"
#include "../base/finite.h"
#include "../base/memory.h"
#include "../files/file_kind.h"
#include "../files/path.h"
#include "hf_config.h"
#include "hf_index.h"
#include "llmc_bin.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct Weights {
    Config config;
    TensorTable table;
    char format[48];
    char *path;   // as the user named it
    LlmcBin *bin; // or
    HfFiles files; // of safetensors,
    SafeTensors *file;
    char prefix[HF_PREFIX]; // of its names
    HfReader *reader;
};

/* Before memory is taken for a table of tensors, the file must have as many. */
static void check_count(const SafeTensors *file, const Config *config) {
    // a block has 12 tensors (two LayerNorms and four matrices, each with a weight and a bias); wte, wpe and ln_f have
    // 4
    int least = 12 * config->layers + 4;
    if (safetensors_count(file) < least)
        fatal(EXIT_INPUT, "%s: has %d tensors, but config.json's n_layer = %d needs %d",
              safetensors_path(file), safetensors_count(file), config->layers, least);
}

// ---------------------------------------------------------------------------------------------
// Hugging Face directories

static const char model_file[] = "model.safetensors", index_file[] = "model.safetensors.index.json";

// The command that converts a directory; `more`: a further argument of from_pretrained, for other frameworks.
#define SAVE_AGAIN(more)                                                                           \
    "write safetensors: python3 -c \"from transformers import GPT2LMHeadModel as M; "              \
    "M.from_pretrained('DIR'" more ").save_pretrained('NEW')\""

/* Ends the program where a directory has weights of a format that is not read. */
static void refuse_other_formats(const char *directory) {
    static const struct {
        const char *name, *remedy;
    } others[] = {
        {"pytorch_model.bin", "pickles are not read; " SAVE_AGAIN("")},
        {"pytorch_model.bin.index.json", "pickles are not read; " SAVE_AGAIN("")},
        {"tf_model.h5", "TensorFlow's weights are not read; " SAVE_AGAIN(", from_tf=True")},
        {"flax_model.msgpack", "Flax's weights are not read; " SAVE_AGAIN(", from_flax=True")},
        {"ckpt.pt", "nanoGPT's pickles are not read; write its model's tensors with safetensors.torch.save_file, in "
                    "Hugging Face's names and orientation"},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (path_exists_in(directory, others[i].name))
            fatal(EXIT_INPUT, "%s/%s: %s", directory, others[i].name, others[i].remedy);
}

/* Ends the program where a directory has no config.json. Hugging Face's cache has its models deeper. */
static void refuse_without_config(const char *directory) {
    if (path_exists_in(directory, "config.json")) return;
    // a model of the cache is models--OWNER--NAME/snapshots/COMMIT/config.json; users often give the first part
    char *snapshots = path_join(directory, "snapshots");
    DIR *cache = opendir(snapshots);
    for (struct dirent *entry; cache && (entry = readdir(cache));)
        if (entry->d_name[0] != '.')
            fatal(EXIT_INPUT, "%s: is a directory of Hugging Face's cache; the model is in %s/%s: give that", directory,
                  snapshots, entry->d_name);
    fatal(EXIT_INPUT,
          "%s/config.json: no such file: the directory holds no model; give one with config.json and "
          "model.safetensors, or that of a run",
          directory);
}

/* The files with a directory's tensors: `only`, where it is given. */
static HfFiles files_of(const char *directory, const char *only) {
    HfFiles files = {memory_new(1, sizeof *files.paths, "a list of files"), 1};
    // the file that the user named, else those of the index, else the usual one; where both are there, the usual one
    // counts
    if (only) {
        files.paths[0] = memory_string(only);
    } else if (!path_exists_in(directory, model_file) && path_exists_in(directory, index_file)) {
        free(files.paths);
        char *index = path_join(directory, index_file);
        files = hf_index_read(index);
        free(index);
    } else {
        files.paths[0] = path_join(directory, model_file);
    }
    return files;
}

/* A Hugging Face directory; `only` names one file of weights in it. */
static void open_directory(Weights *weights, const char *directory, const char *only) {
    char *config = path_join(directory, "config.json");
    // Another format is named before a missing config.json: for a nanoGPT directory, advice about its ckpt.pt helps
    // more.
    if (!only && !path_exists_in(directory, model_file) && !path_exists_in(directory, index_file))
        refuse_other_formats(directory);
    refuse_without_config(directory);
    weights->files = files_of(directory, only);
    // the shape comes first: it says which tensors the files must have
    weights->config = hf_config_read(config);
    free(config);
    weights->file = safetensors_open_parts((const char *const *)weights->files.paths, weights->files.count);
    // What a single file lacks, hf_check_weights finds. Of several files, one may be from another save.
    if (weights->files.count > 1) {
        char *index = path_join(directory, index_file);
        hf_index_check(index, weights->file);
        free(index);
    }
    // from here on every size was checked against the file before memory is taken for it
    hf_prefix(weights->file, weights->prefix);
    check_count(weights->file, &weights->config);
    weights->table = tensor_table_new(&weights->config);
    hf_check_weights(weights->file, weights->prefix, &weights->table);
    weights->reader = hf_reader_new(weights->file, weights->prefix, &weights->table);
    snprintf(weights->format, sizeof weights->format, "safetensors, %s",
             hf_dtype(weights->file, weights->prefix, &weights->table));
}

// ---------------------------------------------------------------------------------------------
// Files

/* Whether a name has this ending. */
static bool ends_in(const char *name, const char *ending) {
    size_t length = strlen(name), end = strlen(ending);
    return length >= end && strcmp(name + length - end, ending) == 0;
}

/* A .safetensors file means its directory; if its name is not the usual one, only this file has the weights. */
static void open_safetensors(Weights *weights, const char *path) {
    char *directory = memory_string(path), *slash = strrchr(directory, '/');
    const char *name = slash ? slash + 1 : path;
    // "/model.safetensors" is in "/", which keeps its slash
    if (slash)
        slash[slash == directory] = '\0';
    else
        strcpy(directory, "."); // a name has more characters than that
    if (!path_exists_in(directory, "config.json"))
        fatal(EXIT_INPUT, "%s: config.json is missing beside %s, so the model's shape is unknown; get it from where "
                          "the weights are from", path, name);
    // one file of several, with an index beside it: the whole model is opened by the index
    bool part = path_exists_in(directory, index_file) && !path_exists_in(directory, model_file);
    open_directory(weights, directory, part ? NULL : path);
    free(directory);
}

/* Ends the program where a file is clearly not an llm.c model. */
static void refuse_foreign(const char *path) {
    File *file = file_open(path);
    FileKind kind = file_kind(file);
    // the most exact answer first: a web page is text as well
    if (file_is_markup(file))
        fatal(EXIT_INPUT, "%s: is an HTML page, but weights are expected: a failed download? Fetch it again", path);
    if (kind.what)
        fatal(EXIT_INPUT, "%s: is %s, but weights are expected; %s", path, kind.what, kind.model);
    if (file_starts_as_text(file))
        fatal(EXIT_INPUT, "%s: is text, but weights are expected; text is given with --data", path);
    file_close(file);
}

const char *weights_path(const char *model) {
    Config shape;
    // the name of a shape comes first: "gpt2" is the shape even where a directory has that name; ./gpt2 is the
    // directory
    return !config_named(model, &shape) && path_exists(model) ? model : NULL;
}

Weights *weights_open(const char *path) {
    Weights *weights = memory_new(1, sizeof *weights, "a model file");
    weights->path = memory_string(path);
    struct stat status;
    // where nothing is there, the functions that open a file report it
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        open_directory(weights, path, NULL);
        return weights;
    }
    Config shape;
    if (config_named(path, &shape) && !path_exists(path))
        fatal(EXIT_INPUT, "%s: is the name of a shape; give weights: a directory or a file", path);
    if (ends_in(path, ".safetensors")) {
        open_safetensors(weights, path);
        return weights;
    }
    // whatever is left must be an llm.c model
    // a kind that is known gets its own advice; for any other llmc_bin_open reports the magic number
    if (!llmc_bin_matches(path)) refuse_foreign(path);
    weights->bin = llmc_bin_open(path);
    weights->config = *llmc_bin_config(weights->bin);
    weights->table = tensor_table_new(&weights->config);
    snprintf(weights->format, sizeof weights->format, "llm.c model, version %d",
             llmc_bin_version(weights->bin));
    return weights;
}

void weights_close(Weights *weights) {
    if (!weights) return;
    // of an llm.c file or safetensors only one is open: the other pointers are NULL, which each function allows
    llmc_bin_close(weights->bin);
    hf_reader_free(weights->reader);
    safetensors_close(weights->file);
    tensor_table_free(&weights->table);
    hf_files_free(&weights->files);
    free(weights->path);
    free(weights);
}

const Config *weights_config(const Weights *weights) { return &weights->config; }

const TensorTable *weights_table(const Weights *weights) { return &weights->table; }

const char *weights_format(const Weights *weights) { return weights->format; }

/* Promise 17: numbers that are not finite are refused when they are read, by tensor and index (as the file counts:
 * Hugging Face's matrices of a block are (in, out)). */
static void check_finite(const Weights *weights, const Tensor *tensor, size_t row, size_t rows, const float *values) {
    size_t columns = tensor_columns(tensor), bad = first_nonfinite(values, rows * columns);
    if (bad == rows * columns) return;
    // the place in rows of (out, in); a file of Hugging Face's counts such a matrix the other way round
    size_t at[2] = {row + bad / columns, bad % columns};
    char index[48];
    bool turned = !weights->bin && tensor->transposed;
    snprintf(index, sizeof index, tensor->dims == 2 ? "%zu, %zu" : "%zu", at[turned], at[!turned]);
    fatal(EXIT_INPUT, "%s: %s[%s] is %g; all weights must be finite: choose other weights",
          weights->path, tensor->name, index, values[bad]);
}

void weights_read_rows(void *context, const Tensor *tensor, size_t row, size_t rows, float *out) {
    Weights *weights = context;
    // all formats pass here, so one check of the values serves them all
    if (weights->bin)
        llmc_bin_read_rows(weights->bin, tensor, row, rows, out);
    else
        hf_read_rows(weights->reader, tensor, row, rows, out);
    check_finite(weights, tensor, row, rows, out);
}

/* A RowWriter into the model's device memory. */
static void write_rows(void *model, const Tensor *tensor, size_t row, size_t rows, float *values) {
    size_t columns = tensor_columns(tensor);
    gpt2_write_weights(model, tensor, row * columns, values, rows * columns);
}

void weights_load(Weights *weights, GPT2 *model) {
    // the model's table, not the file's: with a smaller seq_len it has fewer rows of wpe, and only these are read
    for (int i = 0; i < model->table.count; i++)
        tensor_copy(&model->table.tensors[i], weights_read_rows, weights, write_rows, model);
}

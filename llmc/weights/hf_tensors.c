/* hf_tensors.c: the model's tensors in Hugging Face's names and orientation: first finding the model's tensors in a
 * file, then reading, then writing. */
#include "hf_tensors.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "transpose_columns.h"
#include "../files/json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 1 << 18, // elements of a file looked at together
    STRIP_BYTES =
        1 << 24, // of columns transposed together: a column has at most 2^22 floats (config.c)
};

// ---------------------------------------------------------------------------------------------
// Reading

/* The text before a name's last part is a prefix that other tools put there: "transformer." that of
 * GPT2LMHeadModel, "module." that of DistributedDataParallel, "_orig_mod." that of torch.compile. */
static bool is_prefix(const char *name, size_t length) {
    static const char *const words[] = {"transformer.", "module.", "_orig_mod.", "model."};
    // takes known words from the front until none is left: "module._orig_mod.transformer." has three
    while (length > 0) {
        size_t i = 0, count = sizeof words / sizeof words[0];
        while (i < count && strncmp(name, words[i], strlen(words[i])) != 0) i++;
        // an unknown word, or one that would end in the part of the name behind the prefix
        if (i == count || strlen(words[i]) > length) return false;
        name += strlen(words[i]), length -= strlen(words[i]);
    }
    return true;
}

void hf_prefix(const SafeTensors *file, char prefix[HF_PREFIX]) {
    static const char last[] = "wpe.weight"; // wte.weight may be stored as lm_head.weight only
    prefix[0] = '\0';
    for (int i = 0; i < safetensors_count(file); i++) {
        const char *name = safetensors_get(file, i)->name;
        size_t length = strlen(name), before = length - (sizeof last - 1);
        // the length is compared first: for a shorter name `before` has wrapped to a huge number
        if (length < sizeof last - 1 || before >= HF_PREFIX || strcmp(name + before, last) != 0) continue;
        if (is_prefix(name, before)) snprintf(prefix, HF_PREFIX, "%.*s", (int)before, name);
    }
}

enum { HEAD_NAME = HF_PREFIX + 16 };

/* The name of the output matrix, which lies beside the transformer, not in it. */
static const char *head_name(const char *prefix, char name[HEAD_NAME]) {
    // "module.transformer." gives "module.lm_head.weight", and "" gives "lm_head.weight"
    static const char inner[] = "transformer.";
    size_t length = strlen(prefix), tail = sizeof inner - 1;
    if (length >= tail && strcmp(prefix + length - tail, inner) == 0) length -= tail;
    snprintf(name, HEAD_NAME, "%.*slm_head.weight", (int)length, prefix);
    return name;
}

/* Whether a name is that of a causal mask that old versions stored: h.N.attn.bias, .masked_bias. */
static bool is_mask(const char *name) {
    // sscanf reaches %n, which sets `end`, only where the text before it matches as well
    int layer, end = 0;
    if (sscanf(name, "h.%d.attn.%n", &layer, &end) != 1 || end == 0) return false;
    return strcmp(name + end, "bias") == 0 || strcmp(name + end, "masked_bias") == 0;
}

enum { SHAPE_TEXT = 64 };

/* "(97, 32)" */
static const char *shape_text(int dims, const size_t *shape, char text[SHAPE_TEXT]) {
    size_t n = (size_t)snprintf(text, SHAPE_TEXT, "(");
    for (int i = 0; i < dims && n < SHAPE_TEXT; i++)
        n += (size_t)snprintf(text + n, SHAPE_TEXT - n, "%s%zu", i ? ", " : "", shape[i]);
    if (n < SHAPE_TEXT) snprintf(text + n, SHAPE_TEXT - n, ")");
    return text;
}

/* The tensor stored under prefix + name, checked for its shape and type; fatal when it is missing. The tied
 * matrix may be stored under its other name only. */
static const SafeTensor *find(const SafeTensors *file, const char *prefix, const Tensor *tensor) {
    char name[HF_PREFIX + sizeof tensor->name], head[HEAD_NAME], found[SHAPE_TEXT], expected[SHAPE_TEXT];
    snprintf(name, sizeof name, "%s%s", prefix, tensor->name);
    const SafeTensor *stored = safetensors_find(file, name);
    if (!stored && strcmp(tensor->name, "wte.weight") == 0)
        stored = safetensors_find(file, head_name(prefix, head));
    if (!stored) fatal(EXIT_INPUT, "%s: tensor \"%s\" is missing", safetensors_path(file), name);
    const char *path = safetensor_path(file, stored);
    if (!safetensor_is_float(stored))
        fatal(EXIT_INPUT, "%s: tensor \"%s\" is %s, expected F32, F16 or BF16", path, name,
              stored->dtype);

    // Conv1D matrices are stored (in, out)
    // The shape shows a wrong orientation, unless the matrix is square: attn.c_proj.weight is (C, C) either way.
    size_t rows = tensor->shape[0], columns = tensor_columns(tensor);
    size_t want[2] = {tensor->transposed ? columns : rows, tensor->transposed ? rows : columns};
    if (stored->dims != tensor->dims ||
        memcmp(stored->shape, want, (size_t)tensor->dims * sizeof want[0]) != 0)
        fatal(EXIT_INPUT, "%s: tensor \"%s\" has shape %s, expected %s%s", path, name,
              shape_text(stored->dims, stored->shape, found),
              shape_text(tensor->dims, want, expected),
              tensor->transposed && stored->dims == 2 && stored->shape[0] == rows && stored->shape[1] == columns
                  ? ": stored as nn.Linear does (nanoGPT), Hugging Face's Conv1D has it transposed"
                  : "");
    return stored;
}

/* lm_head.weight must hold what wte.weight holds: the model has one matrix for both. */
static void check_tied(SafeTensors *file, const SafeTensor *head, const char *prefix,
                       const Tensor *wte) {
    const SafeTensor *embedding = find(file, prefix, wte);
    const char *path = safetensor_path(file, head);
    bool same = strcmp(head->dtype, embedding->dtype) == 0 && head->count == embedding->count;
    // Compared in pieces, so that a large embedding is never resident as a whole. The first pointer stays valid when
    // the second call moves the window of input.c.
    size_t width = safetensor_width(head);
    for (size_t done = 0, n; same && done < head->count; done += n) {
        n = head->count - done < PIECE ? head->count - done : PIECE;
        const unsigned char *a = safetensor_at(file, head, done, n);
        same = memcmp(a, safetensor_at(file, embedding, done, n), n * width) == 0;
    }
    if (!same)
        fatal(EXIT_INPUT,
              "%s: lm_head.weight differs from wte.weight, but only tied models are supported",
              path);
}

void hf_check_weights(SafeTensors *file, const char *prefix, const TensorTable *table) {
    char head[HEAD_NAME], wte[HF_PREFIX + 16];
    head_name(prefix, head);
    snprintf(wte, sizeof wte, "%swte.weight", prefix);
    // first, that the file has each tensor of the model
    for (int i = 0; i < table->count; i++) find(file, prefix, &table->tensors[i]);
    // then, that each tensor of the file is one of the model
    for (int i = 0; i < safetensors_count(file); i++) {
        const SafeTensor *stored = safetensors_get(file, i);
        const char *name = stored->name;
        // without wte.weight beside it, lm_head.weight is the tied matrix itself, which find has checked
        if (strcmp(name, head) == 0) {
            if (safetensors_find(file, wte)) check_tied(file, stored, prefix, &table->tensors[0]);
            continue;
        }
        // a tensor that this program does not know might change the model: it is refused
        char shown[JSON_SHOWN];
        bool known = strncmp(name, prefix, strlen(prefix)) == 0 &&
                     (tensor_table_find(table, name + strlen(prefix)) >= 0 ||
                      is_mask(name + strlen(prefix)));
        if (!known)
            fatal(EXIT_INPUT, "%s: tensor \"%s\" is not part of a GPT-2 of this shape",
                  safetensor_path(file, stored), json_shown(name, shown));
    }
}

const char *hf_dtype(const SafeTensors *file, const char *prefix, const TensorTable *table) {
    // that of wte, for all: tensors of one file may differ in type, and each is converted by its own
    return find(file, prefix, &table->tensors[0])->dtype;
}

struct HfReader {
    SafeTensors *file;
    const char *prefix;
    const TensorTable *table;
    const Tensor *held; // the tensor of the table whose matrix is held, or NULL
    float *matrix;      // as stored: (in, out)
    size_t bytes;       // of its memory: enough for each
};

/* Bytes of the largest transposed matrix. */
static size_t largest_matrix(const TensorTable *table) {
    size_t most = 0;
    for (int i = 0; i < table->count; i++) {
        const Tensor *tensor = &table->tensors[i];
        if (tensor->transposed && tensor->count > most) most = tensor->count;
    }
    return size_mul(most, sizeof(float), "a matrix");
}

HfReader *hf_reader_new(SafeTensors *file, const char *prefix, const TensorTable *table) {
    HfReader *reader = memory_new(1, sizeof *reader, "a reader of weights");
    reader->file = file;
    reader->prefix = prefix;
    reader->table = table;
    // one buffer for all, since a matrix is held only until the next is read: 9 MiB for GPT-2 124M
    reader->bytes = largest_matrix(table);
    reader->matrix = memory_map(reader->bytes, "a matrix");
    return reader;
}

void hf_reader_free(HfReader *reader) {
    if (!reader) return;
    memory_unmap(reader->matrix, reader->bytes);
    free(reader);
}

/* Elements first .. first+count as they are stored, about 1 MB of the file at a time. */
static void read_plain(const HfReader *reader, const SafeTensor *stored, size_t first, size_t count,
                       float *out) {
    for (size_t done = 0, n; done < count; done += n) {
        n = count - done < PIECE ? count - done : PIECE;
        safetensor_floats(stored, safetensor_at(reader->file, stored, first + done, n), n,
                          out + done);
    }
}

void hf_read_rows(void *context, const Tensor *tensor, size_t row, size_t rows, float *out) {
    HfReader *reader = context;
    // the tensor as it is stored: of wpe, the model may want only the first rows
    const Tensor *whole = &reader->table->tensors[tensor_table_find(reader->table, tensor->name)];
    const SafeTensor *stored = find(reader->file, reader->prefix, whole);
    size_t columns = tensor_columns(tensor);
    if (!whole->transposed) {
        read_plain(reader, stored, row * columns, rows * columns, out);
        return;
    }
    // A row (in) is a column of the file's matrix (in, out), so all of it must be read. The calls for further rows of
    // the tensor find it here.
    if (reader->held != whole) read_plain(reader, stored, 0, stored->count, reader->matrix);
    reader->held = whole;
    transpose_columns(out, reader->matrix, columns, whole->shape[0], row, rows);
}

// ---------------------------------------------------------------------------------------------
// Writing

/* The header names every tensor of all groups, with the shape as it is stored. */
static void write_header(OutputFile *file, const TensorTable *table, const TensorGroup *groups,
                         int count) {
    int n = 0;
    SafeTensorSpec *specs =
        memory_new((size_t)(count * table->count), sizeof *specs, "a list of tensors");
    for (int g = 0; g < count; g++)
        for (int i = 0; i < table->count; i++) {
            const Tensor *tensor = &table->tensors[i];
            SafeTensorSpec *spec = &specs[n++];
            snprintf(spec->name, sizeof spec->name, "%s%s", groups[g].prefix, tensor->name);
            spec->dims = tensor->dims;
            // shape[1] counts only where dims is 2; a tensor of one dimension is never transposed
            spec->shape[0] = tensor->transposed ? tensor->shape[1] : tensor->shape[0];
            spec->shape[1] = tensor->transposed ? tensor->shape[0] : tensor->shape[1];
        }
    safetensors_write_header(file, specs, n);
    free(specs);
}

/* A RowWriter into the file. */
static void write_rows(void *file, const Tensor *tensor, size_t row, size_t rows, float *values) {
    // rows come in order and without gaps, so the next bytes of the file are theirs
    (void)row;
    output_write(file, values, rows * tensor_columns(tensor) * sizeof(float));
}

/* Memory for one matrix and a strip of its columns. */
typedef struct {
    float *matrix, *strip;
    size_t matrix_bytes, strip_bytes;
} Buffers;

/* The whole matrix (out, in) is read, then written column by column, a strip of columns at a time. */
static void write_transposed(OutputFile *file, const TensorGroup *group, const Tensor *tensor,
                             const Buffers *buffers) {
    size_t out = tensor->shape[0], in = tensor->shape[1], bytes = out * sizeof(float);
    // at least 1: a strip has room for a whole column
    size_t most = buffers->strip_bytes / bytes;
    group->read(group->context, tensor, 0, out, buffers->matrix);
    for (size_t first = 0, count; first < in; first += count) {
        count = in - first < most ? in - first : most;
        // the strip is (count, out): rows first .. first+count of the file's (in, out)
        transpose_columns(buffers->strip, buffers->matrix, out, in, first, count);
        output_write(file, buffers->strip, count * bytes);
    }
}

void hf_write_tensors(OutputFile *file, const TensorTable *table, const TensorGroup *groups,
                      int count) {
    Buffers buffers = {.matrix_bytes = largest_matrix(table)};
    buffers.strip_bytes = buffers.matrix_bytes < STRIP_BYTES ? buffers.matrix_bytes : STRIP_BYTES;
    buffers.matrix = memory_map(buffers.matrix_bytes, "a matrix");
    buffers.strip = memory_map(buffers.strip_bytes, "a strip of a matrix");
    // the shapes alone give all offsets, so the header is written before any element is read
    write_header(file, table, groups, count);
    for (int g = 0; g < count; g++)
        for (int i = 0; i < table->count; i++) {
            const Tensor *tensor = &table->tensors[i];
            if (tensor->transposed)
                write_transposed(file, &groups[g], tensor, &buffers);
            else
                tensor_copy(tensor, groups[g].read, groups[g].context, write_rows, file);
        }
    memory_unmap(buffers.matrix, buffers.matrix_bytes);
    memory_unmap(buffers.strip, buffers.strip_bytes);
}

/* hf_tensors.c: the model's tensors in Hugging Face's names and orientation, see hf_model.h. */
#include "hf_model.h"

#include "error.h"
#include "json_read.h"
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRIP = 16 }; // columns of a matrix transposed at once: a cache line of floats

// ---------------------------------------------------------------------------------------------
// Reading

const char *hf_prefix(const SafeTensors *file) {
    return safetensors_find(file, "transformer.wte.weight") ? "transformer." : "";
}

/* Whether a name is that of a causal mask that old versions stored: h.N.attn.bias, .masked_bias. */
static bool is_mask(const char *name) {
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

const SafeTensor *hf_find(const SafeTensors *file, const char *prefix, const Tensor *tensor) {
    char name[64], found[SHAPE_TEXT], expected[SHAPE_TEXT];
    snprintf(name, sizeof name, "%s%s", prefix, tensor->name);
    const SafeTensor *stored = safetensors_find(file, name);
    const char *path = safetensors_path(file);
    if (!stored) fatal(EXIT_INPUT, "%s: tensor \"%s\" is missing", path, name);
    if (!safetensor_is_float(stored))
        fatal(EXIT_INPUT, "%s: tensor \"%s\" is %s, expected F32, F16 or BF16", path, name,
              stored->dtype);

    size_t rows = tensor->shape[0], columns = tensor_columns(tensor);
    size_t want[2] = {tensor->transposed ? columns : rows, tensor->transposed ? rows : columns};
    if (stored->dims != tensor->dims ||
        memcmp(stored->shape, want, (size_t)tensor->dims * sizeof want[0]) != 0)
        fatal(EXIT_INPUT, "%s: tensor \"%s\" has shape %s, expected %s", path, name,
              shape_text(stored->dims, stored->shape, found),
              shape_text(tensor->dims, want, expected));
    return stored;
}

/* lm_head.weight must hold what wte.weight holds: the model has one matrix for both. */
static void check_tied(SafeTensors *file, const SafeTensor *head, const char *prefix,
                       const Tensor *wte) {
    const SafeTensor *embedding = hf_find(file, prefix, wte);
    const char *path = safetensors_path(file);
    bool same = strcmp(head->dtype, embedding->dtype) == 0 && head->bytes == embedding->bytes;
    for (size_t done = 0, n, most = 1 << 20; same && done < head->bytes; done += n) {
        n = head->bytes - done < most ? head->bytes - done : most;
        same = memcmp(safetensor_data(file, head) + done, safetensor_data(file, embedding) + done,
                      n) == 0;
    }
    if (!same)
        fatal(EXIT_INPUT,
              "%s: lm_head.weight differs from wte.weight, but only tied models are supported",
              path);
}

void hf_check_weights(SafeTensors *file, const char *prefix, const TensorTable *table) {
    for (int i = 0; i < table->count; i++) hf_find(file, prefix, &table->tensors[i]);
    for (int i = 0; i < safetensors_count(file); i++) {
        const SafeTensor *stored = safetensors_at(file, i);
        const char *name = stored->name;
        if (strcmp(name, "lm_head.weight") == 0) {
            check_tied(file, stored, prefix, &table->tensors[0]);
            continue;
        }
        char shown[JSON_SHOWN];
        bool known = strncmp(name, prefix, strlen(prefix)) == 0 &&
                     (tensor_table_find(table, name + strlen(prefix)) >= 0 ||
                      is_mask(name + strlen(prefix)));
        if (!known)
            fatal(EXIT_INPUT, "%s: tensor \"%s\" is no part of a GPT-2 of this shape",
                  safetensors_path(file), json_shown(name, shown));
    }
}

/* out (rows, in) = rows row.. of the transpose of the stored (in, out), a strip of rows at a time.
 */
static void read_transposed(const SafeTensor *stored, const unsigned char *data,
                            const Tensor *tensor, size_t row, size_t rows, float *out) {
    size_t in = tensor->shape[1], all = tensor->shape[0];
    float strip[STRIP];
    for (size_t r = 0; r < rows; r += STRIP) {
        size_t n = rows - r < STRIP ? rows - r : STRIP;
        for (size_t i = 0; i < in; i++) {
            safetensor_floats(stored, data, i * all + row + r, n, strip);
            for (size_t k = 0; k < n; k++) out[(r + k) * in + i] = strip[k];
        }
    }
}

void hf_read_rows(SafeTensors *file, const SafeTensor *stored, const Tensor *tensor, size_t row,
                  size_t rows, float *out) {
    const unsigned char *data = safetensor_data(file, stored);
    size_t columns = tensor_columns(tensor);
    if (tensor->transposed)
        read_transposed(stored, data, tensor, row, rows, out);
    else
        safetensor_floats(stored, data, row * columns, rows * columns, out);
}

// ---------------------------------------------------------------------------------------------
// Writing

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
            spec->shape[0] = tensor->transposed ? tensor->shape[1] : tensor->shape[0];
            spec->shape[1] = tensor->transposed ? tensor->shape[0] : tensor->shape[1];
        }
    safetensors_write_header(file, specs, n);
    free(specs);
}

static void write_rows(void *file, const Tensor *tensor, size_t row, size_t rows, float *values) {
    (void)row;
    output_write(file, values, rows * tensor_columns(tensor) * sizeof(float));
}

/* The whole matrix (out, in) is read into the buffer, then written column by column, a strip of
 * columns at a time. */
static void write_transposed(OutputFile *file, const TensorGroup *group, const Tensor *tensor) {
    size_t out = tensor->shape[0], in = tensor->shape[1];
    float *matrix = memory_new(tensor->count, sizeof(float), "a matrix to be written");
    float *strip = memory_new(STRIP * out, sizeof(float), "a strip of a matrix");
    group->read(group->context, tensor, 0, out, matrix);
    for (size_t i = 0, n; i < in; i += n) {
        n = in - i < STRIP ? in - i : STRIP;
        for (size_t o = 0; o < out; o++)
            for (size_t k = 0; k < n; k++) strip[k * out + o] = matrix[o * in + i + k];
        output_write(file, strip, n * out * sizeof(float));
    }
    free(strip);
    free(matrix);
}

void hf_write_tensors(OutputFile *file, const TensorTable *table, const TensorGroup *groups,
                      int count) {
    write_header(file, table, groups, count);
    for (int g = 0; g < count; g++)
        for (int i = 0; i < table->count; i++) {
            const Tensor *tensor = &table->tensors[i];
            if (tensor->transposed)
                write_transposed(file, &groups[g], tensor);
            else
                tensor_copy(tensor, groups[g].read, groups[g].context, write_rows, file);
        }
}

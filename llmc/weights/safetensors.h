/* safetensors.h: the file format of Hugging Face's weights: eight bytes with the length N of the
 * header, N bytes of JSON, then the tensors' elements.
 *
 *   {"__metadata__": {"format": "pt"},
 *    "wte.weight": {"dtype": "F32", "shape": [97, 32], "data_offsets": [0, 12416]}, ...}
 *
 * Offsets count from the end of the header; the tensors must cover the data without hole or
 * overlap. A file is untrusted until checked: any fault is fatal (EXIT_INPUT), with file,
 * tensor, found and expected. Not here: what the tensors mean (hf_tensors.h). */
#ifndef LLMC_SAFETENSORS_H
#define LLMC_SAFETENSORS_H

#include "../files/output.h"

#include <stdbool.h>
#include <stddef.h>

enum { SAFETENSORS_DIMS = 8 };

typedef struct {
    const char *name;
    const char *dtype; // "F32", "F16", "BF16", ... as written in the file
    int dims;
    size_t shape[SAFETENSORS_DIMS];
    size_t count;        // elements
    size_t begin, bytes; // in the file
    int part;            // which of a model's files
} SafeTensor;

typedef struct SafeTensors SafeTensors;

SafeTensors *safetensors_open(const char *path);
/* A model that lies in several files, whose paths must stay valid; no tensor is in two of them. */
SafeTensors *safetensors_open_parts(const char *const *paths, int count);
void safetensors_close(SafeTensors *file);

/* The path of the first file, and of the one with this tensor. */
const char *safetensors_path(const SafeTensors *file);
const char *safetensor_path(const SafeTensors *file, const SafeTensor *tensor);

/* The tensors, in the order of their data. */
int safetensors_count(const SafeTensors *file);
const SafeTensor *safetensors_get(const SafeTensors *file, int index);
const SafeTensor *safetensors_find(const SafeTensors *file, const char *name); // NULL when absent

/* Whether elements can be read as floats: F32, F16 and BF16. */
bool safetensor_is_float(const SafeTensor *tensor);

/* Bytes of one element. */
size_t safetensor_width(const SafeTensor *tensor);

/* The bytes of elements first .. first+count; valid until safetensors_close. */
const unsigned char *safetensor_at(SafeTensors *file, const SafeTensor *tensor, size_t first,
                                   size_t count);

/* `count` elements of a float tensor from their bytes. */
void safetensor_floats(const SafeTensor *tensor, const unsigned char *data, size_t count,
                       float *out);

/* A tensor to be written, as F32. */
typedef struct {
    char name[48];
    int dims; // 1 or 2
    size_t shape[2];
} SafeTensorSpec;

/* Writes the header of a file of these tensors; their elements, as floats, must follow in this
 * order. */
void safetensors_write_header(OutputFile *file, const SafeTensorSpec *specs, int count);

#endif

/* hf_tensors.h: the tensors of a GPT-2 as Hugging Face's tools keep them, in safetensors files.
 *
 * The four matrices of a block are Conv1D there, stored (in, out); here weights are (out, in). They are
 * transposed when read and when written, in pieces: no second copy of the model exists. Names may have
 * prefixes ("transformer.", "module.", "_orig_mod."). The tied matrix may be stored as wte.weight, as
 * lm_head.weight, or as both if they are equal. The causal masks h.N.attn.bias and h.N.attn.masked_bias may be
 * there and are skipped. The tensors may lie in several files (hf_index.h). Anything else that is unknown,
 * missing or of another shape is fatal (EXIT_INPUT) and named. Next: hf_config.h for the shape, safetensors.h for the
 * files, tensor_copy.h and transpose_columns.h for moving tensors, half.h for 16-bit floats. */
#ifndef LLMC_HF_TENSORS_H
#define LLMC_HF_TENSORS_H

#include "../files/output.h"
#include "../model/config.h"
#include "safetensors.h"
#include "tensor_copy.h"

/* How a file of weights begins its names: "", "transformer.", "_orig_mod.transformer.", ... */
enum { HF_PREFIX = 64 };
void hf_prefix(const SafeTensors *file, char prefix[HF_PREFIX]);

/* The type of the elements, as it is written in the file: "F32". */
const char *hf_dtype(const SafeTensors *file, const char *prefix, const TensorTable *table);

/* Checks that the file holds all tensors of the model, each with this prefix, and nothing unknown.
 */
void hf_check_weights(SafeTensors *file, const char *prefix, const TensorTable *table);

/* The tensors of the model in a file of safetensors, each with the prefix before its name. It holds the
 * matrix that was transposed last. */
typedef struct HfReader HfReader;

/* table: of the model as it is stored. The file stays open, and belongs to the caller. */
HfReader *hf_reader_new(SafeTensors *file, const char *prefix, const TensorTable *table);
void hf_reader_free(HfReader *reader);

/* A RowReader, whose context is the HfReader. Of a tensor whose stored form has more rows, the first. */
void hf_read_rows(void *reader, const Tensor *tensor, size_t row, size_t rows, float *out);

/* One copy of the tensor table in a file: names get the prefix, elements come from `read`. */
typedef struct {
    const char *prefix;
    RowReader read;
    void *context;
} TensorGroup;

/* Writes a safetensors file of these groups. Holds one Conv1D matrix at a time. */
void hf_write_tensors(OutputFile *file, const TensorTable *table, const TensorGroup *groups,
                      int count);

#endif

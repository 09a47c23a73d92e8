/* hf_model.h: a GPT-2 as Hugging Face's tools keep it: config.json and tensors in safetensors
 * files.
 *
 * The four matrices of a block are Conv1D there, stored (in, out); here weights are (out, in). They
 * are transposed on the way in and out, in pieces: no second copy of the model exists. Names may
 * carry prefixes ("transformer.", "module.", "_orig_mod."); the tied matrix may be stored as wte.weight, as
 * lm_head.weight or as both (equal), and so may the causal masks h.N.attn.bias and h.N.attn.masked_bias, which
 * are skipped. The tensors may lie in several files (hf_index.h). Anything
 * else unknown, missing or of another shape is fatal (EXIT_INPUT) and named. */
#ifndef LLMC_HF_MODEL_H
#define LLMC_HF_MODEL_H

#include "../files/output.h"
#include "safetensors.h"
#include "../model/config.h"
#include "tensor_copy.h"

/* The shape in a config.json. A model that computes anything else than this project's GPT-2
 * (another activation, epsilon, inner size, ...) is refused by the name of the setting. */
Config hf_config_read(const char *path);
/* end_of_text: the id of the token that ends texts; -1: there is none. */
void hf_config_write(OutputFile *file, const Config *config, int32_t end_of_text);

/* How a file of weights begins its names: "", "transformer.", "_orig_mod.transformer.", ... */
enum { HF_PREFIX = 64 };
void hf_prefix(const SafeTensors *file, char prefix[HF_PREFIX]);

/* The type of the elements, as the file spells it: "F32". */
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

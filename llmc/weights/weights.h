/* weights.h: a model on disk, in any format that --model takes: a Hugging Face directory, a
 * checkpoint (which is one, too), or an llm.c .bin file. The format is recognised by content, not by name.
 * Not here: the optimizer's state (checkpoint.h). Next: hf_tensors.h and llmc_bin.h, the formats. */
#ifndef LLMC_WEIGHTS_H
#define LLMC_WEIGHTS_H

#include "../model/gpt2.h"
#include "hf_tensors.h"

typedef struct Weights Weights;

/* The path that --model names: `model` itself if it is a file or directory and not a named shape, else NULL. */
const char *weights_path(const char *model);

/* Opens and checks all but the values; fatal (EXIT_INPUT) on any fault. */
Weights *weights_open(const char *path);
void weights_close(Weights *weights);

const Config *weights_config(const Weights *weights);

/* A phrase: "safetensors, BF16", "llm.c model, version 3". */
const char *weights_format(const Weights *weights);

/* Rows of a tensor: a RowReader, whose context is the Weights. Fatal (EXIT_INPUT, because the file is at fault)
 * when one is NaN or infinite. */
void weights_read_rows(void *weights, const Tensor *tensor, size_t row, size_t rows, float *out);

/* Copies all weights into a model of this shape, or one with a smaller seq_len. */
void weights_load(Weights *weights, GPT2 *model);

/* The tensors as they are stored: like those of a model, but for the rows of wpe. */
const TensorTable *weights_table(const Weights *weights);

#endif

/* llmc_bin.h: the model files of llm.c (gpt2_124M.bin and the like), versions 3 (float) and 5
 * (BF16).
 *
 *   256 int32: magic 20240326, version, seq_len T, vocab V, layers L, heads NH, channels C, padded
 * vocab Vp wte (Vp,C), wpe (T,C), then each tensor of a block for all layers: ln_1 weight (L,C),
 * ..., then ln_f
 *
 * Little-endian, no gaps, the file ends with the last tensor; weights are (out, in) as here.
 * Whatever is wrong in a file is fatal (EXIT_INPUT). */
#ifndef LLMC_LLMC_BIN_H
#define LLMC_LLMC_BIN_H

#include "hf_model.h"

typedef struct LlmcBin LlmcBin;

enum { LLMC_BIN_FLOAT = 3, LLMC_BIN_BF16 = 5 };

/* Whether a file begins like one. */
bool llmc_bin_matches(const char *path);

LlmcBin *llmc_bin_open(const char *path);
void llmc_bin_close(LlmcBin *bin);

const Config *llmc_bin_config(const LlmcBin *bin);
int llmc_bin_version(const LlmcBin *bin);

/* Rows of a tensor of the model's table. */
void llmc_bin_read_rows(LlmcBin *bin, const Tensor *tensor, size_t row, size_t rows, float *out);

/* Writes a model of this shape; elements come from `read`. Version 5 rounds to nearest even. */
void llmc_bin_write(OutputFile *file, const Config *config, int version, RowReader read,
                    void *context);

#endif

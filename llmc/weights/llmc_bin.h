// clang-format off
/* llmc_bin.h: the model files of llm.c (gpt2_124M.bin and the like), versions 3 (float32) and 5 (bf16).
 *
 *     256 int32     magic 20240326, version, seq_len T, vocabulary V, layers L, heads NH, channels C,
 *                   padded vocabulary Vp, then zeros
 *     wte           (Vp, C)
 *     wpe           (T, C)
 *     ln_1 weight   (L, C), then each further tensor of a block for all layers at once
 *     ...
 *     ln_f weight   (C)
 *     ln_f bias     (C)
 *
 * Little-endian, without gaps; the file ends with the last tensor. Weights are (out, in), as here. Any fault in a
 * file is fatal (EXIT_INPUT). */
// clang-format on
#ifndef LLMC_LLMC_BIN_H
#define LLMC_LLMC_BIN_H

#include "../files/output.h"
#include "tensor_copy.h"

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

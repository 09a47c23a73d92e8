/* npy.h: the header of a NumPy array file, format versions 1 to 3, as far as it can hold tokens:
 * one dimension, C order, '<u2', '<i4' or '<u4'. Anything else is refused by name. */
#ifndef LLMC_NPY_H
#define LLMC_NPY_H

#include "shard.h"

/* Whether the file starts as a .npy file does. */
bool npy_is(File *file);

/* Fills in kind, type, offset and count of a shard whose file is a .npy array. */
void npy_describe(Shard *shard);

#endif
